"""Reports of many runs in one transaction: opened with it, kept once, on both kinds of databases."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from tests.observe.store.conftest import Server

from epochcast.errors import BadInput
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_opening import migrated, open_store
from epochcast.surfaces.web.report_batches import AttemptRuns, ReportRequest, arrival_in, keep_all

BEGAN = 1_763_370_000.0


def arrival(
    job: str, first: int = 0, count: int = 3, attempt: int = 1, project: str | None = None, **start: Any
) -> ReportRequest:
    rows: list[dict[str, Any]] = [
        {"ec": "train", "step": step, "at": BEGAN + step, "steps": 1, "step_seconds": 1.0}
        for step in range(first, first + count)
    ]
    rows += start.pop("more", [])
    told = {"job": job, "attempt": attempt, "at": BEGAN, "total_steps": 100, **start}
    return arrival_in({"start": told, "observations": rows}, project, 1_000)


END = [{"ec": "end", "step": 100, "at": BEGAN + 100}]


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "sqlite":
        with open_store(str(tmp_path / "s.db")) as opened:
            yield opened
        return
    server = request.getfixturevalue("postgres_server")
    url = server.new_database()
    migrated(url)
    with open_store(url) as opened:
        yield opened


@pytest.fixture(scope="module")
def postgres_server() -> Any:
    server = Server()
    yield server
    server.stop()


def steps(store: Store, name: str) -> list[float]:
    return [row.step for row in store.observations(store.run(name).id)]


def test_hundreds_of_new_runs_cost_one_transaction(store: Store) -> None:
    commits: list[int] = []
    event.listen(store.engine, "commit", lambda connection: commits.append(1))
    kept = keep_all(store, AttemptRuns(), [arrival(f"job-{number}") for number in range(300)])
    assert len(commits) == 1
    assert [(one.run, one.rows) for one in kept[:2]] == [("job-0", 3), ("job-1", 3)]
    assert store.count_observations() == 900
    assert {(run.state, run.step, run.total_steps) for run in store.runs()} == {("running", 2.0, 100.0)}


def test_another_server_that_knows_nothing_adds_to_the_same_runs(store: Store) -> None:
    one, other = AttemptRuns(), AttemptRuns()
    keep_all(store, one, [arrival("a"), arrival("b")])
    keep_all(store, other, [arrival("b", 2), arrival("a", 3)])
    keep_all(store, one, [arrival("a", 5)])
    assert steps(store, "a") == [0, 1, 2, 3, 4, 5, 6, 7] and steps(store, "b") == [0, 1, 2, 3, 4]
    assert len(store.runs()) == 2


def test_a_run_that_was_deleted_is_opened_again(store: Store) -> None:
    known = AttemptRuns()
    keep_all(store, known, [arrival("a"), arrival("b")])
    store.delete_run(store.run("a").id)
    keep_all(store, known, [arrival("a", 3), arrival("b", 3)])
    assert steps(store, "a") == [3, 4, 5] and steps(store, "b") == [0, 1, 2, 3, 4, 5]


def test_reports_sent_again_after_the_end_change_nothing(store: Store) -> None:
    last = arrival("a", 97, more=END)
    keep_all(store, AttemptRuns(), [arrival("a"), last])
    before = store.run("a")
    keep_all(store, AttemptRuns(), [last, arrival("a")])
    after = store.run("a")
    assert [run.name for run in store.runs()] == ["a"]
    assert before.state == after.state == "ended" and before.ended_at_seconds == after.ended_at_seconds == BEGAN + 100
    assert [(one.attempt, one.state) for one in store.attempts(after.id)] == [(1, "ended")]


def test_a_new_attempt_of_an_ended_job_is_another_run_unless_it_goes_on(store: Store) -> None:
    known = AttemptRuns()
    keep_all(store, known, [arrival("a", more=END), arrival("b", more=END)])
    keep_all(store, known, [arrival("a", attempt=2), arrival("b", 100, attempt=2, start_step=100)])
    assert sorted(run.name for run in store.runs()) == ["a", "a 2", "b"]
    assert store.run("b").state == "running" and [one.attempt for one in store.attempts(store.run("b").id)] == [1, 2]
    keep_all(store, AttemptRuns(), [arrival("b", more=END)])
    assert store.run("b").state == "running", "the end of the attempt before says nothing of this one"


def test_the_same_name_in_several_projects_is_several_runs(store: Store) -> None:
    asked: list[tuple[str, str | None]] = [("x", "a"), ("x", None), ("x", "b"), ("b/x", "a")]
    kept = keep_all(store, AttemptRuns(), [arrival(job, project=project) for job, project in asked])
    again = keep_all(store, AttemptRuns(), [arrival(job, project=project) for job, project in reversed(asked)])
    assert [one.run for one in kept] == ["a/x", "x", "b/x", "a/b/x"] == [one.run for one in reversed(again)]
    assert [store.run(one.run).project for one in kept] == ["a", None, "b", "a"]


def test_a_run_from_before_projects_stood_in_names_goes_on(store: Store) -> None:
    run = store.open_run("x", project="a")
    kept = keep_all(store, AttemptRuns(), [arrival("x", project="a"), arrival("x", project="b")])
    assert [one.run for one in kept] == ["x", "b/x"] and steps(store, "x") == [0, 1, 2] and run.project == "a"


def test_a_name_that_those_who_see_all_have_taken_is_refused_and_nothing_is_written(store: Store) -> None:
    keep_all(store, AttemptRuns(), [arrival("b/x"), arrival("b/x 1")])
    with pytest.raises(BadInput, match="'x' is taken"):
        keep_all(store, AttemptRuns(), [arrival("new", project="b"), arrival("x", project="b")])
    assert store.find_run("b/new") is None
