"""Policies that go by an order of jobs: first come, earliest deadline, most important (as in the talk), and others.

The first in order gets the next free machine (`WholeMachines`) or the next free GPUs (`SharedMachines`): of its choices
the cheapest run among those that meet the deadline, otherwise the fastest. A whole machine has just the GPUs of the
choice; only a job for which there is no such machine takes one with more. Who runs keeps what it has to its end,
unless the policy stops jobs: then all are placed anew at every decision.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from epochcast.schedule.free_gpus import FreeGpus
from epochcast.schedule.queue_state import Decision, GpuGrant, LiveJob, QueueState, unchanged
from epochcast.schedule.renting import DoesNotPack, is_available, rent
from epochcast.schedule.workload_jobs import GpuChoice, NodeType

Order = Callable[[LiveJob, QueueState], float]
"""A key of a job in a state: the smallest first, ties by submission."""


def submission(live: LiveJob, state: QueueState) -> float:
    """First come, first served."""
    return live.job.submit_seconds


def deadline(live: LiveJob, state: QueueState) -> float:
    """Earliest deadline first."""
    return live.job.deadline_seconds


def importance(live: LiveJob, state: QueueState) -> float:
    """The highest priority first; where none is given, what lateness costs."""
    return -live.job.rank


def remaining(live: LiveJob, state: QueueState) -> float:
    """The shortest remaining time first, by its fastest choice."""
    return min(live.seconds_left(choice) for choice in live.job.seconds)


def slack(live: LiveJob, state: QueueState) -> float:
    """The least time to spare first: deadline − now − fastest remaining time."""
    return live.job.deadline_seconds - state.seconds - remaining(live, state)


def unfairness(live: LiveJob, state: QueueState) -> float:
    """Finish-time fairness (Mahajan et al. 2020, Themis): the largest ρ first.

    ρ = (waited and run so far + fastest rest) / (fastest whole run · jobs per node): what sharing makes of the time
    that a job would take with its share of the machines.
    """
    shared = remaining(live, state) + state.seconds - live.job.submit_seconds
    alone = live.job.fastest_seconds * max(1.0, len(state.live) / state.fleet.nodes)
    return -shared / alone


# GPU seconds after which a job falls into the next queue of `service`. Gu et al. (2019) begin at 3,250; each of ours is
# ten times the one before.
QUEUES_GPU_SECONDS = (3_250.0, 32_500.0, 325_000.0)


def service(live: LiveJob, state: QueueState) -> float:
    """Least attained service in queues (Gu et al. 2019, Tiresias): needs no forecast; within a queue by submission."""
    return float(sum(live.served_gpu_seconds >= limit for limit in QUEUES_GPU_SECONDS))


def cheapest_in_time(state: QueueState, live: LiveJob) -> list[GpuChoice]:
    """Choices in the order in which the talk's rules try them: in time by cost, then the rest by time."""
    now = state.seconds
    left = {choice: live.seconds_left(choice) for choice in live.job.seconds if state.fleet.holds(choice)}
    in_time = [choice for choice, seconds in left.items() if now + seconds <= live.job.deadline_seconds]
    late = [choice for choice in left if choice not in in_time]
    prices = {choice: state.fleet.dollars_per_second(choice) for choice in left}
    in_time.sort(key=lambda choice: (left[choice] * prices[choice], choice))
    return in_time + sorted(late, key=lambda choice: (left[choice], choice))


@dataclass(frozen=True, slots=True)
class WholeMachines:
    """One job takes a whole machine and keeps it to its end."""

    order: Order
    looks_at_running: ClassVar[bool] = False

    def __call__(self, state: QueueState) -> Decision:
        """Free machines go to the first in order."""
        decision = unchanged(state)
        used = [machine for machine in state.machines if machine.residents]
        free = state.fleet.nodes - len(used)
        rented = Counter(machine.kind.name for machine in used)
        for live in sorted(state.waiting, key=lambda live: self.order(live, state)) if free else ():
            if free < 1:
                break
            for choice, kinds in _machines_for(state, live):
                kind = next((kind for kind in kinds if is_available(kind, rented)), None)
                if kind is not None:
                    decision[live.job.id] = GpuGrant(choice, alone=True)
                    rented[kind.name] += 1
                    free -= 1
                    break
        return decision


def _machines_for(state: QueueState, live: LiveJob) -> list[tuple[GpuChoice, list[NodeType]]]:
    """Choices in order, each with the types of machines that have just its GPUs; more only where none has."""
    choices = cheapest_in_time(state, live)
    by_device = state.fleet.by_device
    exact = [(choice, [kind for kind in by_device[choice.device] if kind.gpus == choice.gpus]) for choice in choices]
    if any(kinds for _, kinds in exact):
        return exact
    # In the order in which `renting` takes them.
    cheapest = {
        name: sorted(kinds, key=lambda kind: (kind.dollars_per_hour, kind.gpus)) for name, kinds in by_device.items()
    }
    return [(choice, [kind for kind in cheapest[choice.device] if kind.gpus > choice.gpus]) for choice in choices]


@dataclass(frozen=True, slots=True)
class SharedMachines:
    """Jobs share machines.

    A choice that does not fit gives way to the next. `stops`: all are placed anew every time.
    """

    order: Order
    stops: bool = False
    resizes: bool = True

    @property
    def looks_at_running(self) -> bool:
        """Who may stop nobody orders only those that wait."""
        return self.stops

    def __call__(self, state: QueueState) -> Decision:
        """Free GPUs go to the first in order."""
        decision = staying(state, self.stops)
        room = FreeGpus(state, decision)
        ranked = sorted(
            (live for live in state.live.values() if live.job.id not in decision),
            key=lambda live: self.order(live, state),
        )
        for live in ranked:
            choice = next((c for c in open_choices(state, live, self.resizes) if room.take(c)), None)
            if choice is not None:
                decision[live.job.id] = GpuGrant(choice)
        return packable(state, decision, [live.job.id for live in reversed(ranked)])


def staying(state: QueueState, stops: bool) -> dict[str, GpuGrant]:
    """Running jobs that keep their GPUs under a policy that may stop jobs, or may not."""
    return {
        name: grant for name, grant in unchanged(state).items() if not stops or not state.live[name].job.is_preemptible
    }


def open_choices(state: QueueState, live: LiveJob, resizes: bool) -> list[GpuChoice]:
    """The choices of a job in order; without `resizes` a job that has run keeps its choice."""
    choices = cheapest_in_time(state, live)
    if resizes or live.last_choice is None:
        return choices
    return [choice for choice in choices if choice == live.last_choice]


def packable(state: QueueState, decision: dict[str, GpuGrant], expendable: list[str]) -> Decision:
    """The decision, less the first of `expendable` until machines can be rented.

    Those that stay put may be in the way. Where nobody stays put and sizes nest (1, 2, 4 …), what `FreeGpus` found
    room for always packs.
    """
    if _always_packs(state, decision):
        return decision
    for name in expendable:
        try:
            rent(state, decision)
        except DoesNotPack:
            decision.pop(name, None)
        else:
            break
    return decision


def _always_packs(state: QueueState, decision: Decision) -> bool:
    if any(kind.quota is not None for kind in state.fleet.types):
        return False
    if any(placed.alone or state.live[name].job.restart_seconds > 0 for name, placed in decision.items()):
        return False
    sizes = sorted({placed.choice.gpus for placed in decision.values()} | {kind.gpus for kind in state.fleet.types})
    return all(larger % smaller == 0 for smaller, larger in pairwise(sizes))
