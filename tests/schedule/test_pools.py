"""Machines of one device that differ: our own and rented ones, large ones that are few and small ones that are many."""

from dataclasses import replace

import pytest
from tests.every import every

from epochcast.schedule.free_gpus import FreeGpus
from epochcast.schedule.generators import talk
from epochcast.schedule.policies.policy_table import POLICIES, PolicyPermissions, policy_named
from epochcast.schedule.policies.state_arrays import arrays_of
from epochcast.schedule.policy_contract import check_policy
from epochcast.schedule.queue_state import GpuGrant, LiveJob, QueueState
from epochcast.schedule.renting import DoesNotPack, rent
from epochcast.schedule.simulator import simulate
from epochcast.schedule.workload_jobs import Fleet, GpuChoice, NodeType, QueueWorkload

from .conftest import queued

OWN = NodeType("own", "V100", 4, 0.0, quota=2, is_in_house=True)
CLOUD = NodeType("cloud", "V100", 1, 3.0)
ONE = GpuChoice("V100", 1)


def _state(fleet: Fleet, jobs: int) -> QueueState:
    return QueueState(fleet, live={f"j{n}": LiveJob(queued(f"j{n}", 0.0, 1e6, {1: 3600.0})) for n in range(jobs)})


def test_a_rented_gpu_costs_what_it_costs_beside_a_free_one_of_the_same_device() -> None:
    arrays = arrays_of(_state(Fleet(12, (OWN, CLOUD)), 1))
    prices = {int(arrays.size[pool]): 3600 * rate for pool, rate in zip(arrays.device, arrays.rate, strict=True)}
    assert prices == {4: pytest.approx(0.0), 1: pytest.approx(3.0)}


def test_small_machines_count_where_there_are_no_more_large_ones() -> None:
    arrays = arrays_of(_state(Fleet(12, (OWN, CLOUD)), 1))
    assert arrays.capacity == 2 * 4 + 10 * 1


@every("name", ["atc", "atc_rollout", "greedy", "edf_shared", "milp", "srtf", "max_min"])
def test_jobs_go_on_to_small_machines_when_the_large_ones_are_full(name: str) -> None:
    state = _state(Fleet(12, (OWN, CLOUD)), 12)
    # Late as they are, they cannot wait for a free machine.
    for one in state.live.values():
        one.job = replace(one.job, deadline_seconds=1.0, tardiness_dollars_per_second=1.0)
    decision = policy_named(name)(state)
    assert len(decision) == 12
    kinds = [machine.kind.name for machine in rent(state, decision)]
    assert (kinds.count("own"), kinds.count("cloud")) == (2, 4)


def test_a_job_with_time_waits_for_a_machine_of_ours_rather_than_rent_one_of_the_same_device() -> None:
    jobs = tuple(queued(f"j{n}", 0.0, 100 * 3600.0, {1: 3600.0}) for n in range(20))
    outcome = simulate(QueueWorkload(Fleet(6, (replace(OWN, quota=1), CLOUD)), jobs), policy_named("atc_rollout"))
    assert {rental.node_type for rental in outcome.rentals} == {"own"}
    assert outcome.dollars == 0


def test_a_job_that_would_be_late_rents_one() -> None:
    jobs = tuple(queued(f"j{n}", 0.0, 3700.0, {1: 3600.0}) for n in range(8))
    outcome = simulate(QueueWorkload(Fleet(6, (replace(OWN, quota=1), CLOUD)), jobs), policy_named("atc_rollout"))
    assert outcome.deadline_misses == 0
    assert outcome.dollars == pytest.approx(4 * 3.0)


@every("name", [name for name in POLICIES if "robust" not in name])
def test_every_policy_keeps_the_contract_on_unlike_machines(name: str) -> None:
    drawn = talk(2, "overload", 4, jobs=12)
    own = NodeType("own", "K80", 4, 0.0, quota=1, is_in_house=True)
    types = (own, *(replace(kind, quota=2 if kind.gpus == 2 else None) for kind in drawn.fleet.types if kind.gpus < 4))
    jobs = tuple(replace(job, restart_seconds=600.0 * (n % 2)) for n, job in enumerate(drawn.jobs))
    entry = POLICIES[name]
    workload = QueueWorkload(Fleet(4, types), jobs)
    check_policy(lambda: entry.make(PolicyPermissions(seed=1)), workload, may_stop=not entry.always_keeps)


def test_machines_are_rented_of_the_types_that_are_left() -> None:
    state = _state(Fleet(12, (OWN, CLOUD)), 11)
    machines = rent(state, dict.fromkeys(state.live, GpuGrant(ONE)))
    assert sorted(machine.kind.name for machine in machines) == ["cloud"] * 3 + ["own"] * 2
    few = _state(Fleet(12, (OWN, replace(CLOUD, quota=2))), 11)
    with pytest.raises(DoesNotPack):
        rent(few, dict.fromkeys(few.live, GpuGrant(ONE)))


def test_room_is_what_the_types_that_are_left_have() -> None:
    room = FreeGpus(_state(Fleet(12, (OWN, replace(CLOUD, quota=1))), 1), {})
    assert [room.take(GpuChoice("V100", 4)) for _ in range(3)] == [True, True, False]
    assert [room.take(ONE) for _ in range(2)] == [True, False]
