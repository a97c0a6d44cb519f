"""A queue at a moment: times of the clock, machines of the catalogue, and who runs already."""

import re
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from epochcast.errors import BadInput
from epochcast.hardware.machines import find_instance
from epochcast.schedule.node_types import with_instances
from epochcast.schedule.queue_clock import TimedDocument, with_seconds
from epochcast.schedule.queue_document import NodeTypeRow, QueueJobRow, parse_job, parse_queue, row_of
from epochcast.schedule.queue_now import OBSERVED, queue_now
from epochcast.schedule.workload_jobs import Fleet, GpuChoice, QueueWorkload

from .conftest import FOUR, ONE, queued

AT = datetime(2026, 11, 17, 9, 30, tzinfo=UTC)  # a Tuesday


def timed(*rows: dict[str, Any], **more: Any) -> TimedDocument:
    return with_seconds(parse_queue({"node_types": [], "jobs": list(rows), **more}), AT)


def test_without_a_start_now_is_second_0_and_a_deadline_counts_from_the_submission() -> None:
    read = timed({"id": "a", "submit_seconds": 600, "deadline": "2h"})
    assert read.clock.start_at == AT
    assert row_of(read.document.jobs[0]) == {"id": "a", "submit_seconds": 600, "deadline_seconds": 600 + 7200}


def test_times_of_the_clock_become_seconds_from_the_start() -> None:
    row = {"id": "a", "deadline": "Friday 18:00", "submit_at": "2026-11-17T09:10"}
    read = timed(row, start_at="2026-11-17T09:00")
    (job,) = read.document.jobs
    assert job.submit_seconds == 600 and job.deadline_seconds is not None
    assert read.clock.at(job.deadline_seconds) == datetime(2026, 11, 20, 18, tzinfo=UTC)
    # TOML has times of its own; those with a zone keep it
    zone = timezone(timedelta(hours=2))
    assert timed(start_at=datetime(2026, 11, 17, 11, tzinfo=zone)).clock.seconds(AT) == 1800
    assert timed(start_at=date(2026, 11, 17)).clock.seconds(AT) == 9.5 * 3600


def test_a_submission_in_the_past_moves_second_0_back() -> None:
    read = timed({"id": "a", "submit_at": "2026-11-16T09:30", "deadline": "2026-11-16T10:30"})
    assert read.clock.seconds(AT) == 86400
    assert row_of(read.document.jobs[0]) == {"id": "a", "deadline_seconds": 3600.0}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"deadline": "someday"}, "job 'a': deadline must be a time like 2026-11-20T18:00, got 'someday'"),
        ({"submit_at": 7}, "job 'a': submit_at must be a time like 2026-11-20T18:00, got 7"),
        ({"submit_at": "someday"}, "job 'a': submit_at must be a time like 2026-11-20T18:00, got 'someday'"),
        ({"deadline": "2h", "deadline_seconds": 5}, "job 'a' has both deadline and deadline_seconds"),
    ],
)
def test_a_time_that_is_none_refuses_its_job_alone(row: dict[str, Any], message: str) -> None:
    document = timed({"id": "a", **row}, {"id": "b", "deadline": "1h"}).document
    assert [one.job for one in document.refused] == ["a"] and message in document.refused[0].why
    assert [job.id for job in document.jobs] == ["b"]


def test_a_machine_of_the_catalogue_has_its_device_and_price() -> None:
    machine = find_instance("p3.2xlarge")
    (row,), _ = with_instances([NodeTypeRow(instance="p3.2xlarge", quota=2)], AT.date())
    assert row == NodeTypeRow(
        instance="p3.2xlarge",
        quota=2,
        name=machine.name,
        device=machine.device,
        gpus=machine.gpus,
        dollars_per_hour=machine.dollars_per_hour,
    )
    (own,), _ = with_instances([NodeTypeRow(instance="p3.2xlarge", in_house=True, count=1)], AT.date())
    assert own.dollars_per_hour is None
    with pytest.raises(BadInput, match=r"node type 'p3.3xlarge': no instance called"):
        with_instances([NodeTypeRow(instance="p3.3xlarge")], AT.date())
    with pytest.raises(BadInput, match="node type 'n1': spot needs an instance of the catalogue"):
        with_instances([NodeTypeRow(name="n1", spot=True)], AT.date())


