"""How sure a *change* of the step is: the interval of head ÷ base.

What a forecast gets wrong about kernels that both steps have, it gets wrong on both sides alike, and it cancels. With
S the seconds of shared kernels and T those of all kernels of a side,

    u    = √((1 - S/T_base)² + (1 - S/T_head)²)      how unlike the two steps are: 0 equal, √2 nothing in common
    h    = c · √u                                    log(ratio) is within ±h in 90 % of cases
    low, high = ratio · e^(-h), ratio · e^h

c was measured on pairs of variants that ran on the same GPU (`paired.toml`; `studies/diff`). What the exchange
between GPUs changes adds its own error. Where one step has all kernels of the other and more, it does not take less
time (none of 103 such pairs did), so neither the middle nor
the interval is below 1. Two sides on different devices, or in different formats,
layouts or frameworks, have nothing to cancel: their intervals are taken as errors that are independent.
"""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from math import exp, hypot, inf, log, sqrt

from epochcast.base.caching import remembered
from epochcast.decide.diff.diff_side import Side
from epochcast.interval import COVERAGE, Interval
from epochcast.predict.comm.stragglers import exchange_error_seconds
from epochcast.predict.forecast.forecast import Forecast

_ALIKE = ("device", "precision", "weights", "mode", "framework", "compile", "gpus", "nodes", "strategy")
"""What two sides must have in common for their errors to cancel."""


@remembered(1)
def constants() -> Mapping[str, float]:
    """c by what is known of the device."""
    table = tomllib.loads(files("epochcast.decide.diff").joinpath("paired.toml").read_text(encoding="utf-8"))
    return {"known": float(table["known"]["log_error"]), "unseen": float(table["unseen"]["log_error"])}


def differing(base: Forecast, head: Forecast) -> tuple[str, ...]:
    """What keeps the errors of two sides from cancelling; nothing where they do."""
    return tuple(name for name in _ALIKE if getattr(base, name) != getattr(head, name))


NOTHING = 0.01
"""A step of whose kernels less than this part of the time is missing in the other has nothing that the other has not:
the update of all parameters is one kernel, and changes with any of them."""


def unshared(base: Mapping[str, float], head: Mapping[str, float]) -> tuple[float, float]:
    """The parts of the seconds of two steps that are in kernels of one alone, by their signatures."""
    shared = sum(min(seconds, head.get(signature, 0.0)) for signature, seconds in base.items())
    before, after = (
        max(0.0, 1 - shared / total) if (total := sum(kernels.values())) else 1.0 for kernels in (base, head)
    )
    return before, after


def _has_less(mine: float, other: float) -> bool:
    """Whether a step has next to nothing of its own, and the other step has more."""
    return mine < NOTHING and 2 * mine < other


def unlikeness(base: Mapping[str, float], head: Mapping[str, float]) -> float:
    """u, of the kernels of two steps by signature."""
    return hypot(*unshared(base, head))


def step_change(base: Side, head: Side) -> Interval:
    """head ÷ base of the step."""
    before, after = base.forecast.step_seconds, head.forecast.step_seconds
    if differing(base.forecast, head.forecast):
        return independent_change(before, after)
    alone = unshared(base.kernels, head.kernels)
    least = 1.0 if _has_less(*alone) else 0.0
    most = 1.0 if _has_less(*reversed(alone)) else inf
    ratio = min(max(after.mid / before.mid, least), most)
    half = constants()["known" if base.is_known and head.is_known else "unseen"] * sqrt(hypot(*alone))
    below, above = _exchange_logs(base.forecast, head.forecast)
    paired = Interval(ratio * exp(-hypot(half, below)), ratio, ratio * exp(hypot(half, above)), COVERAGE)
    apart = independent_change(before, after)  # no pair can be less sure than two unrelated forecasts
    low = min(ratio, max(paired.low, apart.low, least))
    return Interval(low, ratio, max(ratio, min(paired.high, apart.high, most)), COVERAGE)


def _exchange_logs(base: Forecast, head: Forecast) -> tuple[float, float]:
    """What is not known of the exchange that one side has and the other has not, relative to the step."""
    if base.step_parts is None or head.step_parts is None:
        return 0.0, 0.0
    changed = abs(head.step_parts.exposed_comm - base.step_parts.exposed_comm)
    below, above = exchange_error_seconds(changed)
    least = min(base.step_seconds.mid, head.step_seconds.mid)
    return below / least, above / least


def independent_change(base: Interval, head: Interval) -> Interval:
    """head ÷ base of two intervals whose errors have nothing to do with each other: their logarithms add as squares."""
    if not base.mid > 0:
        return Interval.exact(1.0)
    ratio = head.mid / base.mid
    below = hypot(_log(head.mid, head.low), _log(base.high, base.mid))
    above = hypot(_log(head.high, head.mid), _log(base.mid, base.low))
    low = 0.0 if below == inf else ratio * exp(-below)
    return Interval(low, ratio, ratio * exp(min(above, 50.0)), min(base.coverage, head.coverage))


def _log(larger: float, smaller: float) -> float:
    return inf if smaller <= 0 else max(0.0, log(larger / smaller))


def like(change: Interval, ratio: float) -> Interval:
    """The same relative uncertainty about another ratio: the job has the errors of its steps."""
    return change.scaled(ratio / change.mid)
