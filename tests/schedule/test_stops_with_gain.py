"""Running jobs are stopped for a gain only."""

from dataclasses import replace

import pytest
from tests.schedule.conftest import FOUR, TWO, queued

from epochcast.queues import policy_of
from epochcast.schedule.outcome import SimulationOutcome
from epochcast.schedule.policies.policy_table import policy_named
from epochcast.schedule.policies.stops_with_gain import StopsWithGain
from epochcast.schedule.queue_state import Decision, GpuGrant, LiveJob, QueueState, RentedMachine
from epochcast.schedule.schedule_request import RunQueueRequest
from epochcast.schedule.simulator import Policy, SimulationRules, simulate
from epochcast.schedule.workload_jobs import Fleet, GpuChoice, QueuedJob, QueueWorkload

V2 = GpuChoice("V100", 2)
ONE_NODE = Fleet(1, (TWO,))


def one_runs(runs: QueuedJob, waits: QueuedJob, left: float = 1.0) -> QueueState:
    """A machine of two GPUs, who has it, and who waits for it."""
    live = {
        runs.id: LiveJob(runs, left=left, choice=V2, machine=0, has_run=True, last_choice=V2),
        waits.id: LiveJob(waits),
    }
    return QueueState(ONE_NODE, 0.0, live, (RentedMachine(0, TWO, ((runs.id, 2),)),), 1)


class Swaps:
    """Always runs the one that waits."""

    wake_seconds = 7.0

    def __call__(self, state: QueueState) -> Decision:
        return {live.job.id: GpuGrant(V2) for live in state.waiting}


def test_a_job_that_is_like_the_other_is_not_stopped_for_it() -> None:
    a, b = (queued(name, 0, 100_000, {2: 1_000}, restart_seconds=10.0) for name in "ab")
    policy = StopsWithGain(Swaps())
    assert policy(one_runs(a, b)) == {"a": GpuGrant(V2)}
    assert (policy.reason, policy.wake_seconds) == ("", 7.0)


def test_a_job_is_stopped_for_one_that_would_be_late_and_it_is_said_what_that_saves() -> None:
    """By hand: b would be 900 s late at a cent a second, so $9; a's restart takes 10 s of $7.2 an hour."""
    a, b = (
        queued("a", 0, 100_000, {2: 1_000}, restart_seconds=10.0),
        queued("b", 0, 200, {2: 100}, restart_seconds=10.0),
    )
    policy = StopsWithGain(Swaps())
    assert policy(one_runs(a, b)) == {"b": GpuGrant(V2)}
    assert policy.reason == f"saves ${9 - 10 * 7.2 / 3600:.2f} after restarts"


def test_a_gain_below_the_price_of_the_restart_is_none() -> None:
    """b would be 3 s late, 3 cents; the restart takes 10 s of $7.2 an hour, 2 cents, counted twice."""
    a, b = (
        queued("a", 0, 100_000, {2: 103}, restart_seconds=10.0),
        queued("b", 0, 200, {2: 100}, restart_seconds=10.0),
    )
    assert StopsWithGain(Swaps())(one_runs(a, b)) == {"a": GpuGrant(V2)}


def test_a_short_job_may_go_before_a_long_one_where_that_costs_nothing_more() -> None:
    own = replace(TWO, dollars_per_hour=0.0)
    a, b = (queued(name, 0, 1e9, {2: seconds}, restart_seconds=10.0) for name, seconds in (("a", 9_000), ("b", 100)))
    now = one_runs(a, b)
    now.fleet, now.machines = Fleet(1, (own,)), (RentedMachine(0, own, (("a", 2),)),)
    policy = StopsWithGain(Swaps())
    assert policy(now) == {"b": GpuGrant(V2)} and "sooner in all" in policy.reason


def test_who_waits_gets_what_is_free_though_a_stop_is_refused() -> None:
    jobs = [queued(name, 0, 100_000, {2: 1_000}, restart_seconds=10.0) for name in "abc"]
    now = one_runs(jobs[0], jobs[1])
    now.live["c"] = LiveJob(jobs[2])
    now.fleet = Fleet(2, (TWO, FOUR))
    kept = StopsWithGain(lambda state: {"b": GpuGrant(V2), "c": GpuGrant(V2)})(now)
    assert set(kept) == {"a", "b", "c"}  # b and c on a machine of four


def played(policy: Policy, jobs: tuple[QueuedJob, ...]) -> SimulationOutcome:
    """Asked every half minute, while trackers err as they were measured to."""
    rules = SimulationRules(every_seconds=30.0, reestimate=True, tracking_error=1.0, seed=3)
    return simulate(QueueWorkload(Fleet(2, (TWO, FOUR)), jobs), policy, rules)


@pytest.mark.parametrize("name", ["greedy", "srtf", "local_search"])
def test_equal_jobs_with_far_deadlines_are_hardly_ever_stopped(name: str) -> None:
    jobs = tuple(queued(f"j{number}", 0, 1e6, {1: 900, 2: 500}, restart_seconds=10.0) for number in range(8))
    free, held = played(policy_named(name), jobs), played(StopsWithGain(policy_named(name)), jobs)
    stops = [outcome.preemptions + outcome.moves + outcome.resizes for outcome in (free, held)]
    assert stops[1] <= 1 and stops[1] <= stops[0]
    assert held.dollars <= free.dollars * 1.02


def test_what_a_queue_is_run_under_stops_for_a_gain_unless_stopping_is_its_purpose() -> None:
    assert isinstance(policy_of(RunQueueRequest(policy="srtf")), StopsWithGain)
    assert not isinstance(policy_of(RunQueueRequest(policy="tiresias")), StopsWithGain)
    assert not isinstance(policy_of(RunQueueRequest(policy="srtf", keep_running=True)), StopsWithGain)
