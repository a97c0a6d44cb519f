"""Whether a step fits, in words: the interval of its peak against what the card has.

fits            even the high end of the interval is on the card
tight           the expected peak is on the card, the high end is not
does not fit    the step runs out of memory in a replay within the card

Everything else that says whether a step fits (`fits`, exit codes, tables) is derived from this word by `is_fitting`.
"""

from epochcast.hardware.device import Device
from epochcast.interval import Interval
from epochcast.predict.memory.device_context import context_bytes, usable_bytes

FITS, TIGHT, DOES_NOT_FIT = "fits", "tight", "does not fit"
VERDICTS = (FITS, TIGHT, DOES_NOT_FIT)

# A little wider than the middle 90 % of measured/forecast over memory_schedtune (0.942 … 1.090), whose rows the
# contexts were fitted on. On a GPU whose context was not fitted fewer points are inside: docs/memory-accuracy.md.
LOW_FACTOR, HIGH_FACTOR = 0.92, 1.11


def peak_interval(mid_bytes: float) -> Interval:
    """What a step may need, whatever the card has."""
    return Interval(LOW_FACTOR * mid_bytes, mid_bytes, HIGH_FACTOR * mid_bytes)


def sure_bytes(device: Device) -> int:
    """What an allocator may hold at most for a step that fits by the high end of its interval."""
    return max(0, int(usable_bytes(device) / HIGH_FACTOR) - context_bytes(device))


def memory_verdict(reserved_bytes: int, device: Device, *, is_replayed: bool) -> str:
    """Of a step whose allocator holds so much; `is_replayed`: whether a replay within the card succeeds."""
    if not is_replayed:
        return DOES_NOT_FIT
    return FITS if reserved_bytes <= sure_bytes(device) else TIGHT


def peak_verdict(peak_bytes: Interval, usable_bytes: float) -> str:
    """Of a peak that is known without a replay, such as a corrected one: its middle and its high end decide."""
    if peak_bytes.mid > usable_bytes:
        return DOES_NOT_FIT
    return FITS if peak_bytes.high <= usable_bytes else TIGHT


def is_fitting(verdict: str | None) -> bool | None:
    """Whether a step runs; None where nobody asked."""
    return None if verdict is None else verdict != DOES_NOT_FIT
