"""Choosing between configurations for a job: the frontier, and the one that a deadline or a budget picks.

A configuration is *dominated* where another takes no longer and costs no more, and is better in one of the two. The
frontier has those that are not dominated, by middle values. A limit is *met* where the expected value, the middle of
the interval, is within it; with `sure`, where the value is within it with that probability (`odds`). The middle picks
the measured best more often than the mean of a log-normal does (docs/accuracy/plan-accuracy.md). With `sure` the choice
may lie behind the frontier: a device that was never measured has a wide interval, and a more expensive one that was
measured may be the cheapest that is sure to finish in time.

    deadline            the cheapest of those that meet it
    budget              the fastest of those that meet it
    both                the cheapest of those that meet both
    neither             the knee

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
from epochcast.decide.plan.odds import probability_within, quantile_of
from epochcast.errors import BadInput, UnknownName
from epochcast.interval import Interval

OBJECTIVES = ("cheapest", "fastest", "knee")
MOST_EPOCHS = 10**6
LEAST_SURE, MOST_SURE = 0.5, 0.999


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
    """How long the job may take and what it may cost; None means no limit. `sure` is the probability with which both
    are to be met; None goes by expected values.
    """

    deadline_seconds: float | None = None
    budget_dollars: float | None = None
    sure: float | None = None

    def __post_init__(self) -> None:
        for name, limit in (("deadline", self.deadline_seconds), ("budget", self.budget_dollars)):
            if limit is not None and not (isfinite(limit) and limit > 0):
                raise BadInput(f"a {name} must be above 0, got {limit:g}")
        if self.sure is not None and not LEAST_SURE <= self.sure <= MOST_SURE:
            raise BadInput(f"a limit is met with a probability of 50% to 99.9%, like sure=90%; got {self.sure:.4g}")

    def __bool__(self) -> bool:
        return self.deadline_seconds is not None or self.budget_dollars is not None

    def excess(self, candidate: Candidate) -> float:
        """Value / limit, the larger of the two ratios: at most 1 where all limits are met."""
        ratios = [0.0]
        if self.deadline_seconds is not None:
            ratios.append(self.value(candidate.total_seconds) / self.deadline_seconds)
        if self.budget_dollars is not None:
            ratios.append(self.value(candidate.dollars) / self.budget_dollars)
        return max(ratios)

    def value(self, interval: Interval) -> float:
        """What is compared with a limit: the expected value, or what is not exceeded with the probability `sure`."""
        return interval.mid if self.sure is None else quantile_of(interval, self.sure)

    def deadline_probability(self, candidate: Candidate) -> float | None:
        """That the job is done in time; None without a deadline."""
        limit = self.deadline_seconds
        return None if limit is None else probability_within(candidate.total_seconds, limit)

    def budget_probability(self, candidate: Candidate) -> float | None:
        """That the job costs no more than the budget; None without one."""
        limit = self.budget_dollars
        return None if limit is None else probability_within(candidate.dollars, limit)


def frontier(candidates: Iterable[Choice]) -> tuple[Choice, ...]:
    """The candidates that are not dominated, the cheapest first; of equal ones the first."""
    undominated: list[Choice] = []
    for candidate in sorted(candidates, key=_cheapest_first):
        if not undominated or candidate.total_seconds.mid < undominated[-1].total_seconds.mid:
            undominated.append(candidate)
    return tuple(undominated)


def chosen(candidates: Sequence[Candidate], limits: PlanLimits, objective: str | None = None) -> Candidate | None:
    """The candidate that limits and objective pick; None where nothing meets the limits."""
    goal = objective_of(limits, objective)
    meeting = [candidate for candidate in candidates if limits.excess(candidate) <= 1]
    if goal == "knee":
        return knee(frontier(meeting))
    return min(meeting, key=_fastest_first if goal == "fastest" else _cheapest_first, default=None)


def objective_of(limits: PlanLimits, objective: str | None = None) -> str:
    """What is looked for: as said, or what the limits leave free; the knee where nobody said anything."""
    if objective is not None:
        if objective not in OBJECTIVES:
            raise UnknownName("objective", objective, OBJECTIVES)
        return objective
    if not limits:
        return "knee"
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


def nearest_by_time(candidates: Sequence[Candidate], limits: PlanLimits) -> Candidate | None:
    """The fastest within the budget; the fastest of all where nothing is within it. None without a deadline."""
    if limits.deadline_seconds is None:
        return None
    within = _within(candidates, PlanLimits(None, limits.budget_dollars, limits.sure))
    return min(within, key=lambda each: (limits.value(each.total_seconds), each.dollars.mid), default=None)


def nearest_by_money(candidates: Sequence[Candidate], limits: PlanLimits) -> Candidate | None:
    """The cheapest within the deadline; the cheapest of all where nothing is within it. None without a budget."""
    if limits.budget_dollars is None:
        return None
    within = _within(candidates, PlanLimits(limits.deadline_seconds, None, limits.sure))
    return min(within, key=lambda each: (limits.value(each.dollars), each.total_seconds.mid), default=None)


def _within(candidates: Sequence[Candidate], limits: PlanLimits) -> Sequence[Candidate]:
    return [each for each in candidates if limits.excess(each) <= 1] or candidates


def with_most_epochs(candidates: Iterable[Candidate], limits: PlanLimits, pricing: Pricing) -> tuple[Candidate, ...]:
    """Every configuration with the most whole epochs that are within the limits; those without one are left
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
