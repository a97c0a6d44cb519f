"""Jobs that are added to a kept queue and cancelled in it, on SQLite and on PostgreSQL."""

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.schedule.test_stored_queue import a_queue, running, state_at
from tests.schedule.test_workload_file import JOB

from epochcast.errors import BadInput, UnknownName
from epochcast.observe.store.store import Store
from epochcast.queues import read_queue
from epochcast.schedule.queue_changes import cancel, submit
from epochcast.schedule.queue_file import runnable_queue
from epochcast.schedule.queue_lease import take_queue
from epochcast.schedule.stored_queue import load_queue, save_queue


def test_a_job_that_waits_is_cancelled_at_once_where_nobody_works_on_the_queue(store: Store) -> None:
    save_queue(store, "q", a_queue({}, {"id": "b", "after": ["a"]}), 1000.0)
    (told,), is_worked_on = cancel(store, "q", ["a"])
    assert (told.is_over, told.is_running, told.followers, is_worked_on) == (True, False, ("b",), False)
    kept = load_queue(store, "q").jobs["a"]
    assert (kept.state, kept.is_over, kept.reason) == ("cancelled", True, "it was cancelled")
    assert list(state_at(store, 1001.0).live) == []


def test_who_is_cancelled_is_not_late(store: Store) -> None:
    save_queue(store, "q", a_queue(), 1000.0)
    cancel(store, "q", ["a"])
    assert load_queue(store, "q").dollars(9e9)[1] == 0


def test_where_a_scheduler_works_or_a_job_was_left_running_it_is_a_wish(store: Store) -> None:
    save_queue(store, "q", a_queue({}, {"id": "b"}), 1000.0)
    running(store, 1010.0)
    (left,), is_worked_on = cancel(store, "q", ["a"])
    assert (left.is_over, left.is_running, is_worked_on) == (False, True, False)
    held, _ = take_queue(store, "q", "local", "fifo")
    (waits,), is_worked_on = cancel(store, "q", ["b"])
    assert (waits.is_over, is_worked_on) == (False, True)
    assert [one.state for one in load_queue(store, "q").jobs.values()] == ["running", "waiting"]
    assert list(state_at(store, 1020.0).live) == []
    held.release()


def test_of_jobs_to_cancel_one_that_is_over_or_unknown_cancels_none(store: Store) -> None:
    save_queue(store, "q", a_queue({}, {"id": "b"}), 1000.0)
    with pytest.raises(UnknownName, match="no job called 'bb'; known: a, b"):
        cancel(store, "q", ["a", "bb"])
    assert load_queue(store, "q").jobs["a"].state == "waiting"
    cancel(store, "q", ["a"])
    with pytest.raises(BadInput, match="job 'a' of the queue 'q' is over: it was cancelled"):
        cancel(store, "q", ["b", "a"])
    assert load_queue(store, "q").jobs["b"].state == "waiting"


def test_a_job_may_be_submitted_after_one_that_is_there(store: Store, tmp_path: Path) -> None:
    save_queue(store, "q", a_queue(), 1000.0)
    rows = [{**JOB, "id": "b", "command": ["true"], "after": ["a"]}, {**JOB, "id": "c", "after": ["z"]}]
    kept = load_queue(store, "q")
    # A file of jobs alone: the machines are the queue's.
    read = read_queue({"jobs": rows}, datetime.now(UTC), into=kept)
    assert [one.why for one in read.refused] == ["job 'c' comes after 'z', which is not in the queue"]
    assert submit(store, "q", runnable_queue(read.document, tmp_path, kept.jobs)) == ["b"]
    assert load_queue(store, "q").jobs["b"].job.after == ("a",)
    assert list(state_at(store, time.time()).live) == ["a"]


def test_a_job_after_one_that_was_cancelled_is_refused(store: Store, tmp_path: Path) -> None:
    save_queue(store, "q", a_queue(), 1000.0)
    cancel(store, "q", ["a"])
    kept = load_queue(store, "q")
    row = {**JOB, "id": "b", "command": ["true"], "after": ["a"]}
    read = read_queue({"jobs": [row]}, datetime.now(UTC), into=kept)
    with pytest.raises(BadInput, match="job 'b' comes after 'a', which was cancelled"):
        submit(store, "q", runnable_queue(read.document, tmp_path, kept.jobs))
