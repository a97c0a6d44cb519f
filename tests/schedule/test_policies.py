from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from tests.every import every

from epochcast.errors import UnknownName
from epochcast.interval import Interval
from epochcast.schedule.generators import talk
from epochcast.schedule.lower_bound import alone_dollars, keeping_bound_dollars, keeping_dollars, lower_bound_dollars
from epochcast.schedule.policies.atc_dispatch import RollOutSetting
from epochcast.schedule.policies.atc_rollout_kernel import roll_out
from epochcast.schedule.policies.milp import best_choices, patterns
from epochcast.schedule.policies.policy_table import POLICIES, PolicyPermissions, policy_named
from epochcast.schedule.policies.robust import Robust
from epochcast.schedule.policies.rollout import TAKE_ANY, RollOut
from epochcast.schedule.policies.state_arrays import arrays_of
from epochcast.schedule.policy_contract import BrokenPolicyContract, check_policy
from epochcast.schedule.queue_state import Decision, GpuGrant, LiveJob, QueueState, unchanged
from epochcast.schedule.renting import DoesNotPack, rent
from epochcast.schedule.simulator import simulate
from epochcast.schedule.workload_jobs import Fleet, GpuChoice, MachineFailure, NodeType, QueueWorkload

from .conftest import FOUR, ONE, TWO, queued

SMALL = talk(2, "overload", 4, jobs=12)


@every(("stops", "resizes"), [(True, True), (True, False), (False, False)])
@every("name", POLICIES)
def test_every_policy_keeps_the_contract(name: str, stops: bool, resizes: bool) -> None:
    entry = POLICIES[name]
    switches = PolicyPermissions(stops, resizes, seed=2)
    may_stop = stops and not entry.always_keeps
    outcome = check_policy(lambda: entry.make(switches), SMALL, may_stop, resizes)
    assert resizes or outcome.resizes == 0
    assert outcome.dollars >= lower_bound_dollars(SMALL) * (1 - 1e-6)
    assert may_stop or outcome.dollars >= (keeping_bound_dollars(SMALL) or 0) * (1 - 1e-6)


@pytest.mark.parametrize("name", ["atc_rollout", "greedy", "edf_shared", "milp"])
def test_policies_keep_the_contract_where_moving_costs(name: str) -> None:
    jobs = tuple(replace(job, restart_seconds=1800.0, is_preemptible=n % 3 > 0) for n, job in enumerate(SMALL.jobs))
    entry = POLICIES[name]
    check_policy(lambda: entry.make(PolicyPermissions()), replace(SMALL, jobs=jobs), may_stop=not entry.always_keeps)


@pytest.mark.parametrize("name", ["fifo", "edf_shared", "greedy", "atc_rollout", "milp"])
def test_quotas_are_kept(name: str) -> None:
    types = tuple(replace(kind, quota=1) for kind in SMALL.fleet.types)
    workload = replace(SMALL, fleet=Fleet(3, types))
    entry = POLICIES[name]
    outcome = check_policy(lambda: entry.make(PolicyPermissions()), workload, may_stop=not entry.always_keeps)
    for kind in types:
        rentals = [r for r in outcome.rentals if r.node_type == kind.name]
        for one in rentals:
            assert sum(r.start_seconds <= one.start_seconds < r.end_seconds for r in rentals) <= 1


@pytest.mark.parametrize("name", ["fifo", "edf", "priority"])
def test_a_job_that_no_machine_has_just_the_gpus_for_takes_a_larger_one_for_itself(name: str) -> None:
    jobs = tuple(queued(job, 0.0, 99.0, {1: 10.0}) for job in "ab")
    outcome = check_policy(
        lambda: policy_named(name), QueueWorkload(Fleet(2, (FOUR, replace(TWO, quota=1))), jobs), False
    )
    assert sorted(rental.node_type for rental in outcome.rentals) == ["four", "two"]
    assert [end.end_seconds for end in outcome.ends] == [10.0, 10.0]


@pytest.mark.parametrize("seed", range(4))
def test_a_setting_by_slack_decides_as_greedy(seed: int) -> None:
    workload = talk(5, "overload", seed)
    live = {job.id: LiveJob(replace(job, submit_seconds=0.0)) for job in workload.jobs[: 10 + 10 * seed]}
    state = QueueState(workload.fleet, 0.0, live)
    arrays = arrays_of(state)
    first, setting = np.empty(len(live), np.int64), RollOutSetting(0.0, 0.0, 0.0, TAKE_ANY, True, False, True)
    roll_out(arrays.queue(), arrays.place(), setting, 0.0, np.ones(len(live)), first, np.inf)
    assert arrays.decision(first) == policy_named("greedy")(state)


