"""Pages that ask one question each, in a real browser: plan, diff, check, history, accuracy, tokens."""

import csv
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.surfaces.web.browser import CHROMIUM, WAIT, launched, opened_tab, report, says
from tests.surfaces.web.conftest import Served

from epochcast.observe.store.store_opening import open_store

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here; `make test` installs it where it can")


@pytest.fixture(scope="module")
def asked(folder: Path) -> Iterator[Served]:
    served = Served("--database", str(folder / "asked.db"), "--folder", str(folder / "asked-uploads"))
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


def test_a_plan_chooses_maps_the_offers_and_says_how_old_prices_are(page: Any, asked: Served) -> None:
    page.goto(
        f"{asked.url}/plan?model=resnet18&batch=256&samples=50000&epochs=10&deadline_seconds=6h&devices=A100,V100"
    )
    page.wait_for_selector("#map canvas", timeout=WAIT)
    shown = page.inner_text("#offers")
    assert "(chosen)" in shown and "d old" in shown and "/h" in shown
    assert all("A100" in row or "V100" in row for row in page.locator("#offers tbody tr").all_inner_texts())
    page.fill("#option-deadline_seconds", "1s")
    page.wait_for_function("() => !document.querySelector('#offers').innerText.includes('(chosen)')", timeout=WAIT)
    page.fill("#option-deadline_seconds", "soon")
    says(page, "fault", "soon")
    assert page.inner_text("#offers") == ""
    page.fill("#option-deadline_seconds", "6h")
    page.wait_for_selector("#offers a", timeout=WAIT)
    page.locator("#offers a").first.click()
    page.wait_for_selector("#time", timeout=WAIT)
    assert page.input_value("#option-model") == "resnet18" and page.input_value("#option-device") != ""


def test_two_jobs_stand_side_by_side(page: Any, asked: Served) -> None:
    page.goto(f"{asked.url}/diff?base.model=resnet18&base.batch=32&head.model=resnet18&head.batch=64&place.device=V100")
    page.wait_for_selector("#figures tbody tr", timeout=WAIT)
    assert "×" in page.inner_text("#figures") and "global batch" in page.inner_text("#figures")
    page.fill("#head-model", "resnet152")
    page.wait_for_selector("#layers tbody tr", timeout=WAIT)
    page.fill("#head-model", "resnet1")
    says(page, "fault", "resnet1")
    assert page.inner_text("#figures") == "" and "head.model=resnet1" in page.url


def test_a_pasted_bar_is_checked(page: Any, asked: Served) -> None:
    page.goto(f"{asked.url}/check?model=resnet50&device=V100&batch=64")
    page.fill("#observed", "Epoch 1:  12%|█▎   | 1203/10009 [2:00:19<14:40:00,  6.00s/it]")
    page.click("button[type=submit]")
    says(page, "verdict", "s")
    assert page.inner_text("#verdict") in ("slower", "suspicious")
    assert page.locator("#causes tbody tr").count() >= 1
    page.fill("#observed", "/etc/passwd")
    page.click("button[type=submit]")
    page.wait_for_selector("#fault:not([hidden])", timeout=WAIT)
    assert "root" not in page.inner_text("body")
    assert page.inner_text("#verdict") == "–"


def test_no_file_of_the_server_is_checked(asked: Served, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("12%|#  | 1203/10009 [05:12<38:05, 3.85it/s]\n")
    answer = asked.client.post(
        "/api/v1/check", json={"model": "resnet50", "device": "V100", "batch": 64, "observed": str(log)}
    )
    assert answer.status_code == 422


def test_models_are_compared_on_a_table_that_is_sent_and_removed(page: Any, asked: Served, folder: Path) -> None:
    table = folder / "jobs.csv"
    with table.open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["network", "gpus", "batch", "epoch_seconds"])
        for number in range(60):
            gpus, batch = 2 ** (number % 4), 16 * (1 + number % 5)
            rows.writerow([("small", "large")[number % 2], gpus, batch, (1 + 3 * (number % 2)) * (640 / gpus + batch)])
    page.goto(f"{asked.url}/history")
    page.set_input_files("#table-file", str(table))
    page.click("button[type=submit]")
    page.wait_for_selector("#splits canvas", timeout=3 * WAIT)
    assert "has the smallest mean error" in page.inner_text("#splits")
    assert page.locator("#splits tbody tr").count() > 3
    assert list((folder / "asked-uploads").rglob("*.csv")) == []
    (folder / "paths.csv").write_text("model,batch,epoch_seconds\n" + "/etc/passwd.onnx,8,3\n" * 30)
    page.set_input_files("#table-file", str(folder / "paths.csv"))
    page.click("button[type=submit]")
    says(page, "fault", "files of the server are not read")


def test_accuracy_is_a_picture_a_table_that_sorts_and_the_teams_own_runs(
    page: Any, asked: Served, folder: Path
) -> None:
    report(asked, "done", 1, 50)
    job = {"model": "resnet18", "device": "V100", "batch": 64, "samples": 6400, "epochs": 10}
    asked.client.put("/api/v1/runs/done", json={"job": job}).raise_for_status()
    with open_store(str(folder / "asked.db")) as store:
        store.note(store.run("done").id, state="ended", step_seconds=0.1, ended_at_seconds=time.time())
    page.goto(f"{asked.url}/accuracy")
    page.wait_for_selector("#errors canvas", timeout=WAIT)
    says(page, "own-said", "1 run: median error")
    page.wait_for_selector("#truth canvas", timeout=WAIT)
    page.click("#figures th:nth-child(4) button")
    steps = [int(text) for text in page.locator("#figures tbody td:nth-child(4)").all_inner_texts()]
    assert steps == sorted(steps)


def test_tokens_are_made_used_and_revoked(page: Any, asked: Served) -> None:
    page.goto(f"{asked.url}/tokens")
    page.fill("#name", "nightly")
    page.fill("#project", "vision")
    page.click("#add button")
    page.wait_for_selector("#made:not([hidden])", timeout=WAIT)
    secret = page.inner_text("#secret").strip()
    bearer = {"Authorization": f"Bearer {secret}"}
    assert httpx.get(f"{asked.url}/api/v1/runs", headers=bearer).json()["count"] == 0
    assert httpx.get(f"{asked.url}/api/v1/tokens", headers=bearer).status_code == 403
    page.reload()
    row = page.locator("#tokens tbody tr", has_text="nightly")
    row.wait_for(timeout=WAIT)
    assert "vision" in row.inner_text() and "never" not in row.inner_text() and secret not in page.content()
    page.once("dialog", lambda dialog: dialog.accept())
    page.click("[aria-label='Revoke nightly']")
    page.wait_for_selector("text=revoked", timeout=WAIT)
    end = time.monotonic() + 10
    while httpx.get(f"{asked.url}/api/v1/runs", headers=bearer).status_code != 401:
        assert time.monotonic() < end, "a revoked token is still let in"
        time.sleep(0.5)
