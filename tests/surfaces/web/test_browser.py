"""The pages in a real browser: each page's main path, an upload, errors, a phone's width. Screenshots are kept."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.surfaces.web.browser import CHROMIUM, WAIT, launched, log_in, opened_tab, report, says, value_of
from tests.surfaces.web.conftest import Served

from epochcast.observe.store.store_opening import open_store

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here; `make test` installs it where it can")


@pytest.fixture(scope="module")
def demo() -> Iterator[Served]:
    served = Served("--demo")
    yield served
    served.end()


@pytest.fixture(scope="module")
def guarded(folder: Path) -> Iterator[Served]:
    """A server that asks for a token."""
    served = Served("--token", "--database", str(folder / "guarded.db"), "--folder", str(folder / "guarded-uploads"))
    yield served
    served.end()


@pytest.fixture(scope="module")
def busy(folder: Path) -> Iterator[Served]:
    """A server whose runs are those that tests send."""
    served = Served("--database", str(folder / "busy.db"), "--folder", str(folder / "busy-uploads"), "--workers", "1")
    yield served
    served.end()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture
def page(browser: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    width, height = getattr(request, "param", (1280, 900))
    with opened_tab(browser, request.node.name, width, height) as tab:
        yield tab


def test_the_first_page_answers_at_once_and_while_a_slider_is_dragged(page: Any, demo: Served) -> None:
    page.goto(demo.url)
    memory = value_of(page, "memory")
    assert "GiB" in memory and "$" in value_of(page, "cost")
    slider = page.locator("input[data-for=option-batch]")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    value_of(page, "memory", memory)
    assert page.input_value("#option-batch") == "64" and "batch=64" in page.url
    page.reload()
    assert page.input_value("#option-batch") == "64" and value_of(page, "memory") != memory
    page.wait_for_selector("#scaling canvas", timeout=WAIT)
    page.wait_for_selector("#plan canvas", timeout=WAIT)
    page.wait_for_selector("#evidence table", timeout=WAIT)
    page.click("role=tab[name=Python]")
    page.focus("[data-copy=python]")
    page.keyboard.press("ArrowRight")
    assert "[[job]]" in page.inner_text("#copy-text")
    page.keyboard.press("ArrowLeft")
    assert "ec.forecast(" in page.inner_text("#copy-text")


def test_a_browser_logs_in_with_its_token_and_out_again(page: Any, guarded: Served) -> None:
    page.goto(f"{guarded.url}/runs")
    assert page.url == f"{guarded.url}/login?then=/runs"
    log_in(page, "ec_wrong")
    assert "This token is unknown" in page.inner_text(".fault") and page.context.cookies() == []
    log_in(page, guarded.token)
    page.wait_for_url(f"{guarded.url}/runs", timeout=WAIT)
    page.click("text=Log out")
    page.wait_for_url(f"{guarded.url}/login", timeout=WAIT)
    assert page.context.cookies() == []
    page.goto(f"{guarded.url}/runs")
    assert "/login" in page.url


def test_a_form_on_another_site_cannot_log_a_browser_out(page: Any, guarded: Served) -> None:
    page.goto(f"{guarded.url}/login")
    log_in(page, guarded.token)
    page.wait_for_url(f"{guarded.url}/", timeout=WAIT)
    form = f'<form method="post" action="{guarded.url}/logout"><button>Win</button></form>'
    hidden = '<meta name="referrer" content="no-referrer">'
    page.route("http://elsewhere.localhost/plain", lambda route: route.fulfill(content_type="text/html", body=form))
    page.route(
        "http://elsewhere.localhost/hidden", lambda route: route.fulfill(content_type="text/html", body=hidden + form)
    )
    for path in ("plain", "hidden"):
        page.goto(f"http://elsewhere.localhost/{path}")
        with page.expect_response(f"{guarded.url}/logout") as answer:
            page.click("text=Win")
        assert answer.value.status == 403
    assert [cookie["name"] for cookie in page.context.cookies(guarded.url)] == ["epochcast_token"]


def test_a_wrong_name_is_told_on_the_page(page: Any, demo: Served) -> None:
    page.goto(f"{demo.url}/?model=resnet5&device=V100&batch=8")
    page.wait_for_selector("#fault:not([hidden])", timeout=WAIT)
    assert "near: resnet56" in page.inner_text("#fault") and page.inner_text("#time") == "–"


def test_a_job_that_does_not_fit_says_so_first_and_its_time_and_price_are_small(page: Any, demo: Served) -> None:
    page.goto(f"{demo.url}/?model=gpt2_xl&device=T4&batch=32&precision=amp&tokens=1000000000")
    page.wait_for_selector("#unfit:not([hidden])", timeout=WAIT)
    card, text = (page.locator(name).bounding_box() for name in ("#memory-bar", ".limit-text"))
    assert card["x"] <= text["x"] and text["x"] + text["width"] <= card["x"] + card["width"]
    assert "Does not fit" in page.inner_text("#unfit") and "T4 has 16 GiB" in page.inner_text("#unfit")
    size = "element => parseFloat(getComputedStyle(element).fontSize)"
    large = page.locator("#unfit .value").evaluate(size)
    for name in ("time", "cost"):
        value_of(page, name)
        assert page.locator(f"#{name}").evaluate(size) < 0.6 * large
        assert page.locator(f"#{name}").bounding_box()["y"] > page.locator("#unfit").bounding_box()["y"]
        assert "if it fitted" in page.inner_text(f"#{name}-more")
    page.fill("#option-model", "resnet18")
    page.wait_for_selector("#unfit", state="hidden", timeout=WAIT)
    assert page.locator(".dimmed").count() == 0 and "if it fitted" not in page.inner_text("#time-more")


def test_what_would_fit_is_a_click_away(page: Any, demo: Served) -> None:
    page.goto(f"{demo.url}/?model=gpt2_xl&device=T4&batch=32&precision=amp&tokens=1000000000")
    page.wait_for_selector("#remedies button", timeout=2 * WAIT)
    page.locator("#remedies button", has_text="accumulate").first.click()
    page.wait_for_selector("#unfit", state="hidden", timeout=WAIT)
    assert "accumulate=" in page.url and "fits" in page.inner_text("#memory-more")


def test_evidence_for_a_language_model_shows_language_models(page: Any, demo: Served) -> None:
    page.goto(f"{demo.url}/?model=gpt2&device=A100&batch=4&precision=amp_bf16")
    page.wait_for_selector("#evidence tbody tr", timeout=WAIT)
    networks = page.locator("#evidence tbody td:first-child").all_inner_texts()
    words = ("gpt", "bert", "opt", "switch")
    assert networks and all(any(word in name.lower() for word in words) for name in networks)


@pytest.mark.parametrize("page", [(820, 1180), (390, 844)], indirect=True)
def test_the_answer_stays_in_sight_while_sliders_move(page: Any, demo: Served) -> None:
    page.goto(demo.url)
    memory = value_of(page, "memory")
    page.locator("input[data-for=option-batch]").scroll_into_view_if_needed()
    page.evaluate("window.scrollTo(0, 600)")
    box = page.locator("#bar").bounding_box()
    assert box["y"] >= 0 and box["height"] < 80 and memory in page.inner_text("#bar-memory")
    page.focus("input[data-for=option-batch]")
    page.keyboard.press("ArrowLeft")
    value_of(page, "memory", memory)
    assert memory not in page.inner_text("#bar-memory")


def test_the_answer_before_is_dimmed_while_a_new_one_is_read(page: Any, demo: Served) -> None:
    page.goto(f"{demo.url}/?model=resnet18&device=V100&batch=8&dataset=imagenet-1k&epochs=1")
    for part in ("answer", "memory", "scaling", "plan", "evidence"):
        page.wait_for_selector(f"[data-part={part}][aria-busy=false]", state="attached", timeout=WAIT)
    assert page.locator(".stale").count() == 0
    held: list[Any] = []

    def hold(route: Any) -> None:
        """The chart of memory is asked apart from the answer."""
        if "draw" in route.request.post_data_json:
            route.continue_()
        else:
            held.append(route)

    page.route("**/api/v1/forecast", hold)
    before = page.inner_text("#memory")
    page.fill("#option-model", "resnet152")
    page.wait_for_timeout(500)
    assert page.inner_text("#memory") == before and held
    assert float(page.locator("#memory >> xpath=ancestor::section").evaluate("e => getComputedStyle(e).opacity")) < 0.5
    for route in held:
        route.continue_()
    page.unroute("**/api/v1/forecast")
    page.wait_for_selector(".big[aria-busy=false]", timeout=WAIT)
    assert page.inner_text("#memory") != before


def test_after_an_error_nothing_of_the_model_before_stays(page: Any, demo: Served, tmp_path: Path) -> None:
    address = f"{demo.url}/?model=gpt2_xl&device=T4&batch=32&precision=amp&tokens=1000000000"
    (tmp_path / "broken.onnx").write_bytes(b"nothing")
    for how in ("a name", "a file"):
        page.goto(address)
        for part in ("answer", "memory", "scaling", "plan", "evidence"):
            page.wait_for_selector(f"[data-part={part}][aria-busy=false]", state="attached", timeout=WAIT)
        assert "gpt2_xl" in page.inner_text("#copy-text") and page.locator("#notes-card").is_visible()
        if how == "a name":
            page.fill("#option-model", "gpt2_xk")
        else:
            page.set_input_files("#file", str(tmp_path / "broken.onnx"))
        page.wait_for_selector("#fault:not([hidden])", timeout=WAIT)
        page.wait_for_timeout(1500)  # what was asked before would be drawn by now
        assert [page.inner_text(f"#{name}") for name in ("time", "memory", "cost")] == ["–"] * 3
        assert page.locator("#unfit").is_hidden() and page.locator("#notes-card").is_hidden()
        assert page.locator("#scaling canvas, #plan canvas, #offers li, #evidence *, #parts *").count() == 0
        assert page.inner_text("#copy-text") == "" and page.inner_text("#memory-said") == ""
        assert page.locator(".stale, .dimmed").count() == 0


def test_a_file_of_a_model_is_sent_and_forecast(page: Any, demo: Served, tmp_path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper

    weight = helper.make_tensor("w", TensorProto.FLOAT, [4, 3], [0.0] * 12)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])],
        [weight],
    )
    onnx.save(helper.make_model(graph), tmp_path / "tiny.onnx")
    page.goto(f"{demo.url}/?model=resnet18&device=V100&batch=8")
    value_of(page, "memory")
    page.set_input_files("#file", str(tmp_path / "tiny.onnx"))
    says(page, "file-said", "parameters")
    assert page.input_value("#option-model").startswith("upload:")
    says(page, "copy-text", "epochcast forecast tiny.onnx")
    (tmp_path / "broken.onnx").write_bytes(b"nothing")
    page.set_input_files("#file", str(tmp_path / "broken.onnx"))
    says(page, "file-said", "broken.onnx is")


def test_a_run_goes_on_before_the_eyes(page: Any, demo: Served) -> None:
    page.goto(f"{demo.url}/runs")
    says(page, "stream", "live")
    report(demo, "seen-live")
    page.wait_for_selector("text=seen-live", timeout=WAIT)
    page.click("text=vit-stalled")
    assert value_of(page, "remaining") != "–"
    page.wait_for_selector("#steps canvas", timeout=WAIT)
    page.wait_for_selector("#fan canvas", timeout=WAIT)
    says(page, "drift", "changed")


def test_a_run_without_reports_is_not_shown_as_running(page: Any, busy: Served, folder: Path) -> None:
    report(busy, "gone")
    with open_store(str(folder / "busy.db")) as store:
        store.note(store.run("gone").id, seen_at_seconds=time.time() - 3 * 86_400)
    page.goto(f"{busy.url}/runs")
    row = page.locator("#runs tr", has_text="gone")
    assert "no report for 3 d" in row.inner_text() and "running" not in row.inner_text()
    page.click("text=gone")
    says(page, "remaining", "no report for 3 d")
    assert page.inner_text("#ends") == "–"


def test_the_chart_of_steps_follows_a_run_that_reports_all_the_time(page: Any, busy: Served) -> None:
    report(busy, "steady", 1, 6_000)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/observations" in request.url else None)
    page.goto(f"{busy.url}/runs/steady")
    label, newest = "Chart: seconds per step, measured up to step {}, against the forecast", 6_000
    page.wait_for_selector(f"#steps[aria-label='{label.format('60,000')}']", timeout=WAIT)
    assert page.locator("#steps canvas").count() == 1
    until = time.monotonic() + WAIT / 1000
    while len(asked) < 3:
        assert time.monotonic() < until, "nothing is drawn again while reports come"
        report(busy, "steady", newest := newest + 1, 1)
        page.wait_for_timeout(300)
    report(busy, "steady", newest := newest + 1, 1)
    page.wait_for_selector(f"#steps[aria-label='{label.format(f'{10 * newest:,}')}']", timeout=WAIT)


# Boxes of what is in a cell: none leaves the cell, none lies over another.
OVERLAPS = """() => {
  const found = [];
  for (const cell of document.querySelectorAll("th, td")) {
    const own = cell.getBoundingClientRect();
    const boxes = [...cell.querySelectorAll("progress")].map((bar) => bar.getBoundingClientRect());
    const words = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (words.nextNode()) {
      const range = document.createRange();
      range.selectNodeContents(words.currentNode);
      boxes.push(range.getBoundingClientRect());
    }
    boxes.filter((box) => box.width).forEach((box, place, all) => {
      const is_over = (other) => box.left < other.right - 1 && other.left < box.right - 1
        && box.top < other.bottom - 6 && other.top < box.bottom - 6;
      const is_out = box.right > own.right + 1 || box.left < own.left - 1;
      const others = all.slice(place + 1);
      if (is_out || others.some(is_over)) { found.push(`${cell.innerText}: ${box.left} to ${box.right}`); }
    });
  }
  return found;
}"""


@pytest.mark.parametrize("page", [(390, 844), (820, 1180), (1400, 900), (1920, 1080)], indirect=True)
def test_nothing_in_the_table_of_runs_lies_over_something_else(page: Any, demo: Served) -> None:
    page.goto(f"{demo.url}/runs")
    page.wait_for_selector("#runs tbody tr", timeout=WAIT)
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_click_near_an_offer_takes_that_machine(page: Any, demo: Served) -> None:
    page.goto(demo.url)
    says(page, "plan-said", "Click one to take it")
    canvas = page.locator("#plan canvas")
    canvas.scroll_into_view_if_needed()
    size = canvas.bounding_box()
    before = page.input_value("#option-device")
    for across in range(10, 60, 5):
        for down in range(30, 90, 5):
            page.mouse.click(size["x"] + size["width"] * across / 100, size["y"] + size["height"] * down / 100)
            if page.input_value("#option-device") != before:
                value_of(page, "time")
                return
    raise AssertionError("no click was near an offer")


def test_an_offer_is_taken_by_the_keyboard_and_the_batch_of_the_job_stays(page: Any, demo: Served) -> None:
    page.goto(f"{demo.url}/?model=resnet18&device=V100&gpus=2&batch=64&dataset=imagenet-1k&epochs=1")
    page.wait_for_selector("#offers button", timeout=WAIT)
    page.locator("#offers button").last.focus()
    page.keyboard.press("Enter")
    gpus, batch = (int(page.input_value(f"#option-{name}")) for name in ("gpus", "batch"))
    assert gpus > 2 and gpus * batch == 128
    value_of(page, "time")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", {"model_type": "bert", "architectures": ["BertModel"], "num_hidden_layers": 2}),
        ("spec.toml", 'name = "mine"\ninput_shape = [3, 32, 32]\n'),
    ],
)
def test_a_hugging_face_config_is_sent_and_others_are_told_what_is_wrong(
    page: Any, demo: Served, tmp_path: Path, name: str, content: Any
) -> None:
    (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content))
    page.goto(f"{demo.url}/?model=resnet18&device=V100&batch=8")
    value_of(page, "memory")
    page.set_input_files("#file", str(tmp_path / name))
    if name == "config.json":
        says(page, "file-said", "parameters")
        assert page.input_value("#option-model").startswith("upload:") and value_of(page, "memory") != "–"
        assert page.locator("#fault").is_hidden()
    else:
        says(page, "file-said", "spec.toml")


def test_the_queue_shows_who_runs_where_and_why_others_wait(page: Any, demo: Served) -> None:
    page.goto(f"{demo.url}/queue")
    page.wait_for_selector("#gantt canvas", timeout=3 * WAIT)
    assert page.locator("#jobs tbody tr").count() == 5
    assert "night" in page.inner_text("#which") and "until" in page.inner_text("#jobs")
    says(page, "said", "5 jobs")
    page.click("#again")
    says(page, "changes", "Planned again: nothing changes.")
    page.click("#jobs >> text=segment")
    page.wait_for_url("**/runs/night/segment", timeout=WAIT)
    page.click("text=Queue night")
    page.wait_for_url("**/queue?queue=night", timeout=WAIT)


def test_the_table_of_errors(page: Any, demo: Served) -> None:
    page.goto(f"{demo.url}/accuracy")
    assert page.locator("tbody tr").count() > 10


@pytest.mark.parametrize("page", [(390, 844)], indirect=True)
@pytest.mark.parametrize("path", ["/", "/runs", "/runs/vit-stalled", "/queue", "/accuracy"])
def test_pages_fit_a_phone(page: Any, demo: Served, path: str) -> None:
    page.goto(demo.url + path)
    page.wait_for_timeout(1500)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_an_empty_server_says_what_to_do_first(page: Any, server: Served) -> None:
    page.goto(f"{server.url}/runs")
    assert "ec.track" in page.inner_text("#empty") and server.url in page.inner_text("#empty")


PICTURES = Path(__file__).parents[3] / "docs" / "pictures"
MOST_PICTURE_BYTES = 300_000


@pytest.mark.parametrize(("theme", "name"), [("light", "dashboard.png"), ("dark", "dashboard-dark.png")])
def test_the_pictures_of_the_dashboard_are_those_of_its_first_page(
    browser: Any, busy: Served, request: pytest.FixtureRequest, theme: str, name: str
) -> None:
    """Fonts differ from machine to machine: size and kind are compared. `pytest --renew` takes the pictures anew."""
    context = browser.new_context(viewport={"width": 1280, "height": 960}, color_scheme=theme)
    tab = context.new_page()
    tab.goto(busy.url)
    for chart in ("#scaling canvas", "#plan canvas"):
        tab.wait_for_selector(chart, timeout=WAIT)
    tab.wait_for_function("document.querySelectorAll('.stale').length === 0", timeout=WAIT)
    tab.wait_for_timeout(500)
    taken = tab.screenshot()
    context.close()
    if request.config.getoption("--renew"):
        PICTURES.mkdir(exist_ok=True)
        (PICTURES / name).write_bytes(taken)
    kept = (PICTURES / name).read_bytes()
    assert kept[:24] == taken[:24], "the signature of a PNG, its width and height"
    assert max(len(kept), len(taken)) < MOST_PICTURE_BYTES


def test_text_has_enough_contrast_in_both_themes(browser: Any, demo: Served) -> None:
    """WCAG 2.1 AA: 4.5 to 1 for text, of the colours that the style sheet sets."""
    for theme in ("light", "dark"):
        context = browser.new_context(color_scheme=theme)
        tab = context.new_page()
        tab.goto(f"{demo.url}/accuracy")
        names = ["ink", "soft", "accent", "fault", "fault-paper", "card", "paper", "good", "warn", "on-accent"]
        style = "getComputedStyle(document.documentElement)"
        found = {name: tab.evaluate(f"{style}.getPropertyValue('--{name}').trim()") for name in names}
        pairs = [("ink", "card"), ("ink", "paper"), ("soft", "card"), ("soft", "paper"), ("accent", "card")]
        pairs += [
            ("fault", "fault-paper"),
            ("fault", "card"),
            ("good", "card"),
            ("warn", "card"),
            ("on-accent", "accent"),
        ]
        for text, ground in pairs:
            assert contrast(found[text], found[ground]) >= 4.5, (theme, text, ground)
        context.close()


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
