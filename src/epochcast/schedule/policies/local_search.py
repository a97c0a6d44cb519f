"""Greedy, randomized greedy, local search and path relinking, after Filippini et al. (2023); compared by a proxy.

Greedy takes jobs by their time to spare. Randomized greedy shuffles that order and picks among a job's choices at
random, many times. Local search starts from greedy and changes one job at a time: another choice, or its place with one
that waits. Path relinking goes from the result of local search towards other good decisions, one job at a time, and
keeps the best on the way. The best by `proxy` counts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from epochcast.schedule.free_gpus import FreeGpus
from epochcast.schedule.policies.decision_value import DecisionCosts, proxy
from epochcast.schedule.policies.ordered_policies import SharedMachines, open_choices, packable, slack, staying
from epochcast.schedule.queue_state import Decision, GpuGrant, LiveJob, QueueState

TRIES = 30
"""Orders that randomized greedy tries."""
SHUFFLE = 0.3
"""By what share of the jobs one may be moved in the order."""
ROUNDS = 20
"""Improvements that local search makes at most."""
ELITE = 3
"""Decisions of randomized greedy towards which path relinking goes."""


@dataclass(frozen=True, slots=True)
class Greedy:
    """The least time to spare first."""

    stops: bool = True
    resizes: bool = True

    def __call__(self, state: QueueState) -> Decision:
        """By slack."""
        return SharedMachines(slack, self.stops, self.resizes)(state)


@dataclass(frozen=True, slots=True)
class RandomGreedy:
    """The best of many shuffled orders."""

    stops: bool = True
    resizes: bool = True
    seed: int = 0

    def __call__(self, state: QueueState) -> Decision:
        """The best by the proxy; greedy's own among them."""
        return min(self.tried(state), key=proxy(state, self.resizes).dollars)

    def tried(self, state: QueueState) -> list[Decision]:
        """Greedy's decision and those of shuffled orders."""
        random = Random(f"{self.seed} {state.seconds:.3f}")
        decisions = [Greedy(self.stops, self.resizes)(state)]
        base, free = _split(state, self.stops)
        free.sort(key=lambda live: slack(live, state))
        for _ in range(TRIES):
            reach = SHUFFLE * len(free)
            order = [
                live
                for _, _, live in sorted((i + random.uniform(-reach, reach), i, live) for i, live in enumerate(free))
            ]
            decisions.append(_construct(state, base, order, self.resizes, random))
        return decisions


@dataclass(frozen=True, slots=True)
class LocalSearch:
    """Greedy, then one change at a time as long as the proxy falls."""

    stops: bool = True
    resizes: bool = True

    def __call__(self, state: QueueState) -> Decision:
        """The decision that no single change improves, or what was reached after some rounds."""
        worth = proxy(state, self.resizes)
        best = dict(Greedy(self.stops, self.resizes)(state))
        _, free = _split(state, self.stops)
        for _ in range(ROUNDS):
            better = min(_neighbours(state, best, free, self.resizes, worth), key=worth.dollars, default=best)
            if worth.dollars(better) >= worth.dollars(best) - 1e-9:
                break
            best = better
        return best


@dataclass(frozen=True, slots=True)
class PathRelinking:
    """From the result of local search towards other good decisions, keeping the best on the way."""

    stops: bool = True
    resizes: bool = True
    seed: int = 0

    def __call__(self, state: QueueState) -> Decision:
        """The best decision on all paths."""
        worth = proxy(state, self.resizes)
        best = start = dict(LocalSearch(self.stops, self.resizes)(state))
        others = sorted(RandomGreedy(self.stops, self.resizes, self.seed).tried(state), key=worth.dollars)
        for goal in others[:ELITE]:
            best = min([best, *_path(state, start, goal, worth)], key=worth.dollars)
        return packable(state, best, sorted(set(best) - set(start)))


def _path(
    state: QueueState, start: dict[str, GpuGrant], goal: Decision, worth: DecisionCosts
) -> Iterator[dict[str, GpuGrant]]:
    """Decisions from one towards another: every time the change of one job that is best and has room."""
    current = dict(start)
    while True:
        steps = []
        for name in sorted(set(current) | set(goal)):
            if current.get(name) != goal.get(name):
                changed = {other: placed for other, placed in current.items() if other != name}
                if name in goal:
                    changed[name] = goal[name]
                if _has_room(state, changed):
                    steps.append(changed)
        if not steps:
            return
        current = min(steps, key=worth.dollars)
        yield current


def _split(state: QueueState, stops: bool) -> tuple[dict[str, GpuGrant], list[LiveJob]]:
    """Who stays as it is, and who is placed anew."""
    base = staying(state, stops)
    return base, [live for name, live in state.live.items() if name not in base]


def _construct(
    state: QueueState, base: dict[str, GpuGrant], order: list[LiveJob], resizes: bool, random: Random
) -> dict[str, GpuGrant]:
    decision = dict(base)
    room = FreeGpus(state, decision)
    for live in order:
        choices = open_choices(state, live, resizes)
        if len(choices) > 1 and random.random() < 0.3:
            choices = [choices[1], choices[0], *choices[2:]]
        choice = next((c for c in choices if room.take(c)), None)
        if choice is not None:
            decision[live.job.id] = GpuGrant(choice)
    packable(state, decision, [live.job.id for live in reversed(order)])
    return decision


def _neighbours(
    state: QueueState, decision: dict[str, GpuGrant], free: list[LiveJob], resizes: bool, worth: DecisionCosts
) -> Iterator[dict[str, GpuGrant]]:
    """All decisions one change away that pack and are better."""
    now = worth.dollars(decision)
    waiting = [live for live in free if live.job.id not in decision]
    for live in free:
        name = live.job.id
        for choice in open_choices(state, live, resizes):
            changed = {**decision, name: GpuGrant(choice)}
            if worth.dollars(changed) < now and _has_room(state, changed):
                yield changed
        if name not in decision:
            continue
        for other in waiting:
            for choice in open_choices(state, other, resizes)[:2]:
                changed = {n: p for n, p in decision.items() if n != name} | {other.job.id: GpuGrant(choice)}
                if worth.dollars(changed) < now and _has_room(state, changed):
                    yield changed


def _has_room(state: QueueState, decision: dict[str, GpuGrant]) -> bool:
    room = FreeGpus(state, {})
    return all(room.take(placed.choice) for placed in sorted(decision.values(), key=lambda placed: -placed.choice.gpus))
