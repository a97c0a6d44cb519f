"""Whether a step fits: the probability that its peak is on the card, and that probability in a word.

fits            95 % and more: even the high end of the interval is on the card
tight           between: measure a few steps before a long run
does not fit    5 % and less

`fits` of an answer is whether it is more likely than not. Every verb says it by `verdict_of` and `is_fitting`.
"""

from math import log
from statistics import NormalDist

from epochcast.interval import Interval

FITS, TIGHT, DOES_NOT_FIT = "fits", "tight", "does not fit"
VERDICTS = (FITS, TIGHT, DOES_NOT_FIT)
SURE, EVEN, HARDLY = 0.95, 0.5, 0.05
"""The probability from which a step fits, from which it rather does, and below which it does not."""
_NORMAL = NormalDist()


def verdict_of(probability: float) -> str:
    """One of VERDICTS."""
    if probability >= SURE:
        return FITS
    return DOES_NOT_FIT if probability <= HARDLY else TIGHT


def is_fitting(verdict: str | None, probability: float | None = None) -> bool | None:
    """Whether a step rather runs than not; None where nobody asked. Of a verdict written by hand the word decides."""
    if probability is not None:
        return probability >= EVEN
    return None if verdict is None else verdict != DOES_NOT_FIT


def interval_probability(peak_bytes: Interval, usable_bytes: float) -> float:
    """That a peak of which only the interval is known is on the card, such as a corrected one: on each side of the
    middle, its logarithm is taken to be normal.
    """
    if usable_bytes <= 0:
        return 0.0
    end = peak_bytes.high if usable_bytes >= peak_bytes.mid else peak_bytes.low
    half_width = abs(log(end / peak_bytes.mid)) if end > 0 else float("inf")
    away = log(usable_bytes / peak_bytes.mid)
    if half_width == 0:
        return 1.0 if away >= 0 else 0.0
    return _NORMAL.cdf(_NORMAL.inv_cdf((1 + peak_bytes.coverage) / 2) * away / half_width)
