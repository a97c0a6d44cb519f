"""The largest batch that fits, by integer search over replays.

`safe` is the largest batch of which a forecast reads "fits" (`predict.memory.verdict`). For the others a replay at
batch n with the limit room/f tells whether the step would still fit if it needed f times the forecast. The search
begins at the batch whose live storages alone fill the limit: no allocator can do better.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from epochcast.base.record import Record
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.hardware.device import Device
from epochcast.predict.memory.device_context import room_bytes
from epochcast.predict.memory.peak import MemoryStep, step_on
from epochcast.predict.memory.sharding import WHOLE, RankShares
from epochcast.predict.memory.verdict import sure_bytes

TRIED, TRIED_APART = 7, 0.02
"""How many smaller batches are tried, and their distance as a fraction of the largest."""

MOST = 2**24
"""Larger than any batch: a step that still fits there does not grow."""

FACTORS: Mapping[str, float] = {"expected": 1.02, "limit": 0.93}
"""What the need is multiplied by, chosen on 147 rows of memory_timm_intervals and the thesis' table: `expected`
corrects for what a replay does not see. The `safe` batch was below the one that failed in 99 % of them
(studies/memory)."""


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


def largest_batch(
    trace: Trace,
    device: Device,
    *,
    set_to_none: bool = True,
    sums_in_place: bool = True,
    allocator: str = "caching",
    shares: RankShares = WHOLE,
) -> LargestBatch:
    """The largest batch of a step on a device; the trace's own batch does not matter."""
    step = step_on(
        trace, device, set_to_none=set_to_none, sums_in_place=sums_in_place, allocator=allocator, shares=shares
    )
    return largest_of(step, device)


def largest_of(step: MemoryStep, device: Device) -> LargestBatch:
    """The largest batch of a step whose storages are known."""
    room = room_bytes(device)
    safe = _largest(step, sure_bytes(device), step.is_sure)
    largest = {name: _largest_within(step, int(room / factor)) for name, factor in FACTORS.items()}
    # What a full device frees depends on how its blocks are placed, so a tighter limit may do slightly better.
    expected = max(safe, largest["expected"])
    return LargestBatch(safe, expected, max(expected, largest["limit"]))


def _largest_within(step: MemoryStep, limit_bytes: int) -> int:
    return _largest(step, limit_bytes, lambda batch: step.fits(batch, limit_bytes))


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
