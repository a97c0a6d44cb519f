"""The pages of runs in a real browser: ten thousand of them, labels, comparison, cards, and how one is going."""

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import insert
from tests.surfaces.web.browser import CHROMIUM, WAIT, launched, opened_tab, report, says
from tests.surfaces.web.conftest import Served

from epochcast.observe.runs.report import Report
from epochcast.observe.store.database_tables import runs
from epochcast.observe.store.run_tags import tags_text
from epochcast.observe.store.store_opening import open_store

MANY, PAGE = 10_000, 50
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here; `make test` installs it where it can")


def filled(database: str) -> None:
    """Many runs; the number of a run says its place in every order."""
    now, chance = time.time(), random.Random(1)
    states = ("running", "ended", "failed", "stopped")
    with open_store(database) as store, store.writing() as connection:
        for first in range(0, MANY, 500):
            connection.execute(insert(runs), [row(number, states, now, chance) for number in range(first, first + 500)])


def row(number: int, states: tuple[str, ...], now: float, chance: random.Random) -> dict[str, Any]:
    left = {"low": number * 0.9, "mid": float(number), "high": number * 1.2, "coverage": 0.9}
    standing = {
        "step": 5.0,
        "total_steps": 10.0,
        "total_told_by": "reports",
        "step_seconds": 1.0,
        "elapsed_seconds": 9.0,
    }
    return {
        "key": uuid4().hex,
        "name": f"run-{number:05}",
        "gpus": 1,
        "nodes": 1,
        "device": ("T4", "A100")[number % 2],
        "host": f"node{number % 20}",
        "place": {},
        "state": states[number % 4],
        "added_at_seconds": now,
        "seen_at_seconds": now,
        "step": 5.0,
        "total_steps": 10.0,
        "progress": {**standing, "remaining_seconds": left, "dollars_so_far": chance.random()},
        "project": ("vision", "language")[number % 2],
        "tags": tags_text(("nlp",)) if number % 1000 == 3 else None,
    }


@pytest.fixture(scope="module")
def many(folder: Path) -> Iterator[Served]:
    filled(str(folder / "many.db"))
    served = Served("--database", str(folder / "many.db"), "--folder", str(folder / "many-uploads"), "--workers", "1")
    yield served
    served.end()


@pytest.fixture(scope="module")
def demo() -> Iterator[Served]:
    served = Served("--demo", "--workers", "1")
    yield served
    served.end()


@pytest.fixture(scope="module")
def busy(folder: Path) -> Iterator[Served]:
    """A server whose runs are those that tests send."""
    served = Served(
        "--database", str(folder / "labels.db"), "--folder", str(folder / "label-uploads"), "--workers", "1"
    )
    yield served
    served.end()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture
def page(browser: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    with opened_tab(browser, request.node.name, 1400, 900) as tab:
        yield tab


def listed(page: Any) -> list[str]:
    """The names of runs, from the top."""
    return [str(name) for name in page.locator("#runs tbody td:nth-child(2) > a:first-child").all_inner_texts()]


def lists(page: Any, names: list[str]) -> None:
    """Wait until the page lists these runs, in this order."""
    shown = "names => JSON.stringify([...document.querySelectorAll('#runs tbody td:nth-child(2) > a:first-child')]"
    page.wait_for_function(f"{shown}.map(a => a.innerText)) === JSON.stringify(names)", arg=names, timeout=WAIT)


def test_the_choice_of_columns_opens_inside_the_window(page: Any, many: Served) -> None:
    for width in (390, 820, 1100, 1400):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"{many.url}/runs")
        page.click("text=Columns")
        box = page.locator("#columns").bounding_box()
        assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= width, width


def test_ten_thousand_runs_come_in_pages_and_stay_in_order_while_others_report(
    page: Any, many: Served, folder: Path
) -> None:
    page.goto(f"{many.url}/runs")
    newest = [f"run-{number:05}" for number in range(MANY - 1, MANY - 1 - PAGE, -1)]
    lists(page, newest)
    says(page, "stream", "live")
    assert "1–50 of 10,000" in page.inner_text("#range")
    with open_store(str(folder / "many.db")) as store:
        for number in (4, MANY - 4, 5_000, MANY - 20):  # those that run
            store.record(store.run(f"run-{number:05}").id, [Report(6.0, clock_seconds=11.0)])
    report(many, "newer")
    lists(page, ["newer", *newest[:-1]])
    page.click("#after")
    lists(page, [newest[-1], *(f"run-{number:05}" for number in range(MANY - 1 - PAGE, MANY - 2 * PAGE, -1))])
    page.reload()  # the address is the page
    assert "page=2" in page.url
    lists(page, [newest[-1], *(f"run-{number:05}" for number in range(MANY - 1 - PAGE, MANY - 2 * PAGE, -1))])
    assert page.evaluate("document.documentElement.scrollHeight") < 6_000


