"""Without preemption some GPUs are kept for jobs that cannot wait."""

from epochcast.schedule.policies.policy_table import PolicyPermissions, policy_named
from epochcast.schedule.policies.rollout import MARGIN_SECONDS, with_reserve
from epochcast.schedule.queue_state import GpuGrant, LiveJob, QueueState
from epochcast.schedule.simulator import simulate
from epochcast.schedule.workload_jobs import Fleet, GpuChoice, QueueWorkload

from .conftest import FOUR, queued

KEEPING = PolicyPermissions(stops=False, resizes=False)
HOUR = 3600.0


def _state(*deadlines: float) -> QueueState:
    jobs = [queued(f"j{n}", 0.0, at, {1: HOUR}) for n, at in enumerate(deadlines)]
    return QueueState(Fleet(1, (FOUR,)), live={job.id: LiveJob(job) for job in jobs})


def test_who_has_most_time_waits_while_few_gpus_would_be_left_and_begins_when_it_must() -> None:
    state = _state(HOUR + 1, 4 * HOUR, 9 * HOUR, 2 * HOUR)
    wanted = dict.fromkeys(state.live, GpuGrant(GpuChoice("V100", 1)))
    decision, wake = with_reserve(state, wanted, 4.0)
    assert sorted(decision) == ["j0", "j1", "j3"]
    assert wake == 8 * HOUR - MARGIN_SECONDS
    few = {name: wanted[name] for name in ("j0", "j2")}
    assert with_reserve(state, few, 4.0) == (few, None)


def test_who_must_begin_begins_though_nothing_is_left() -> None:
    state = _state(*(HOUR + 1 for _ in range(4)))
    wanted = dict.fromkeys(state.live, GpuGrant(GpuChoice("V100", 1)))
    assert with_reserve(state, wanted, 4.0) == (wanted, None)


def test_an_urgent_job_finds_a_gpu_that_was_kept_and_who_waited_is_in_time() -> None:
    patient = [queued(f"p{n}", 0.0, 9 * HOUR, {1: 4 * HOUR}) for n in range(4)]
    urgent = queued("urgent", HOUR, 2.1 * HOUR, {1: HOUR})
    workload = QueueWorkload(Fleet(1, (FOUR,)), (*patient, urgent))
    outcome = simulate(workload, policy_named("atc_rollout", KEEPING))
    assert outcome.deadline_misses == 0
    assert simulate(workload, policy_named("edf_shared")).deadline_misses == 1
