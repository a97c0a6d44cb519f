"""The made-up runs of `epochcast serve --demo`: those at work go on, one is silent, those that ended were judged."""

import time
from collections.abc import Iterator
from datetime import datetime
from random import Random

import pytest

from epochcast.observe.store.store import Store
from epochcast.observe.store.store_opening import open_store
from epochcast.queues import stored_view
from epochcast.schedule.schedule_request import ScheduleRequest
from epochcast.surfaces.web.demo_runs import AT_WORK, QUEUE_NAME, fill, report_once
from epochcast.surfaces.web.evidence import outcome
from epochcast.surfaces.web.run_following import RunFollower


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """As the server has it after its first look at the runs."""
    database = str(tmp_path_factory.mktemp("demo") / "store.db")
    fill(database)
    with open_store(database) as opened:
        follower = RunFollower(opened, lambda *_: None)
        while any(run.step_seconds is None for run in opened.runs()):  # a pass has a limit of time
            follower.pass_over(time.time(), time.monotonic())
        yield opened


def test_runs_at_work_go_on_reporting_and_others_do_not(store: Store) -> None:
    before = {run.name: run.step or 0.0 for run in store.runs()}
    report_once(store, time.time() + 60, Random(0))
    moved = {run.name for run in store.runs() if (run.step or 0.0) > before[run.name]}
    assert moved == set(AT_WORK)
    assert not any(store.run(name).is_silent(time.time()) for name in AT_WORK)


def test_one_run_is_silent_one_failed_with_a_reason_and_one_is_judged(store: Store) -> None:
    assert 3 * 86_400 <= store.run("resnet18-silent").silent_seconds(time.time()) < 3.1 * 86_400
    assert store.run("resnet18-silent").is_silent(time.time())
    assert "CUDA error" in str(store.run("alexnet-broken").end_reason)
    judged = outcome(store.run("resnet18-old"))
    assert judged["is_inside"] and judged["step_seconds"] and store.run("resnet18-old").dollars_so_far


def test_in_the_plan_the_job_that_runs_goes_on_until_its_end(store: Store) -> None:
    """Another order would end jobs a little sooner on average and cost more."""
    view = stored_view(store, QUEUE_NAME, datetime.now().astimezone())
    plan = view.timetable(ScheduleRequest(draws=3))
    (stay,) = plan.lines[0].stays
    assert plan.lines[0].job == "segment" and stay.start_seconds == pytest.approx(plan.now_seconds)
