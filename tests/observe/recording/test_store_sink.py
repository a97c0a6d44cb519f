"""Rows in a real database."""

from pathlib import Path

import pytest

import epochcast as ec
from epochcast.observe.store.store_opening import open_store


def record(url: str, begin: int, end: int, why: str = "") -> None:
    run = ec.track(job="mine", total=20, start=begin, to=url)
    for _ in range(begin, end):
        run.step(loss=0.5)
        run.settle()
    with run.pause("validation"):
        pass
    run.close(why)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


def test_a_run_and_its_reports_are_kept(url: str) -> None:
    record(url, 0, 20)
    with open_store(url) as store:
        run = store.run("mine")
        rows = list(store.observations(run.id))
    assert (run.state, run.job_name, run.step, run.total_steps) == ("ended", "mine", 20, 20)
    assert sorted((row.step, row.phase) for row in rows) == sorted(
        [*((float(step), "train") for step in range(1, 21)), (20.0, "validation"), (20.0, "end")]
    )


def test_a_later_attempt_belongs_to_the_same_run_and_its_clock_goes_on(url: str) -> None:
    record(url, 0, 10, "RuntimeError")
    with open_store(url) as store:
        assert store.run("mine").state == "failed"
    record(url, 10, 20)
    with open_store(url) as store:
        (run,) = store.runs()
        rows = [row for row in store.observations(run.id) if row.phase == "train"]
    assert run.state == "ended" and len({row.attempt for row in rows}) == 2
    clocks = [row.clock_seconds for row in rows]
    assert clocks == sorted(clocks, key=lambda clock: clock or 0.0)


def test_a_training_from_its_beginning_is_another_run_of_the_job(url: str) -> None:
    record(url, 0, 20)
    record(url, 0, 20)
    with open_store(url) as store:
        assert [run.job_name for run in store.runs()] == ["mine", "mine"]
