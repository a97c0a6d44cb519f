"""Orders of waiting jobs, and the simplest policies: first come, earliest deadline, most important (as in the talk).

Jobs keep what they have to their end. The first in order that waits gets the next free machine (`whole`) or the next
free GPUs (`shared`): of its choices the cheapest run among those that meet the deadline, otherwise the fastest.
"""

from collections.abc import Callable
from dataclasses import dataclass

from epochcast.scheduling.renting import DoesNotPack, rent
from epochcast.scheduling.state import Decision, LiveJob, Placed, State, kept
from epochcast.scheduling.workload import Choice, Fleet

Order = Callable[[LiveJob, float], float]
"""A key of a waiting job at a moment: the smallest first, ties by submission."""


def submission(one: LiveJob, now_seconds: float) -> float:
    """First come, first served."""
    return one.job.submit_seconds


def deadline(one: LiveJob, now_seconds: float) -> float:
    """Earliest deadline first."""
    return one.job.deadline_seconds


def importance(one: LiveJob, now_seconds: float) -> float:
    """The highest priority first; where none is given, what lateness costs."""
    return -one.job.rank


def remaining(one: LiveJob, now_seconds: float) -> float:
    """The shortest remaining time first, by its fastest choice."""
    return min(one.seconds_left(choice) for choice in one.job.seconds)


def slack(one: LiveJob, now_seconds: float) -> float:
    """The least time to spare first: deadline − now − fastest remaining time."""
    return one.job.deadline_seconds - now_seconds - remaining(one, now_seconds)


def cheapest_in_time(state: State, one: LiveJob) -> list[Choice]:
    """Choices in the order in which the talk's rules try them: in time by cost, then the rest by time."""
    now = state.seconds
    left = {choice: one.seconds_left(choice) for choice in one.job.seconds if state.fleet.holds(choice)}
    in_time = [choice for choice, seconds in left.items() if now + seconds <= one.job.deadline_seconds]
    late = [choice for choice in left if choice not in in_time]
    prices = {choice: _dollars_per_second(state.fleet, choice) for choice in left}
    in_time.sort(key=lambda choice: (left[choice] * prices[choice], choice))
    return in_time + sorted(late, key=lambda choice: (left[choice], choice))


def _dollars_per_second(fleet: Fleet, choice: Choice) -> float:
    """Of the cheapest machine with exactly so many GPUs; where there is none, of as many GPUs in a full one."""
    exact = [kind.dollars_per_second for kind in fleet.by_device[choice.device] if kind.gpus == choice.gpus]
    return min(exact) if exact else choice.gpus * fleet.gpu_dollars_per_second(choice.device)


@dataclass(frozen=True, slots=True)
class WholeMachines:
    """One job takes a whole machine and keeps it to its end."""

    order: Order

    def __call__(self, state: State) -> Decision:
        """Free machines go to the first in order."""
        decision = kept(state)
        used = [machine for machine in state.machines if machine.residents]
        free = state.fleet.nodes - len(used)
        taken: dict[str, int] = {}
        for machine in used:
            taken[machine.kind.name] = taken.get(machine.kind.name, 0) + 1
        for one in sorted(state.waiting, key=lambda one: self.order(one, state.seconds)):
            if free < 1:
                break
            for choice in cheapest_in_time(state, one):
                kinds = [k for k in state.fleet.by_device[choice.device] if k.gpus == choice.gpus]
                kind = next((k for k in kinds if k.quota is None or taken.get(k.name, 0) < k.quota), None)
                if kind is not None:
                    decision[one.job.id] = Placed(choice, alone=True)
                    taken[kind.name] = taken.get(kind.name, 0) + 1
                    free -= 1
                    break
        return decision


@dataclass(frozen=True, slots=True)
class SharedMachines:
    """Jobs share machines and keep their GPUs to their end; a choice that does not fit gives way to the next."""

    order: Order

    def __call__(self, state: State) -> Decision:
        """Free GPUs go to the first in order."""
        decision = kept(state)
        for one in sorted(state.waiting, key=lambda one: self.order(one, state.seconds)):
            for choice in cheapest_in_time(state, one):
                tried = {**decision, one.job.id: Placed(choice)}
                if packs(state, tried):
                    decision = tried
                    break
        return decision


def packs(state: State, decision: Decision) -> bool:
    """Whether machines can be rented for a decision."""
    try:
        rent(state, decision)
    except DoesNotPack:
        return False
    return True