@pytest.mark.parametrize("seed", range(4))
def test_few_roll_outs_are_not_above_greedy_where_all_jobs_are_known(seed: int) -> None:
    crowd = talk(5, "overload", seed)
    workload = replace(crowd, jobs=tuple(replace(job, submit_seconds=0.0) for job in crowd.jobs))
    greedy = simulate(workload, policy_named("greedy")).dollars
    # Machines cost as their GPUs do in a full one: the bill it foresees is a little low.
    assert simulate(workload, RollOut(work=1_500)).dollars <= 1.01 * greedy


def test_the_contract_catches_a_policy_that_runs_what_does_not_fit(fleet: Fleet) -> None:
    workload = QueueWorkload(fleet, (queued("a", 0.0, 9.0, {1: 5.0}),))
    with pytest.raises(BrokenPolicyContract, match="does not fit"):
        check_policy(lambda: lambda state: {"a": GpuGrant(GpuChoice("V100", 2))}, workload)


def test_the_contract_catches_a_policy_that_stops_what_it_must_not(fleet: Fleet) -> None:
    jobs = (queued("a", 0.0, 9.0, {1: 5.0}, is_preemptible=False), queued("b", 1.0, 9.0, {1: 5.0}))

    def last_only(state: QueueState) -> Decision:
        return {list(state.live)[-1]: GpuGrant(GpuChoice("V100", 1))}

    with pytest.raises(BrokenPolicyContract, match="stopped or resized"):
        check_policy(lambda: last_only, QueueWorkload(fleet, jobs))


def test_the_contract_catches_a_policy_that_changes_the_state(fleet: Fleet) -> None:
    def meddles(state: QueueState) -> Decision:
        state.live["a"].left = 0.0
        return {"a": GpuGrant(GpuChoice("V100", 1))}

    with pytest.raises(BrokenPolicyContract, match="changed the state"):
        check_policy(lambda: meddles, QueueWorkload(fleet, (queued("a", 0.0, 9.0, {1: 5.0}),)))


def test_roll_outs_beat_the_rules_of_the_talk_in_overload() -> None:
    workload = talk(3, "overload", 1)
    bills = {name: simulate(workload, policy_named(name)).dollars for name in ("fifo", "edf", "atc_rollout")}
    assert bills["atc_rollout"] < 0.6 * bills["edf"] < bills["fifo"]


def test_without_a_queue_a_job_pays_the_least_there_is() -> None:
    """Begun fast and gone on cheap: the bill is that of the bound, to the cent."""
    workload = talk(8, "low", 3, jobs=10)
    outcome = simulate(workload, policy_named("atc_rollout"))
    assert outcome.dollars == pytest.approx(lower_bound_dollars(workload), rel=0.005)


# by hand: 100 s on one GPU (0.1 $), 60 s on two (0.12 $); in 80 s half of the work each: 0.11 $
def test_the_bound_of_one_job_by_hand(fleet: Fleet) -> None:
    job = queued("a", 0.0, 80.0, {1: 100.0, 2: 60.0}, weight=1.0)
    assert alone_dollars(QueueWorkload(fleet, (job,)), job) == pytest.approx(0.11)


def test_a_job_that_keeps_its_choice_pays_for_one(fleet: Fleet) -> None:
    # One GPU takes 100 s, four 40: for 70 s one begins with four and goes on with one, or keeps four.
    job = queued("a", 0.0, 70.0, {1: 100.0, 4: 40.0})
    workload = QueueWorkload(fleet, (job,))
    assert keeping_dollars(workload, job) == pytest.approx(40 * 0.004)
    assert alone_dollars(workload, job) < keeping_dollars(workload, job)
    assert keeping_bound_dollars(replace(workload, failures=(MachineFailure(1.0),))) is None


def test_one_job_is_begun_fast_and_gone_on_cheap(fleet: Fleet) -> None:
    job = queued("a", 0.0, 80.0, {1: 100.0, 2: 60.0}, weight=1.0)
    outcome = simulate(QueueWorkload(fleet, (job,)), policy_named("atc_rollout"))
    assert outcome.ends[0].end_seconds == pytest.approx(80.0, abs=1e-3)
    assert outcome.dollars == pytest.approx(0.11, rel=1e-4)
    assert [stay.choice.gpus for stay in outcome.stays] == [2, 1]


def test_a_late_job_costs_the_bound_its_lateness(fleet: Fleet) -> None:
    job = queued("a", 0.0, 30.0, {1: 100.0, 2: 60.0}, weight=1.0)
    assert alone_dollars(QueueWorkload(fleet, (job,)), job) == pytest.approx(0.12 + 30.0)


