"""The inverse question: how many epochs fit into a budget or before a deadline, and where most of them do."""

from collections.abc import Iterable

from epochcast.decide.plan.candidate import Candidate, Pricing
from epochcast.decide.plan.choice import PlanLimits
from epochcast.errors import BadInput

MOST_EPOCHS = 10**6


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
