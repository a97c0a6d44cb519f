"""Published rates of a device as fractions of its data sheet: a prior where nothing was measured, not a profile.

`published_rates.toml` is written by `python -m training.published_rates`: by device and math the fraction of the peak
that the best of many large matrix products reached, and the fraction of the bandwidth that a large copy reached. Of
several sources the median counts; `low` and `high` are their range.

A board of the same chip with the same peak and much the same power has the fractions of its sister.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from epochcast.base import catalogue_rows as rows
from epochcast.base.caching import remembered
from epochcast.describe.graph.math_modes import MATHS
from epochcast.errors import BadInput
from epochcast.hardware.catalogue import devices, find_device
from epochcast.hardware.device import Device

FILE = "published_rates.toml"
BANDWIDTH = "bandwidth"
# Boards of one chip whose power differs by less sustain much the same clock (A100 PCIe: 250 W and 300 W; SXM4: 400 W).
SAME_POWER = 1.25


@dataclass(frozen=True, slots=True)
class PublishedRate:
    """A fraction in (0, 1] of a peak or of the bandwidth, with the range over sources."""

    fraction: float
    low: float
    high: float
    source: str

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.fraction <= self.high <= 1:
            raise BadInput(f"fractions must be in order and at most 1, got {self.low}, {self.fraction}, {self.high}")


def published_fractions(device: Device) -> Mapping[str, float]:
    """The part of the peak that a large product was published to reach, by math; empty where nobody published any."""
    return {quantity: rate.fraction for quantity, rate in published_rates(device).items() if quantity != BANDWIDTH}


def published_bandwidth_fraction(device: Device) -> float | None:
    """The part of the bandwidth that a large copy was published to reach; None where nobody published any."""
    rate = published_rates(device).get(BANDWIDTH)
    return None if rate is None else rate.fraction


def published_rates(device: Device) -> Mapping[str, PublishedRate]:
    """By math, and "bandwidth": the device's own; of boards of the same chip what is missing, the most alike first."""
    table = _table()
    rates_of_device = dict(table.get(device.name, {}))
    sisters = [sister for sister in map(find_device, table) if _is_same_chip(sister, device)]
    for sister in sorted(sisters, key=lambda each: not _is_alike(BANDWIDTH, each, device)):
        rates = {quantity: rate for quantity, rate in table[sister.name].items() if _is_alike(quantity, sister, device)}
        rates_of_device = {**rates, **rates_of_device}
    return rates_of_device


def load_rates(text: str, file: str = FILE) -> Mapping[str, Mapping[str, PublishedRate]]:
    """The rates in a TOML text, by the name of the device and by math (or "bandwidth"), checked."""
    names = {device.name for device in devices()}
    table: dict[str, dict[str, PublishedRate]] = {}
    for name, quantity, rate in rows.read(rows.parse(text, file), "rate", file, _rate):
        if name not in names:
            raise BadInput(f"{file}: no device called {name!r}")
        if table.setdefault(name, {}).setdefault(quantity, rate) is not rate:
            raise BadInput(f"{file}: two rates of {name} in {quantity}")
    return table


def _rate(row: rows.CatalogueRow) -> tuple[str, str, PublishedRate]:
    name, quantity, fraction = row.text("name"), row.text("of"), row.number("fraction")
    if quantity != BANDWIDTH and quantity not in MATHS:
        raise row.wrong("of", "a math or 'bandwidth'", quantity)
    low, high = (row.number(key) if row.has(key) else fraction for key in ("low", "high"))
    return name, quantity, PublishedRate(fraction, low, high, row.text("source"))


def _is_same_chip(first: Device, second: Device) -> bool:
    """As many units of one generation, at much the same power."""
    if first.chip != second.chip:
        return False
    if first.watts is None or second.watts is None:
        return first.watts == second.watts
    return max(first.watts, second.watts) <= SAME_POWER * min(first.watts, second.watts)


def _is_alike(quantity: str, first: Device, second: Device) -> bool:
    """Whether a fraction of one board holds for another: the same peak, or the same bandwidth."""
    if quantity == BANDWIDTH:
        return first.memory_bytes_per_second == second.memory_bytes_per_second
    return first.peak_flops_per_second[quantity] == second.peak_flops_per_second.get(quantity)


@remembered(1)
def _table() -> Mapping[str, Mapping[str, PublishedRate]]:
    return load_rates(rows.shipped(FILE, __file__))
