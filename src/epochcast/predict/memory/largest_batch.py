"""The largest batch that fits, by integer search over replays.

Batches that are on the device with a probability of 95, 50 and 5 % (`predict.memory.verdict`): `safe` is the largest of
which a forecast reads "fits". A replay at batch n within usable/f − context tells whether the step still fits if it
needs f times the forecast. The search begins at the batch whose live storages alone fill the limit: no allocator can do
better.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from epochcast.base.record import Record
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.hardware.device import Device
from epochcast.predict.memory.peak import MemoryStep, step_on
from epochcast.predict.memory.verdict import EVEN, HARDLY, SURE

TRIED, TRIED_APART = 7, 0.02
"""How many smaller batches are tried, and their distance as a fraction of the largest."""

MOST = 2**24
"""Larger than any batch: a step that still fits there does not grow."""


@dataclass(frozen=True, slots=True)
class LargestBatch(Record):
    """Batches that fit: almost surely (`safe`: a forecast reads "fits"), more likely than not (`expected`), possibly
    (`limit`); 0 if not even one sample fits.
    """

    safe: int
    expected: int
    limit: int

    def at_least(self, other: "LargestBatch") -> "LargestBatch":
        """The larger of both, each."""
        return LargestBatch(
            max(self.safe, other.safe), max(self.expected, other.expected), max(self.limit, other.limit)
        )


def largest_batch(trace: Trace, device: Device, **options: Any) -> LargestBatch:
    """The largest batch of a step on a device, with the options of `step_on`; the trace's own batch does not matter."""
    return largest_of(step_on(trace, device, **options))


def largest_of(step: MemoryStep) -> LargestBatch:
    """The largest batch of a step whose storages are known."""
    safe, expected, limit = (_largest_with(step, probability) for probability in (SURE, EVEN, HARDLY))
    # What a full device frees depends on how its blocks are placed, so a tighter limit may do slightly better.
    expected = max(safe, expected)
    return LargestBatch(safe, expected, max(expected, limit))


def _largest_with(step: MemoryStep, probability: float) -> int:
    """No batch needs less than its live storages, whose limit is near that of one sample."""
    most = max(step.limit_bytes(1, probability), step.room_bytes)
    return _largest(step, most, lambda batch: step.fits_with(batch, probability))


def _largest(step: MemoryStep, limit_bytes: int, fits: Callable[[int], bool]) -> int:
    """The largest batch that `fits`; none does whose live storages exceed the limit."""
    if not fits(1):
        return 0
    high = _most_by_live_bytes(step, limit_bytes) + 1
    low = max(1, 3 * high // 4)
    while low > 1 and not fits(low):
        low, high = 3 * low // 4, low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return _before_failures(fits, low)


def _before_failures(fits: Callable[[int], bool], largest: int) -> int:
    """The last batch before the first that fails, up to the largest. On a full device the placement of blocks can make
    a smaller batch fail where a larger one fits.
    """
    tried = sorted({max(1, round(largest * (1 - place * TRIED_APART))) for place in range(TRIED)})
    failed = next((place for place, batch in enumerate(tried) if not fits(batch)), None)
    if failed is None:
        return largest
    if failed:
        return tried[failed - 1]
    batch = tried[0]
    while not fits(batch):  # ends: one sample fits
        batch = min(batch - 1, round(batch * (1 - TRIED_APART)))
    return batch


def _most_by_live_bytes(step: MemoryStep, limit_bytes: int) -> int:
    """The largest batch whose live storages alone fit."""

    def live(batch: int) -> int:
        return int(np.max(step.live_bytes(batch).sum(axis=0)))

    low, high = 1, 2
    while live(high) <= limit_bytes:
        low, high = high, 2 * high
        if high > MOST:
            raise BadInput(f"{step.name} does not grow with the batch: there is no largest batch")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if live(middle) <= limit_bytes else (low, middle)
    return low
