"""The GPUs of a choice as spot machines, which are cheaper and may be taken back."""

from collections.abc import Sequence
from dataclasses import replace

from epochcast.decide.plan.billing import Extras
from epochcast.decide.plan.candidate import Candidate, Pricing
from epochcast.decide.plan.offers import Offer
from epochcast.decide.plan.spot import Spot
from epochcast.hardware.price_list import cheapest

# An assumption, said with every number that follows from it: interruptions differ by region, day and GPU.
USUAL_INTERRUPTIONS_PER_HOUR = 0.1


def as_spare(choice: Candidate, same: Sequence[Candidate], extras: Extras) -> Candidate | None:
    """The cheapest of the configurations with the same GPUs at their spot price; None where none is cheaper than the
    choice.
    """
    pricing = Pricing(extras, Spot(USUAL_INTERRUPTIONS_PER_HOUR))
    spares = []
    for row in same:
        offer = _spot_offer(row.offer)
        if offer is not None:
            spares.append(pricing.candidate(offer, row.forecast, row.epochs, row.variant))
    cheaper = [row for row in spares if row is not None and row.dollars.mid < choice.dollars.mid]
    return min(cheaper, key=lambda row: row.dollars.mid, default=None)


def _spot_offer(offer: Offer) -> Offer | None:
    if offer.instance.spot_dollars_per_hour is None:
        return None
    prices = [price for price in offer.instance.regions if price.dollars_per_hour is not None]
    least = cheapest(prices, spot=True)
    if least is None or least.spot_dollars_per_hour is None:
        return None
    return replace(offer, instance=offer.instance.at(least), spot_dollars_per_hour=least.spot_dollars_per_hour)
