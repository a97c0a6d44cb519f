"""`epochcast schedule run` and `submit`, with processes of this machine."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.schedule.engines.conftest import until
from tests.schedule.engines.test_engines import document, training
from tests.surfaces.cli.conftest import Command

from epochcast.observe.store.store_opening import open_store
from epochcast.schedule.stored_queue import load_queue


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EPOCHCAST_STORE", str(tmp_path / "store.db"))
    return tmp_path


def written(path: Path, *jobs: dict[str, Any]) -> Path:
    path.write_text(json.dumps(document(*jobs)))
    return path


def test_a_queue_is_worked_off_and_every_event_is_a_line(here: Path, command: Command) -> None:
    written(here / "nightly.json", training("a", steps=10), training("b", command="exit 1", retries=0))
    ran = command("schedule run nightly.json --look 0.1s --policy fifo_shared --json")
    assert ran.code == 3  # b failed
    events = [json.loads(line) for line in ran.out.splitlines()]
    assert {(one["event"], one["job"]) for one in events} == {
        ("started", "a"), ("started", "b"), ("finished", "a"), ("failed", "b"), ("done", None)
    }  # fmt: skip
    last = events[-1]
    assert (last["jobs"], last["running"]) == ({"ended": 1, "failed": 1}, [])
    assert last["dollars"] > 0


def test_an_interrupted_scheduler_leaves_its_jobs_and_says_so(here: Path, command: Command) -> None:
    written(here / "q.json", training("a", steps=2000))
    words = [
        sys.executable,
        "-m",
        "epochcast",
        "schedule",
        "run",
        "q.json",
        "--look",
        "0.1s",
        "--policy",
        "fifo_shared",
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        until((here / "checkpoints/a/starts").exists, "it trains")
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "1 jobs keep running" in said and "continue with: epochcast schedule run q --engine local" in said
    more = written(here / "more.json", training("b", steps=10))
    assert command(f"schedule submit q {more.name} --json").json["added"] == ["b"]
    with subprocess.Popen([*words, "--stop-jobs"], stdout=subprocess.PIPE, text=True) as process:
        until((here / "checkpoints/b/starts").exists, "the new job trains, too")
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert "a has stopped with" in said and "no job runs" in said
    with open_store() as store:
        queue = load_queue(store, "q")
    assert len([start for start in queue.starts if start.job == "a"]) == 1
    assert not queue.open_starts()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("run none.json", "there is no file none.json"),
        ("run none", "no queue called 'none'"),
        ("run q.json --engine kubernetes", "engine must be local, ray or slurm, got 'kubernetes'"),
        ("run q.json --policy lucky", "no policy called 'lucky'"),
        ("run q.json --look 0s", "--look must be above 0"),
        ("run plan.json", "job 'a' has no command: it can be planned, not run"),
        ("run q.json --engine ray --address http://127.0.0.1:9", "no Ray dashboard answers at http://127.0.0.1:9"),
        ("submit none q.json", "no queue called 'none'"),
    ],
)
def test_what_is_wrong_is_one_line(here: Path, command: Command, line: str, message: str) -> None:
    written(here / "q.json", training("a"))
    job = {name: value for name, value in training("a").items() if name != "command"}
    written(here / "plan.json", job)
    ran = command(f"schedule {line}")
    assert ran.code == 2
    assert message in ran.err and ran.err.count("\n") == 1
