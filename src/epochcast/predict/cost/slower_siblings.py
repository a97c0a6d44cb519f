"""A faster sibling is never slower, waves and caches included.

Rates of siblings are in the order of their data sheets (`hardware.sustained`). How well tiles fill waves is not: more
multiprocessors at a lower clock each, or tiles that fill one more wave, would make a device slower than a sibling that
has less of everything; so would a smaller cache. Of every op both limbs of the roofline are therefore bounded by those
of all slower siblings:

    arithmetic = min over S of free(S) + padding(S)         traffic = min over S of traffic(S)

logarithms, S the device itself and its slower siblings. Of a faster device these are the same siblings and more, so its
minimum is never larger. Padding depends on the number of multiprocessors alone: siblings with as many count as one, by
the least that is between them and the device.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochcast.base.caching import remembered
from epochcast.describe.graph.math_modes import OP_MATHS
from epochcast.describe.graph.trace import Columns
from epochcast.hardware.catalogue import devices
from epochcast.hardware.device import Device
from epochcast.hardware.siblings import is_sibling
from epochcast.hardware.sustained import sustained
from epochcast.predict.cost.op_bounds import GROUPS, cache_gain
from epochcast.predict.cost.roofline import clock_table, peak_table, peak_ways
from epochcast.predict.cost.software_setting import GENERATIONS
from epochcast.predict.cost.waves import is_tiled, log_padding, log_paddings

Array = NDArray[np.float64]


class Speeds(NamedTuple):
    """Logarithms of what a device sustains: of products by way and math (`roofline.peak_table`), of their peaks at
    the clock that power sustains, of bandwidth, and of the seconds that groups of ops and generations of frameworks
    take longer.
    """

    fractions: Array
    peaks: Array
    bandwidth_fraction: float
    groups: Array
    generations: Array


class Gap(NamedTuple):
    """How far slower siblings with so many multiprocessors are behind: a logarithm by way, math and group of op."""

    compute_units: float
    seconds: Array


class CacheGap(NamedTuple):
    """How far a slower sibling with so large a cache is behind in bandwidth: a logarithm by group of op."""

    l2_bytes: float
    seconds: Array


class SlowerSiblings(NamedTuple):
    """The slower siblings of a device that may be faster in waves, and those with a larger cache than `l2_bytes`."""

    by_waves: tuple[Gap, ...]
    by_cache: tuple[CacheGap, ...]
    l2_bytes: float

    def least_arithmetic(
        self, arithmetic: Array, free: Array, columns: Columns, groups: NDArray[np.int64], tile_costs: Array
    ) -> Array:
        """min over S of free(S) + padding(S)"""
        places = np.flatnonzero(is_tiled(columns)) if self.by_waves else np.zeros(0, dtype=np.int64)
        if not len(places):
            return arithmetic
        tiled = columns.at(places)
        ways, every = peak_ways(tiled), np.ones(len(places), dtype=np.bool_)
        least = arithmetic[places]
        for gap in self.by_waves:
            padding = log_padding(log_paddings(tiled, gap.compute_units), every, tile_costs)
            behind = gap.seconds[ways, tiled.math, groups[places]]
            least = np.minimum(least, free[places] + padding + behind)
        bounded = arithmetic.copy()
        bounded[places] = least
        return bounded

    def least_traffic(self, traffic: Array, columns: Columns, groups: NDArray[np.int64]) -> Array:
        """min over S of traffic(S)"""
        least = traffic
        for gap in self.by_cache:
            gained = np.log(cache_gain(columns, gap.l2_bytes) / cache_gain(columns, self.l2_bytes))
            least = np.minimum(least, traffic - gained + gap.seconds[groups])
        return least


def slower_siblings(
    device: Device, generation: int, compute_losses: Array, bandwidth_losses: Array, most_padding: float
) -> SlowerSiblings:
    """Of a device under a generation of a framework. Losses are the powers of a peak and of a bandwidth that are not
    gained, by group of op.
    """
    return SlowerSiblings(
        tuple(_wave_gaps(device, generation, compute_losses, most_padding)),
        tuple(_cache_gaps(device, generation, bandwidth_losses)),
        float(device.l2_bytes or 0),
    )


@remembered(1024)
def _speeds(device: Device) -> Speeds:
    """What every op on a device goes by."""
    own = sustained(device)
    return Speeds(
        np.log([own.math_fraction(math) for math in OP_MATHS]),
        np.log(peak_table(device) * clock_table(device)),
        float(np.log(own.bandwidth_fraction)),
        np.log([own.group_factors.get(group, 1.0) for group in GROUPS]),
        np.log([own.generation_factors.get(name, 1.0) for name in GENERATIONS]),
    )


@remembered(1024)
def _slower(device: Device) -> tuple[Device, ...]:
    """Those of the catalogue. A user's own data sheet has none: its rates are not in the order of others."""
    if device.sheet or device.measured_fractions or device.kind != "gpu":
        return ()
    return tuple(other for other in devices() if other.name != device.name and is_sibling(other, device))


def _wave_gaps(device: Device, generation: int, losses: Array, most_padding: float) -> Iterator[Gap]:
    """Of siblings that may pad less by more than they are behind."""
    gaps: dict[float, Array] = {}
    for sibling in _slower(device):
        units = float(sibling.compute_units)
        behind = _behind(device, sibling, generation, losses)
        # Tiles in waves of U multiprocessors take at most twice as long as in waves of V, or U/V times as long.
        most = min(most_padding, float(np.log(max(2.0, device.compute_units / units))))
        if units != device.compute_units and np.nanmin(behind) < most:
            gaps[units] = np.fmin(gaps.get(units, behind), behind)
    for units, seconds in sorted(gaps.items()):
        yield Gap(units, np.nan_to_num(seconds, nan=np.inf))


def _behind(device: Device, sibling: Device, generation: int, losses: Array) -> Array:
    """NaN where the sibling lacks a format."""
    own, other = _speeds(device), _speeds(sibling)
    rates = (own.peaks - other.peaks)[..., None] * (1 - losses) + (own.fractions - other.fractions)[:, None]
    behind: Array = np.maximum(rates + _factors(device, sibling, generation), 0.0)
    return behind


def _cache_gaps(device: Device, generation: int, losses: Array) -> Iterator[CacheGap]:
    """Of siblings with a larger cache."""
    for sibling in _slower(device):
        if (sibling.l2_bytes or 0) <= (device.l2_bytes or 0):
            continue
        gain = np.log(device.memory_bytes_per_second / sibling.memory_bytes_per_second)
        fractions = _speeds(device).bandwidth_fraction - _speeds(sibling).bandwidth_fraction
        behind = gain * (1 - losses) + fractions + _factors(device, sibling, generation)
        yield CacheGap(float(sibling.l2_bytes or 0), np.maximum(behind, 0.0))


def _factors(device: Device, sibling: Device, generation: int) -> Array:
    """By how much longer the sibling takes for groups of ops, under a generation of the framework."""
    own, other = _speeds(device), _speeds(sibling)
    factors: Array = other.groups - own.groups + (other.generations - own.generations)[generation]
    return factors
