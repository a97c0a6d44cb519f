"""Choosing between configurations for a job: the frontier, and the one that a deadline or a budget picks.

A configuration is *dominated* where another takes no longer and costs no more, and is better in one of the two; the
frontier has those that are not, by middle values. A limit is *met* where the high end of the interval stays within it:
that is the end which the truth exceeds in one of twenty cases. So what is chosen may lie behind the frontier: a device
that nobody measured has a wide interval, and a dearer one that was measured may be the cheapest that is sure to be done
in time.

    deadline            the cheapest of those that meet it
    budget              the fastest of those that meet it
    both                the cheapest of those that meet both
    neither             nothing is chosen
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

from epochcast.errors import BadInput
from epochcast.planning.candidate import Candidate


@dataclass(frozen=True, slots=True)
class Limits:
    """How long the job may take and what it may cost; None where nobody said."""

    deadline_seconds: float | None = None
    budget_dollars: float | None = None

    def __post_init__(self) -> None:
        for what, limit in (("deadline", self.deadline_seconds), ("budget", self.budget_dollars)):
            if limit is not None and not (isfinite(limit) and limit > 0):
                raise BadInput(f"a {what} must be above 0, got {limit:g}")

    def __bool__(self) -> bool:
        return self.deadline_seconds is not None or self.budget_dollars is not None

    def excess(self, candidate: Candidate) -> float:
        """The high end over its limit, the worse of the two: at most 1 where all limits are met."""
        ratios = [0.0]
        if self.deadline_seconds is not None:
            ratios.append(candidate.total_seconds.high / self.deadline_seconds)
        if self.budget_dollars is not None:
            ratios.append(candidate.dollars.high / self.budget_dollars)
        return max(ratios)


def frontier(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Those that are not dominated, the cheapest first; of equals the first."""
    kept: list[Candidate] = []
    for candidate in sorted(candidates, key=_cheapest):
        if not kept or candidate.total_seconds.mid < kept[-1].total_seconds.mid:
            kept.append(candidate)
    return tuple(kept)


def chosen(candidates: Sequence[Candidate], limits: Limits) -> Candidate | None:
    """The one that the limits pick; None where there are no limits or nothing meets them."""
    if not limits:
        return None
    meeting = (candidate for candidate in candidates if limits.excess(candidate) <= 1)
    return min(meeting, key=_fastest if limits.deadline_seconds is None else _cheapest, default=None)


def nearest(candidates: Sequence[Candidate], limits: Limits) -> Candidate | None:
    """The one that exceeds the limits by the least factor."""
    return min(candidates, key=lambda each: (limits.excess(each), *_cheapest(each)), default=None) if limits else None


def _cheapest(candidate: Candidate) -> tuple[float, float]:
    return candidate.dollars.mid, candidate.total_seconds.mid


def _fastest(candidate: Candidate) -> tuple[float, float]:
    return candidate.total_seconds.mid, candidate.dollars.mid
