"""A number with its uncertainty: low ≤ mid ≤ high, and the fraction of cases in which low … high holds the truth.

Intervals have no `+`, because how two uncertainties add depends on why they are uncertain. `sum_independent` is for
unrelated errors, where half-widths add in quadrature.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum, hypot, isfinite

COVERAGE = 0.9
"""What every shipped interval is calibrated to: 90 % of the true values lie inside."""


@dataclass(frozen=True, slots=True)
class Interval:
    """low ≤ mid ≤ high, meant to hold the truth in `coverage` of cases.

    >>> import epochcast as ec
    >>> step_seconds = ec.Interval(0.09, 0.10, 0.12)
    >>> step_seconds.scaled(1000).high, step_seconds.coverage
    (120.0, 0.9)
    """

    low: float
    mid: float
    high: float
    coverage: float = COVERAGE

    def __post_init__(self) -> None:
        if not (isfinite(self.low) and isfinite(self.mid) and isfinite(self.high)):
            raise ValueError(f"an interval needs finite ends, got {self.low}, {self.mid}, {self.high}")
        if not self.low <= self.mid <= self.high:
            raise ValueError(f"an interval needs low <= mid <= high, got {self.low}, {self.mid}, {self.high}")
        if not 0 < self.coverage <= 1:
            raise ValueError(f"coverage must be in (0, 1], got {self.coverage}")

    @classmethod
    def exact(cls, value: float) -> "Interval":
        """A known value: no width, certain."""
        return cls(value, value, value, 1.0)

    @classmethod
    def around(cls, mid: float, factor: float, coverage: float = COVERAGE) -> "Interval":
        """mid/factor … mid·factor: an error that is a ratio, as errors of times are."""
        if factor < 1:
            raise ValueError(f"factor must be at least 1, got {factor}")
        return cls(mid / factor, mid, mid * factor, coverage)

    def scaled(self, factor: float) -> "Interval":
        """The same relative uncertainty about `factor` times the value (factor ≥ 0)."""
        if factor < 0:
            raise ValueError(f"an interval is scaled by a factor of at least 0, got {factor}")
        return Interval(self.low * factor, self.mid * factor, self.high * factor, self.coverage)

    def holds(self, value: float) -> bool:
        """Whether `value` lies inside."""
        return self.low <= value <= self.high

    def as_dict(self) -> dict[str, float]:
        """The four numbers of the JSON form. By hand: `base.record` builds on this module."""
        return {"low": self.low, "mid": self.mid, "high": self.high, "coverage": self.coverage}


def sum_independent(parts: Iterable[Interval]) -> Interval:
    """Σ of values that err apart: middles add, the half-widths on each side add in quadrature."""
    items = tuple(parts)
    mid = fsum(i.mid for i in items)
    below = hypot(*(i.mid - i.low for i in items))
    above = hypot(*(i.high - i.mid for i in items))
    return Interval(mid - below, mid, mid + above, _coverage(items))


def _coverage(items: tuple[Interval, ...]) -> float:
    uncertain = [i.coverage for i in items if i.low != i.high]
    return min(uncertain, default=1.0)