def test_the_bound_grows_where_machines_are_short() -> None:
    jobs = tuple(queued(f"j{n}", 0.0, 100.0, {1: 100.0}) for n in range(40))
    workload = QueueWorkload(Fleet(2, (ONE, TWO, FOUR)), jobs)
    assert lower_bound_dollars(workload) > 2 * 40 * 0.1


def test_patterns_fill_a_machine(fleet: Fleet) -> None:
    found = patterns(Fleet(1, (FOUR,)), [GpuChoice("V100", 1), GpuChoice("V100", 2), GpuChoice("V100", 4)])
    places = {tuple((choice.gpus, count) for choice, count in pattern.places) for pattern in found}
    assert places == {((4, 1),), ((2, 2),), ((2, 1), (1, 2)), ((1, 4),)}


def _node_indexed(fleet: Fleet, run: dict[str, dict[GpuChoice, float]], wait: dict[str, float]) -> float:
    """The same program with a variable per job, choice and machine: what patterns must equal."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    nodes = range(fleet.nodes)
    kinds = list(fleet.types)
    triples = [(j, c, n) for j in run for c in sorted(run[j]) for n in nodes]
    types = [(n, k) for n in nodes for k in range(len(kinds))]
    columns = len(triples) + len(types)
    cost = np.array([run[j][c] - wait[j] for j, c, _ in triples] + [0.0] * len(types))
    rows, limits = [], []
    for j in run:
        rows.append([float(t[0] == j) for t in triples] + [0.0] * len(types))
        limits.append(1.0)
    for n in nodes:
        rows.append([0.0] * len(triples) + [float(m == n) for m, _ in types])
        limits.append(1.0)
        for device in fleet.by_device:
            used = [float(t[1].gpus) if t[2] == n and t[1].device == device else 0.0 for t in triples]
            has = [-float(kinds[k].gpus) if m == n and kinds[k].device == device else 0.0 for m, k in types]
            rows.append(used + has)
            limits.append(0.0)
    found = milp(
        cost,
        integrality=np.ones(columns),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(np.array(rows), -np.inf, np.array(limits)),
    )
    return float(found.fun) + sum(wait.values())


def _brute_force(fleet: Fleet, run: dict[str, dict[GpuChoice, float]], wait: dict[str, float]) -> float:
    """All decisions, those that machines can be rented for."""
    best = np.inf
    for chosen in product(*[[None, *sorted(run[j])] for j in run]):
        state = QueueState(fleet)
        decision = {}
        dollars = 0.0
        for name, choice in zip(run, chosen, strict=True):
            state.live[name] = LiveJob(queued(name, 0.0, 9.0, {1: 5.0}))
            dollars += wait[name] if choice is None else run[name][choice]
            if choice is not None:
                decision[name] = GpuGrant(choice)
        try:
            rent(state, decision)
        except DoesNotPack:
            continue
        best = min(best, dollars)
    return float(best)


@every("seed", range(12))
def test_patterns_equal_machines_by_name_and_brute_force(seed: int) -> None:
    random = np.random.default_rng(seed)
    fleet = Fleet(2, (ONE, TWO, FOUR, NodeType("k2", "K80", 2, 1.0), NodeType("k1", "K80", 1, 0.6)))
    choices = [
        GpuChoice("V100", 1),
        GpuChoice("V100", 2),
        GpuChoice("V100", 4),
        GpuChoice("K80", 1),
        GpuChoice("K80", 2),
    ]
    run = {f"j{n}": {c: float(random.uniform(0, 10)) for c in choices} for n in range(4)}
    wait = {name: float(random.uniform(0, 12)) for name in run}
    chosen = best_choices(fleet, run, wait, dict.fromkeys(fleet.by_name, 0.0))
    told = sum(run[name][chosen[name]] if name in chosen else wait[name] for name in run)
    assert told == pytest.approx(_node_indexed(fleet, run, wait))
    assert told == pytest.approx(_brute_force(fleet, run, wait))


def test_the_robust_policy_plans_with_high_ends(fleet: Fleet) -> None:
    seen: list[float] = []

    def spy(state: QueueState) -> Decision:
        seen.extend(one.job.fastest_seconds for one in state.live.values())
        return unchanged(state)

    state = QueueState(fleet)
    job = queued("a", 0.0, 9.0, {1: 5.0})
    state.live["a"] = LiveJob(replace(job, seconds={GpuChoice("V100", 1): Interval(4.0, 5.0, 8.0)}))
    Robust(spy)(state)
    assert seen == [8.0]
    assert state.live["a"].job.fastest_seconds == 5.0


def test_an_unknown_policy_names_the_near_ones() -> None:
    with pytest.raises(UnknownName, match="no policy called 'atc_rolout'; near: atc_rollout"):
        policy_named("atc_rolout")