def state(**running: Any) -> Any:
    fleet = Fleet(2, (ONE, FOUR))
    jobs = tuple(queued(name, 0.0, 900.0, {1: 100.0, 2: 60.0}) for name in ("a", "b", "c"))
    rows = {name: parse_job({"id": name, "running": told}, 1) for name, told in running.items()}
    return queue_now(QueueWorkload(fleet, jobs), rows, 10.0)


def test_running_jobs_are_on_as_few_machines_as_hold_them() -> None:
    told = {"node_type": "four", "gpus": 2, "done_fraction": 0.25}
    now = state(a=told, b=told)
    (machine,) = now.state.machines
    assert machine.kind == FOUR and machine.residents == (("a", 2), ("b", 2))
    assert now.state.live["a"].choice == GpuChoice("V100", 2) and now.state.live["a"].left == 0.75
    assert [one.job.id for one in now.state.waiting] == ["c"]
    apart = state(a={**told, "machine": "x"}, b={**told, "machine": "y"})
    assert len(apart.state.machines) == 2


# by hand: half of 100 s is done, and the other half takes 80 s: it is 1.6 times as slow as forecast
def test_what_remains_tells_the_pace() -> None:
    told = {"node_type": "one", "gpus": 1, "done_fraction": 0.5, "remaining_seconds": [70, 80, 100]}
    now = state(a=told)
    one = now.state.live["a"]
    assert (one.left, one.pace, one.is_observed) == (0.5, 1.6, True)
    assert (now.errors["a"].low, now.errors["a"].high) == (0.875, 1.25)
    alone = state(a={"node_type": "one", "gpus": 1, "remaining_seconds": 250})
    assert alone.state.live["a"].seconds_left(GpuChoice("V100", 1)) == pytest.approx(250)
    assert alone.errors["a"] == OBSERVED


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"gpus": 1}, "job 'a': running: node_type is missing"),
        ({"node_type": "six", "gpus": 1}, "no node type is called 'six'; known: one, four"),
        ({"node_type": "one", "gpus": 2}, "it has 2 GPUs, a one has 1"),
        ({"node_type": "four", "gpus": 3}, "nothing is known of its run on 3xV100"),
        ({"node_type": "one", "gpus": 1}, "how far is it? Give done_fraction or remaining_seconds"),
        ({"node_type": "one", "gpus": 1, "done_fraction": 1}, "job 'a': running: done_fraction must be below 1, got 1"),
        ({"node_type": "one", "gpus": 1, "remaining_seconds": 0}, "remaining_seconds must be above 0, got 0"),
        ({"node_type": "one", "gpus": 1, "done": 0.5}, "no key called 'done'"),
    ],
)
def test_a_running_job_that_makes_no_sense_is_told(told: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=re.escape(message)):
        state(a=told)


def test_more_machines_than_there_may_be_are_told() -> None:
    told = {"node_type": "one", "gpus": 1, "done_fraction": 0.5}
    with pytest.raises(BadInput, match="on 3 machines; nodes is 2"):
        state(a=told, b=told, c=told)
    both = {"node_type": "four", "gpus": 2, "done_fraction": 0.5, "machine": "x"}
    with pytest.raises(BadInput, match="6 GPUs run on machine 'x', a four with 4"):
        state(a=both, b=both, c=both)


def test_a_stopped_job_keeps_what_it_has_done() -> None:
    jobs = (queued("a", 0.0, 900.0, {1: 100.0}),)
    now = queue_now(QueueWorkload(Fleet(1, (ONE,)), jobs), {"a": QueueJobRow(id="a", done_fraction=0.4)}, 10.0)
    assert (now.state.live["a"].left, now.state.live["a"].has_run) == (0.6, True)
