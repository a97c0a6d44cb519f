"""Offers whose price is too old for a plan."""

from collections.abc import Sequence
from datetime import date

from epochcast.base.current_time import now
from epochcast.decide.plan.candidate import CannotRun, RefusedCandidate
from epochcast.decide.plan.offers import Offer
from epochcast.errors import BadInput
from epochcast.units import show_seconds


def by_age(
    offered: Sequence[Offer], max_age_seconds: float | None, today: date | None
) -> tuple[Sequence[Offer], tuple[RefusedCandidate, ...]]:
    """Offers with a price that is no older than this, and the others as refused. Raises where none is left."""
    if max_age_seconds is None:
        return offered, ()
    day, limit = today or now().date(), show_seconds(max_age_seconds)
    ages = {offer: offer.instance.age(day).total_seconds() for offer in offered}
    fresh = [offer for offer in offered if ages[offer] <= max_age_seconds]
    if not fresh:
        newest = show_seconds(min(ages.values()))
        raise BadInput(f"no price is at most {limit} old, the newest is {newest}: run `epochcast instances update`")
    why = CannotRun(f"price is older than {limit}")
    return fresh, tuple(RefusedCandidate(offer, None, why) for offer in offered if ages[offer] > max_age_seconds)
