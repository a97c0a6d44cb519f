"""Old reports are joined by the stated rule, and stay joined."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.observe.runs.report import Report
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_opening import open_store
from epochcast.observe.store.thinning import KEPT_REPORTS, joined, vacuum

MANY = 5000
LATER = 8 * 24 * 3600.0


def reports(count: int, first: int = 0) -> list[Report]:
    return [Report(float(s), clock_seconds=0.5 * s, step_seconds=0.5 + s % 2) for s in range(first, first + count)]


def test_old_reports_are_joined_to_a_thousand_and_the_first(store: Store) -> None:
    run = store.open_run("r")
    store.record(run.id, [*reports(MANY), Report(100.0, phase="validation", clock_seconds=51.0)])
    done = vacuum(store, now_seconds=time.time() + LATER)
    kept = list(store.observations(run.id))
    trained = [row for row in kept if row.phase == "train"]
    assert (done.rows_before, done.rows_after, len(trained)) == (MANY + 1, KEPT_REPORTS + 2, KEPT_REPORTS + 1)
    assert sum(row.reports for row in trained) == MANY
    assert (trained[0].step, trained[-1].step, trained[-1].clock_seconds) == (0.0, MANY - 1, 0.5 * (MANY - 1))
    assert sum(row.reports * (row.step_seconds or 0) for row in trained) == pytest.approx(MANY)  # the mean is 1 s
    assert done.bytes_after < done.bytes_before or "postgresql" in store.url


def test_young_reports_stay_as_they_came(store: Store) -> None:
    run = store.open_run("r")
    store.record(run.id, reports(MANY))
    assert vacuum(store).rows_after == MANY


def test_a_report_that_was_joined_does_not_come_again(store: Store) -> None:
    run = store.open_run("r")
    store.record(run.id, reports(MANY))
    vacuum(store, now_seconds=time.time() + LATER)
    assert store.record(run.id, reports(MANY + 10)) == 10
    again = vacuum(store, now_seconds=time.time() + LATER)
    assert again.rows_after == KEPT_REPORTS + 1
    assert sum(row.reports for row in store.observations(run.id)) == MANY + 10


def test_runs_that_are_long_over_are_removed_where_that_is_asked(store: Store) -> None:
    for name, state in (("over", "ended"), ("going", "running")):
        store.record(store.open_run(name, state=state).id, reports(3))
    assert vacuum(store, now_seconds=time.time() + LATER).runs_removed == 0
    assert vacuum(store, remove_after_seconds=3600.0, now_seconds=time.time() + LATER).runs_removed == 1
    assert [run.name for run in store.runs()] == ["going"]


def test_space_is_given_back(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    with open_store(str(file)) as store:
        store.record(store.open_run("r").id, reports(20_000))
        done = vacuum(store, now_seconds=time.time() + LATER)
    assert file.stat().st_size == done.bytes_after < done.bytes_before / 5


rows = st.lists(st.floats(0, 1e12), min_size=1, max_size=60, unique=True).map(sorted)


@given(rows)
def test_joining_keeps_first_last_and_the_number_of_reports(steps: list[float]) -> None:
    kept = list(joined([Report(step) for step in steps], steps[0], steps[-1]))
    assert (kept[0].step, kept[-1].step) == (steps[0], steps[-1])
    assert sum(row.reports for row in kept) == len(steps) and len(kept) <= KEPT_REPORTS + 1
    assert list(joined(kept, steps[0], steps[-1])) == kept
