"""Choosing between configurations for a job: the frontier, and the one that a deadline or a budget picks.

A configuration is *dominated* where another takes no longer and costs no more, and is better in one of the two. The
frontier has those that are not dominated, by middle values. A limit is *met* where the high end of the interval is
within it; the true value exceeds that end in one of twenty cases. So the choice may lie behind the frontier: a device
that was never measured has a wide interval, and a more expensive one that was measured may be the cheapest that is sure
to finish in time.

    deadline            the cheapest of those that meet it
    budget              the fastest of those that meet it
    both                the cheapest of those that meet both
    neither             nothing is chosen

An objective says it directly, with limits or without: `cheapest`, `fastest`, or `knee`, the point of the frontier of
those that meet the limits that lies farthest below the line from its cheapest to its fastest, on logarithmic axes
scaled to 0 … 1 (Satopää et al. 2011): before it, money buys much time, behind it little.

`with_most_epochs` is the inverse question: how many epochs fit into the limits, and where most of them do.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite, log
from typing import Protocol, TypeVar

from epochcast.decide.plan.candidate import Candidate, Pricing
from epochcast.errors import BadInput, UnknownName
from epochcast.interval import Interval

OBJECTIVES = ("cheapest", "fastest", "knee")
MOST_EPOCHS = 10**6


class Priced(Protocol):
    """What takes time and costs money."""

    @property
    def total_seconds(self) -> Interval:
        """How long it takes."""

    @property
    def dollars(self) -> Interval:
        """What it costs."""


Choice = TypeVar("Choice", bound=Priced)


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """How long the job may take and what it may cost; None means no limit."""

    deadline_seconds: float | None = None
    budget_dollars: float | None = None

    def __post_init__(self) -> None:
        for name, limit in (("deadline", self.deadline_seconds), ("budget", self.budget_dollars)):
            if limit is not None and not (isfinite(limit) and limit > 0):
                raise BadInput(f"a {name} must be above 0, got {limit:g}")

    def __bool__(self) -> bool:
        return self.deadline_seconds is not None or self.budget_dollars is not None

    def excess(self, candidate: Candidate) -> float:
        """High end / limit, the larger of the two ratios: at most 1 where all limits are met."""
        ratios = [0.0]
        if self.deadline_seconds is not None:
            ratios.append(candidate.total_seconds.high / self.deadline_seconds)
        if self.budget_dollars is not None:
            ratios.append(candidate.dollars.high / self.budget_dollars)
        return max(ratios)


def frontier(candidates: Iterable[Choice]) -> tuple[Choice, ...]:
    """The candidates that are not dominated, the cheapest first; of equal ones the first."""
    undominated: list[Choice] = []
    for candidate in sorted(candidates, key=_cheapest_first):
        if not undominated or candidate.total_seconds.mid < undominated[-1].total_seconds.mid:
            undominated.append(candidate)
    return tuple(undominated)


def chosen(candidates: Sequence[Candidate], limits: PlanLimits, objective: str | None = None) -> Candidate | None:
    """The candidate that limits and objective pick; None where there are neither or nothing meets the limits."""
    goal = objective_of(limits, objective)
    if goal is None:
        return None
    meeting = [candidate for candidate in candidates if limits.excess(candidate) <= 1]
    if goal == "knee":
        return knee(frontier(meeting))
    return min(meeting, key=_fastest_first if goal == "fastest" else _cheapest_first, default=None)


def objective_of(limits: PlanLimits, objective: str | None = None) -> str | None:
    """What is looked for: as said, or what the limits leave free; None where nobody said anything."""
    if objective is not None:
        if objective not in OBJECTIVES:
            raise UnknownName("objective", objective, OBJECTIVES)
        return objective
    if not limits:
        return None
    return "fastest" if limits.deadline_seconds is None else "cheapest"


def knee(undominated: Sequence[Choice]) -> Choice | None:
    """The point of a frontier (cheapest first) that is farthest below the line between its ends; of two the first."""
    if len(undominated) < 3:
        return undominated[0] if undominated else None
    first, last = undominated[0], undominated[-1]
    slower, dearer = log(first.total_seconds.mid / last.total_seconds.mid), log(last.dollars.mid / first.dollars.mid)

    def below(candidate: Choice) -> float:
        took = log(candidate.total_seconds.mid / last.total_seconds.mid) / slower
        paid = log(candidate.dollars.mid / first.dollars.mid) / dearer if dearer else 0.0
        return took + paid

    return min(undominated, key=below)


def nearest(candidates: Sequence[Candidate], limits: PlanLimits) -> Candidate | None:
    """The candidate that exceeds the limits by the smallest factor."""
    if not limits:
        return None
    return min(candidates, key=lambda candidate: (limits.excess(candidate), *_cheapest_first(candidate)), default=None)


def with_most_epochs(candidates: Iterable[Candidate], limits: PlanLimits, pricing: Pricing) -> tuple[Candidate, ...]:
    """Every configuration with the most whole epochs whose high end is within the limits; those without one are left
    out. The most epochs come first, of equals the cheapest.
    """
    if not limits:
        raise BadInput("how many epochs fit is a question about limits: give a deadline or a budget")
    affordable = [fitted for each in candidates if (fitted := _fitted(each, limits, pricing)) is not None]
    return tuple(sorted(affordable, key=lambda each: (-each.epochs, each.dollars.mid, each.total_seconds.mid)))


def _fitted(candidate: Candidate, limits: PlanLimits, pricing: Pricing) -> Candidate | None:
    """Doubling, then halving the gap: more epochs never take less time nor cost less."""

    def within(epochs: int) -> Candidate | None:
        at = pricing.at_epochs(candidate, float(epochs))
        return at if at is not None and limits.excess(at) <= 1 else None

    if within(1) is None:
        return None
    low, high = 1, 2
    while high <= MOST_EPOCHS and within(high) is not None:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if within(middle) is not None else (low, middle)
    return within(low)


def _cheapest_first(candidate: Priced) -> tuple[float, float]:
    return candidate.dollars.mid, candidate.total_seconds.mid


def _fastest_first(candidate: Priced) -> tuple[float, float]:
    return candidate.total_seconds.mid, candidate.dollars.mid