def test_runs_are_searched_filtered_and_sorted(page: Any, many: Served) -> None:
    page.goto(f"{many.url}/runs")
    page.wait_for_selector("#runs tbody tr")
    page.fill("#search", "run-0123 node11")
    lists(page, ["run-01231"])
    page.fill("#search", "")
    page.select_option("[data-filter=tag]", "nlp")
    lists(page, [f"run-{number:05}" for number in range(9003, 0, -1000)])
    page.select_option("[data-filter=tag]", "")
    page.select_option("[data-filter=state]", "running")
    page.select_option("[data-filter=project]", "vision")
    page.click("[data-order=remaining]")
    page.wait_for_selector("th[aria-sort=descending] [data-order=remaining]")
    by_most_left = [f"run-{4 * number:05}" for number in range(MANY // 4 - 1, MANY // 4 - 1 - PAGE, -1)]
    lists(page, by_most_left)
    page.select_option("[data-filter=state]", "silent")
    page.wait_for_selector("#nothing:not([hidden])")
    page.goto(f"{many.url}/runs?state=running&project=vision&order=remaining&ascending=true")
    page.wait_for_selector("th[aria-sort=ascending] [data-order=remaining]")
    lists(page, [f"run-{4 * number:05}" for number in range(PAGE)])


def test_chosen_columns_are_remembered(page: Any, many: Served) -> None:
    page.goto(f"{many.url}/runs")
    page.wait_for_selector("#runs tbody tr")
    assert page.locator("#runs th", has_text="Host").count() == 0
    page.click("text=Columns")
    page.check("#columns >> text=Host")
    page.uncheck("#columns >> text=Cost so far")
    page.reload()
    page.wait_for_selector("#runs tbody tr")
    assert page.locator("#runs th", has_text="Host").count() == 1
    assert page.locator("#runs th", has_text="Cost").count() == 0
    assert page.locator("#runs td", has_text="node19").count() > 0


def test_a_run_gets_a_title_and_tags_is_archived_shared_and_deleted(page: Any, browser: Any, busy: Served) -> None:
    report(busy, "team/first")
    page.goto(f"{busy.url}/runs/team/first")
    page.fill("#title", "Baseline")
    page.fill("#tag-list", "nlp, prod")
    page.click("#labels >> text=Save")
    says(page, "name", "Baseline")
    report(busy, "team/first", 20)  # under its own name
    assert busy.client.get("/api/v1/runs").json()["count"] == 1
    page.click("#share")
    page.wait_for_selector("#card-link")
    card = busy.url + page.get_attribute("#card-link", "href")
    with opened_tab(browser, "card", 400, 260) as other:
        other.goto(card)
        assert "Baseline" in other.inner_text("h1") and "%" in other.inner_text("main")
    page.click("#share")
    says(page, "share", "Share")
    assert busy.client.get(card).status_code == 404
    page.goto(f"{busy.url}/runs")
    lists(page, ["Baseline"])
    assert "team/first" in page.inner_text("#runs tbody") and "prod" in page.inner_text("#runs tbody")
    page.check("#runs tbody input")
    page.click("#archive")
    page.wait_for_selector("#runs", state="hidden")
    page.goto(f"{busy.url}/runs?archived=true")
    lists(page, ["Baseline"])
    page.check("#runs tbody input")
    page.once("dialog", lambda dialog: dialog.accept())
    page.click("#delete")
    page.wait_for_selector("#nothing:not([hidden])")
    assert busy.client.get("/api/v1/runs/team/first").status_code == 404


def test_two_runs_are_compared_on_one_chart(page: Any, demo: Served) -> None:
    page.goto(f"{demo.url}/runs")
    for name in ("vit-stalled", "imagenet-a100"):
        page.check(f"[aria-label='select {name}']")
    page.click("#compare")
    page.wait_for_selector("#chart canvas", timeout=WAIT)
    for kind, words in (("loss", "loss"), ("remaining", "hours remaining"), ("cost", "expected cost")):
        page.click(f"[data-kind={kind}]")
        page.wait_for_selector(f"#chart[aria-label^='Chart: {words}']", timeout=WAIT)
        page.wait_for_selector("#chart canvas")
    page.focus("[data-kind=cost]")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("[data-kind=pace][aria-selected=true]")
    assert page.locator("#table tbody tr").count() == 2 and "1.3" in page.inner_text("#table")
    page.click(".data summary")
    page.wait_for_selector(".data tbody tr")
    assert page.locator(".data tbody tr").count() > 50


def test_a_run_page_says_how_it_is_going(page: Any, demo: Served) -> None:
    page.goto(f"{demo.url}/runs/vit-stalled")
    says(page, "facts", "vit_b_16")
    assert "4 × A100" in page.inner_text("#facts") and "made-up" in page.inner_text("#facts")
    says(page, "budget-said", "over the budget of $40.00")
    says(page, "drift", "changed by a factor of 1.3")
    says(page, "verdict", "its forecast")
    for chart in ("fan", "steps", "loss"):
        page.wait_for_selector(f"#{chart} canvas", timeout=WAIT)
    page.select_option("#steps-unit", "rate")
    page.wait_for_selector("#steps[aria-label^='Chart: samples per second']", timeout=WAIT)
    page.click("#links >> text=Its forecast")
    page.wait_for_url("**/?model=vit_b_16**", timeout=WAIT)
    assert page.input_value("#option-gpus") == "4" and page.input_value("#option-epochs") == "30"


def test_a_failed_run_says_why_and_where_it_stopped(page: Any, busy: Served) -> None:
    start = {"job": "broken", "attempt": 1, "at": time.time() - 60, "total_steps": 1000}
    train = {"ec": "train", "step": 250, "at": time.time() - 9, "steps": 250, "step_seconds": 0.1}
    why = {"ec": "stopped", "step": 250, "at": time.time(), "what": "OutOfMemoryError: CUDA out of memory"}
    busy.client.post("/api/v1/observations", json={"start": start, "observations": [train, why]}).raise_for_status()
    page.goto(f"{busy.url}/runs/broken")
    says(page, "state", "CUDA out of memory")
    says(page, "progress-said", "stopped at 25.0 %")
    assert page.inner_text("#remaining") == "failed"


def test_after_the_server_was_away_a_page_fetches_again(page: Any, folder: Path) -> None:
    database, uploads = str(folder / "away.db"), str(folder / "away-uploads")
    first = Served("--database", database, "--folder", uploads, "--workers", "1")
    port = first.url.rpartition(":")[2]
    report(first, "passing")
    page.goto(f"{first.url}/runs/passing")
    says(page, "state", "running")
    says(page, "stream", "live")
    first.end()
    says(page, "stream", "the server is away, trying again; data is")
    with open_store(database) as store:
        run = store.run("passing")
        store.record(run.id, [Report(200.0, clock_seconds=50.0, attempt=1)])
        store.note(run.id, state="ended", ended_at_seconds=time.time() - 3600, seen_at_seconds=time.time() - 3600)
    second = Served("--database", database, "--folder", uploads, "--workers", "1", "--port", port)
    says(page, "remaining", "ended")
    says(page, "progress-said", "100 %")
    says(page, "stream", "live")
    second.end()


def test_the_end_of_a_log_is_shown_and_no_other_file(page: Any, busy: Served, folder: Path) -> None:
    log = folder / "train.log"
    log.write_text("first line\n" * 20_000 + "10%|#   |\r\x1b[32m20%|##  |\nlast line\n")
    with open_store(str(folder / "labels.db")) as store:
        run = store.open_run("logged", source=str(log))
        store.record(run.id, [Report(1.0, clock_seconds=1.0)])
        store.open_run("tracked", source="ec.track")
    page.goto(f"{busy.url}/runs/logged")
    says(page, "log", "last line")
    shown = page.inner_text("#log").splitlines()
    assert shown[-2:] == ["20%|##  |", "last line"] and len(shown) <= 101
    assert busy.client.get("/api/v1/runs/tracked/log").status_code == 404
