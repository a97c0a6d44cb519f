"""The factor of an observation against the forecast, and what it means.

    factor = observed / forecast, its ends apart by both uncertainties, √(ln² + ln²) on each side

normal       the interval of the factor holds 1: the false-alarm rate is what the interval leaves out, 10 % or less
slower       all of it is above 1
faster       all of it is below 1
suspicious   more of the GPUs' peak than there is, or further from the forecast than any cause explains
"""

from math import exp, hypot, log

from epochcast.interval import Interval
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.measured_step import MOST_RATIO

NORMAL, SLOWER, FASTER, SUSPICIOUS = "normal", "slower", "faster", "suspicious"


def speed_factor(observed: Interval, expected: Interval) -> Interval:
    """Observed over expected seconds."""
    middle = observed.mid / expected.mid
    below = hypot(log(observed.mid / observed.low), log(expected.high / expected.mid))
    above = hypot(log(observed.high / observed.mid), log(expected.mid / expected.low))
    coverage = min(observed.coverage, expected.coverage)
    return Interval(middle * exp(-below), middle, middle * exp(above), coverage)


def observed_mfu(forecast: Forecast, observed_seconds: float) -> float | None:
    """Model flops utilisation at the observed speed; None where the forecast does not know it."""
    return None if forecast.mfu is None else forecast.mfu * forecast.step_seconds.mid / observed_seconds


def speed_verdict(factor: Interval, mfu: float | None) -> str:
    """The verdict; `mfu` is that of the shortest step which the observation allows."""
    is_beyond_peak = mfu is not None and mfu > 1
    if not 1 / MOST_RATIO <= factor.mid <= MOST_RATIO or (is_beyond_peak and factor.high < 1):
        return SUSPICIOUS
    if factor.holds(1.0):
        return NORMAL
    return SLOWER if factor.low > 1 else FASTER
