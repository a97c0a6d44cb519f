"""Queues in the store, on SQLite and on PostgreSQL."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update
from tests.schedule.test_workload_file import JOB, TYPE, document

from epochcast.errors import BadInput, UnknownName
from epochcast.observe.store.database_tables import queue_jobs, queue_machines, queue_starts
from epochcast.observe.store.store import Store
from epochcast.schedule.queue_changes import submit
from epochcast.schedule.queue_file import QueueFile, queue_of
from epochcast.schedule.queue_state import QueueState
from epochcast.schedule.stored_queue import changed_jobs, load_queue, queue_names, save_queue, state_of
from epochcast.schedule.workload_jobs import GpuChoice


def a_queue(*jobs: dict[str, Any], **more: Any) -> QueueFile:
    rows = [{**JOB, "command": ["true"], **job} for job in jobs or ({},)]
    return queue_of(document(jobs=rows, **more), Path("/q"))


def state_at(store: Store, now_at_seconds: float) -> QueueState:
    return state_of(load_queue(store, "q"), now_at_seconds)


def running(store: Store, at: float, left: float = 1.0, pace: float = 1.0, **start: Any) -> None:
    """Write down that job a of the only queue runs on two GPUs since a time."""
    of = {"queue_id": load_queue(store, "q").id}
    with store.writing() as connection:
        connection.execute(
            queue_machines.insert().values(**of, number=4, node_type="n1", node="x", rented_at_seconds=at)
        )
        values = {"attempt": 1, "key": "k", "machine": 4, "device": "V100", "gpus": 2, "is_alone": False}
        values |= {"state": "running", "asked_at_seconds": at, **start}
        connection.execute(queue_starts.insert().values(**of, job="a", **values))
        told = {"state": "running", "left_fraction": left, "pace": pace, "told_at_seconds": at, "is_observed": True}
        connection.execute(update(queue_jobs).where(queue_jobs.c.job == "a").values(**told))


def test_a_queue_comes_back_as_it_was_kept(store: Store) -> None:
    queue = a_queue({}, {"id": "b", "submit_seconds": 40, "deadline_seconds": 90})
    assert save_queue(store, "q", queue, 1000.0) == ["a", "b"]
    kept = load_queue(store, "q")
    assert [one.job for one in kept.jobs.values()] == list(queue.workload.jobs)
    assert {name: one.work for name, one in kept.jobs.items()} == queue.works
    assert (kept.fleet, queue_names(store)) == (queue.workload.fleet, ["q"])


def test_the_state_has_who_was_submitted_by_then(store: Store) -> None:
    save_queue(store, "q", a_queue({}, {"id": "b", "submit_seconds": 40, "deadline_seconds": 90}), 1000.0)
    assert list(state_at(store, 1039.0).live) == ["a"]
    later = state_at(store, 1040.0)
    assert (list(later.live), later.seconds) == (["a", "b"], 40.0)


def test_a_running_job_goes_on_at_the_pace_it_had_shown(store: Store) -> None:
    save_queue(store, "q", a_queue(), 1000.0)
    running(store, 1010.0, left=0.8, pace=2.0)
    state = state_at(store, 1022.0)
    one = state.live["a"]
    assert (one.choice, one.machine, one.has_run) == (GpuChoice("V100", 2), 4, True)
    assert one.left == pytest.approx(0.8 - 12 / 60)  # 30 s forecast, twice as slow
    assert state.machines[0].residents == (("a", 2),)
    assert state.next_machine_number == 5
    assert state_at(store, 9999.0).live["a"].left > 0


def test_who_is_being_stopped_waits_and_its_machine_has_room(store: Store) -> None:
    save_queue(store, "q", a_queue(), 1000.0)
    running(store, 1010.0, left=0.8, state="stopping", stop_at_seconds=1012.0)
    state = state_at(store, 1022.0)
    assert (state.live["a"].choice, state.live["a"].left) == (None, 0.8)
    assert state.machines[0].residents == ()


def test_the_bill_counts_machines_until_they_are_returned_and_lateness(store: Store) -> None:
    save_queue(store, "q", a_queue(), 1000.0)
    running(store, 1010.0)
    machines, late = load_queue(store, "q").dollars(1110.0)
    assert machines == pytest.approx(100 * 1.0 / 3600)
    assert late == pytest.approx(10 * 0.01)


def test_the_same_file_again_adds_nothing_and_a_longer_one_its_new_jobs(store: Store) -> None:
    save_queue(store, "q", a_queue(), 1000.0)
    assert save_queue(store, "q", a_queue(), 1100.0) == []
    assert save_queue(store, "q", a_queue({}, {"id": "b"}), 1100.0) == ["b"]
    assert load_queue(store, "q").added_at_seconds == 1000.0


def test_a_job_that_changed_in_the_file_stays_as_it_is_and_is_told(store: Store) -> None:
    save_queue(store, "q", a_queue(), 1000.0)
    changed = a_queue({"deadline_seconds": 200})
    assert save_queue(store, "q", changed, 1100.0) == []
    assert changed_jobs(store, "q", changed) == ["a"]
    assert load_queue(store, "q").jobs["a"].job.deadline_seconds == 100
    assert changed_jobs(store, "q", a_queue()) == []


def test_a_job_that_was_done_in_part_elsewhere_has_less_left(store: Store) -> None:
    save_queue(store, "q", a_queue({"done_fraction": 0.25}), 1000.0)
    assert state_at(store, 1001.0).live["a"].left == 0.75


def test_machines_that_do_not_hold_a_kept_job_are_refused(store: Store) -> None:
    save_queue(store, "q", a_queue(), 1000.0)
    other = a_queue({"id": "b", "run_seconds": {"K80": {"1": 5}}}, node_types=[{**TYPE, "device": "K80"}])
    with pytest.raises(BadInput, match="job 'a' does not fit on any machine"):
        save_queue(store, "q", other, 1100.0)
    assert list(load_queue(store, "q").jobs) == ["a"]


def test_what_is_submitted_later_counts_from_then(store: Store) -> None:
    save_queue(store, "q", a_queue(), 1000.0)
    assert submit(store, "q", a_queue({"id": "b"}), 1500.0) == ["b"]
    job = load_queue(store, "q").jobs["b"].job
    assert (job.submit_seconds, job.deadline_seconds) == (500.0, 600.0)
    with pytest.raises(BadInput, match="has a job 'b' already"):
        submit(store, "q", a_queue({"id": "b"}), 1600.0)


def test_an_unknown_queue_names_the_known_ones(store: Store) -> None:
    save_queue(store, "nightly", a_queue(), 1000.0)
    with pytest.raises(UnknownName, match="no queue called 'q'; known: nightly"):
        load_queue(store, "q")


def test_a_job_that_has_not_shown_its_pace_is_expected_to_be_as_slow_as_the_others(store: Store) -> None:
    save_queue(store, "q", a_queue({}, {"id": "b"}), 1000.0)
    with store.writing() as connection:
        shown = {"pace": 8.0, "is_observed": True}
        connection.execute(update(queue_jobs).where(queue_jobs.c.job == "a").values(**shown))
    live = state_at(store, 1001.0).live
    assert live["a"].pace == 8.0
    assert live["b"].pace == pytest.approx(2.0)  # the third root: two more as forecast
