"""From what a policy decides to what is to be done on real nodes.

Machines that are down count as not there. Starting a job again is never free in reality, so a job that does not say its
`restart_seconds` pays `RESTART_SECONDS`: it is not stopped or moved for nothing. A job runs at least `LEAST_STAY` times
as long as a restart takes before it is stopped, so that restarts cost it a tenth at most however much forecasts waver.
Where a decision does not fit the machines (a policy packs more coarsely than `renting`), who runs already keeps its
place and the others follow in order.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from epochcast.schedule.engines.executor import EngineNode
from epochcast.schedule.queue_state import Decision, GpuGrant, QueueState, RentedMachine
from epochcast.schedule.renting import DoesNotPack, rent
from epochcast.schedule.simulator import Policy
from epochcast.schedule.workload_jobs import Fleet, QueuedJob

# An interpreter, its imports, a model and a checkpoint to read. An assumption; a job that knows better says so.
RESTART_SECONDS = 10.0
LEAST_STAY = 10.0


@dataclass(frozen=True, slots=True)
class RunTarget:
    """Where a job is to run. The machine's number is one that is rented, or stands for a new one."""

    placed: GpuGrant
    machine: RentedMachine


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Who is to run where from now on; who fits on no machine that is up; when the policy wants to be asked again."""

    targets: dict[str, RunTarget]
    homeless: tuple[str, ...] = ()
    wake_seconds: float | None = None
    reason: str = ""
    """Why running jobs are stopped or moved, where the policy says so."""


def fleet_now(fleet: Fleet, nodes: Sequence[EngineNode] | None) -> Fleet | None:
    """The machines that can be had now; None where all nodes are down."""
    if nodes is None:
        return fleet
    up = Counter(node.node_type for node in nodes if node.is_up)
    types = tuple(
        replace(kind, quota=up[kind.name] if kind.quota is None else min(kind.quota, up[kind.name]))
        for kind in fleet.types
    )
    count = min(fleet.nodes, sum(kind.quota or 0 for kind in types))
    return Fleet(count, types) if count else None


def plan(
    state: QueueState,
    policy: Policy,
    nodes: Sequence[EngineNode] | None,
    started: Mapping[str, float] | None = None,
    dead: frozenset[int] = frozenset(),
) -> RunPlan:
    """Ask the policy, and find machines for what it says.

    `started` has when running jobs were started. Jobs on `dead` machines, whose node is down, are left alone until the
    engine says what became of them; they take nobody's place.
    """
    fleet = fleet_now(state.fleet, nodes)
    if fleet is None:
        return RunPlan({}, tuple(state.live))
    seen, homeless = seen_by_policy(state, fleet, started or {}, dead)
    if not seen.live:
        return RunPlan({}, homeless)
    decision = policy(seen)
    machines, decision = _machines(seen, decision)
    where = {name: machine for machine in machines for name, _ in machine.residents}
    targets = {name: RunTarget(placed, where[name]) for name, placed in decision.items()}
    return RunPlan(targets, homeless, getattr(policy, "wake_seconds", None), getattr(policy, "reason", ""))


def seen_by_policy(
    state: QueueState, fleet: Fleet, started: Mapping[str, float], dead: frozenset[int]
) -> tuple[QueueState, tuple[str, ...]]:
    """The state on the machines that are up, without jobs that fit on none of them; who has just begun is held."""
    seen = state.copy()
    seen.fleet = fleet
    seen.machines = tuple(machine for machine in seen.machines if machine.number not in dead)
    homeless = tuple(
        name
        for name, live in seen.live.items()
        if live.machine in dead or not any(fleet.holds(choice) for choice in live.job.seconds)
    )
    for name in homeless:
        del seen.live[name]
    for live in seen.live.values():
        live.job = with_restart(live.job)
        ran = state.seconds - started.get(live.job.id, 0.0)
        may_stop = live.job.is_preemptible and (live.choice is None or ran >= LEAST_STAY * live.job.restart_seconds)
        live.job = replace(live.job, is_preemptible=may_stop)
    kinds = {machine.number: fleet.by_name[machine.kind.name] for machine in seen.machines}
    seen.machines = tuple(replace(machine, kind=kinds[machine.number]) for machine in seen.machines)
    return seen, homeless


def with_restart(job: QueuedJob) -> QueuedJob:
    """The job as real nodes run it: it pays for every restart."""
    return replace(job, restart_seconds=job.restart_seconds or RESTART_SECONDS)


def _machines(state: QueueState, decision: Decision) -> tuple[tuple[RentedMachine, ...], Decision]:
    """Machines for a decision, or for as much of it as fits."""
    try:
        return rent(state, decision), decision
    except DoesNotPack:
        pass
    first = {name: placed for name, placed in decision.items() if state.live[name].choice == placed.choice}
    fits: dict[str, GpuGrant] = {}
    machines: tuple[RentedMachine, ...] = ()
    for name, placed in {**first, **decision}.items():
        try:
            machines = rent(state, {**fits, name: placed})
        except DoesNotPack:
            continue
        fits[name] = placed
    return machines, fits
