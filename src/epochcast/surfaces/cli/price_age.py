"""The age of the price behind an answer in dollars, for its JSON."""

from collections.abc import Iterable
from typing import Any


def price_age(price_sources: Iterable[str | None]) -> dict[str, Any]:
    """`price_age_days` of the oldest price; {} where no price is of the catalogue. A source is "aws p4d.24xlarge"."""
    from epochcast.base.current_time import now
    from epochcast.errors import EpochcastError
    from epochcast.hardware.machines import find_instance

    ages = []
    for source in {each for each in price_sources if each}:
        cloud, _, name = source.partition(" ")
        try:
            ages.append(find_instance(f"{cloud}/{name}").age(now().date()).days)
        except EpochcastError:  # a price as given
            continue
    return {"price_age_days": max(ages)} if ages else {}
