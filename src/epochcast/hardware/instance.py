"""A machine one can rent or own: which devices, how many, at what price per hour and where, joined by which links."""

import re
from dataclasses import dataclass, replace
from datetime import date, timedelta
from math import isfinite

from epochcast.base.record import json_hidden
from epochcast.errors import BadInput

FRESH = timedelta(days=90)
"""Notes name the age of an older price."""


@dataclass(frozen=True, slots=True)
class RegionPrice:
    """What a machine costs per hour in a region, on demand and as spare capacity; None where it is not sold so."""

    region: str
    dollars_per_hour: float | None
    spot_dollars_per_hour: float | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """One box. `device`, `inner_link` and `outer_link` are names in the catalogue; `gpus` counts such devices.

    `dollars_per_hour` is the price on demand in `region`, the cheapest unless a region was asked for; the spot price is
    the cheapest of its own regions. `price_cells` has every region (`regions`). An empty `outer_link` means that nobody
    knows what joins two such machines. `board_is_assumed`: the price list names only the family of the device.
    """

    name: str
    cloud: str
    device: str
    gpus: int
    dollars_per_hour: float
    cpus: int
    host_memory_bytes: int
    inner_link: str
    outer_link: str
    source: str
    priced_on: str
    verified: bool
    aliases: tuple[str, ...] = ()
    region: str = ""
    spot_dollars_per_hour: float | None = None
    price_cells: str = json_hidden(default="")
    board_is_assumed: bool = False

    def __post_init__(self) -> None:
        if not self.name or not self.source:
            raise BadInput(f"an instance needs a name and a source, got {self.name!r} and {self.source!r}")
        if not self.name.isprintable():
            raise BadInput(f"a name of an instance is one line of letters, got {self.name!r}")
        if self.gpus < 1:
            raise BadInput(f"gpus must be at least 1, got {self.gpus}")
        if self.cpus < 1:
            raise BadInput(f"cpus must be at least 1, got {self.cpus}")
        for name, price in (
            ("dollars_per_hour", self.dollars_per_hour),
            ("spot_dollars_per_hour", self.spot_dollars_per_hour),
        ):
            if price is not None and not (isfinite(price) and 0 < price < 10_000):
                raise BadInput(f"{name} must be above 0 and below 10000, got {price}")
        if self.host_memory_bytes < 2**28:
            raise BadInput(f"host_memory_bytes must be at least {2**28}, got {self.host_memory_bytes}")
        if not re.fullmatch(r"\d{4}(-\d{2}){0,2}", self.priced_on):
            raise BadInput(f"priced_on must be a date like 2023, 2023-05 or 2023-05-31, got {self.priced_on!r}")

    @property
    def dollars_per_gpu_hour(self) -> float:
        """The price of the box divided by its devices."""
        return self.dollars_per_hour / self.gpus

    @property
    def regions(self) -> tuple[RegionPrice, ...]:
        """Its price in every region that the list has; one without a name where the list has none."""
        if not self.price_cells:
            return (RegionPrice(self.region, self.dollars_per_hour, self.spot_dollars_per_hour),)
        return region_prices(self.price_cells)

    def at(self, price: RegionPrice) -> "Instance":
        """The same box at the price of one region."""
        if price.dollars_per_hour is None:
            raise BadInput(f"{self.name} is not sold on demand in {price.region}")
        return replace(
            self,
            region=price.region,
            dollars_per_hour=price.dollars_per_hour,
            spot_dollars_per_hour=price.spot_dollars_per_hour,
        )

    def age(self, today: date) -> timedelta:
        """Time since its price was read; a year or a month alone counts from its last day."""
        return max(timedelta(), today - _last_day(self.priced_on))

    def is_stale(self, today: date) -> bool:
        """Whether its price is older than ninety days."""
        return self.age(today) > FRESH


def region_prices(cells: str) -> tuple[RegionPrice, ...]:
    """`us-east-1;us-west-2:3.06:1.1|eu-west-1:3.3:` as prices by region."""
    prices = []
    for group in cells.split("|"):
        try:
            names, on_demand, spot = group.split(":")
            pair = float(on_demand) if on_demand else None, float(spot) if spot else None
        except ValueError:
            raise BadInput(f"prices are written region;region:3.06:1.1|region:3.3:, got {group!r}") from None
        prices += [RegionPrice(name, *pair) for name in names.split(";")]
    return tuple(prices)


def price_cells(prices: tuple[RegionPrice, ...]) -> str:
    """The reverse: regions of the same prices together, the cheapest first."""
    groups: dict[tuple[float | None, float | None], list[str]] = {}
    for price in prices:
        groups.setdefault((price.dollars_per_hour, price.spot_dollars_per_hour), []).append(_cell(price.region))

    def first(group: tuple[float | None, float | None]) -> tuple[float, float]:
        return tuple(float("inf") if price is None else price for price in group)  # type: ignore[return-value]

    return "|".join(
        f"{';'.join(sorted(groups[pair]))}:{_number(pair[0])}:{_number(pair[1])}" for pair in sorted(groups, key=first)
    )


def _cell(region: str) -> str:
    return re.sub(r"[;:|\n\r]", "-", region)


def _number(dollars: float | None) -> str:
    return "" if dollars is None else f"{dollars:.6g}"


def _last_day(text: str) -> date:
    year, month, day = ([int(part) for part in text.split("-")] + [0, 0])[:3]
    if day:
        return date(year, month, day)
    if not month:
        return date(year, 12, 31)
    return date.fromordinal(date(year + month // 12, month % 12 + 1, 1).toordinal() - 1)
