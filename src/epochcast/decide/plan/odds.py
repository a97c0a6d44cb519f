"""How probable it is that an uncertain time or price stays within a limit.

The logarithm of the value is taken as normal on each side of the middle, with the interval's own ends:

    P(value ≤ limit) = Φ(ln(limit/mid) / σ)        σ = ln(high/mid)/z above the middle, ln(mid/low)/z below it

with z the quantile of the interval's coverage (1.645 for 90 %). Where an end is the middle, the value is
known on that side.
"""

from math import exp, log
from statistics import NormalDist

from epochcast.interval import Interval


def sigma(interval: Interval, *, above: bool = True) -> float:
    """Standard deviation of the logarithm on one side of the middle."""
    if interval.coverage >= 1 or interval.low <= 0:
        return 0.0
    quantile = NormalDist().inv_cdf((1 + interval.coverage) / 2)
    ratio = interval.high / interval.mid if above else interval.mid / interval.low
    return log(ratio) / quantile


def probability_within(interval: Interval, limit: float) -> float:
    """P(value ≤ limit)."""
    spread = sigma(interval, above=limit >= interval.mid)
    if spread == 0 or interval.mid <= 0:
        return float(interval.mid <= limit)
    return NormalDist().cdf(log(limit / interval.mid) / spread)


def quantile_of(interval: Interval, probability: float) -> float:
    """The value that is not exceeded with this probability; the middle at one half, the high end at 95 %."""
    normal = NormalDist().inv_cdf(probability)
    return interval.mid * exp(normal * sigma(interval, above=normal >= 0))
