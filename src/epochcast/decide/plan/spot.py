"""Spare capacity that may be taken back: what interruptions add to a job, and how often to save.

Interruptions of a machine are a Poisson process; any of k machines stops the job, so they come every M = 1/(k·λ)
seconds on average. The job saves after every τ seconds of work, which takes C; after an interruption it starts again in
R seconds and repeats what was not saved. Interruptions strike while it saves and starts, too. Then (Daly 2006, eq. 20)

    expected = M · e^(R/M) · (e^((τ + C)/M) − 1) · W/τ            W: seconds of work

    τ = √(2·C·M) · (1 + ⅓·√(C/2M) + C/18M) − C                    for C < 2M, else M (Daly 2006, eq. 37)

whose first term is Young's (1974). The number of interruptions is Poisson, each costs R and a part of τ + C that is
even between 0 and all of it, so the variance of what they cost is λ'·T·(R² + R·(τ+C) + (τ+C)²/3), λ' = 1/M.

J. W. Young, A first order approximation to the optimum checkpoint interval, CACM 17(9), 1974.
J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, FGCS 22(3), 2006.

Limits: preemptions of some clouds cluster in time and come in waves; the job waits for nobody else's capacity; all R
seconds are paid for.
"""

from dataclasses import dataclass
from math import exp, expm1, hypot, inf, isfinite, sqrt
from statistics import NormalDist

from epochcast.errors import BadInput
from epochcast.interval import Interval

# A new machine, its image and the last checkpoint: an assumption, not a measurement; `track --restart` takes the same.
RESTART_SECONDS = 300.0
# Beyond, e^(τ/M) is no time anybody would wait.
_MOST_EXPONENT = 30.0


@dataclass(frozen=True, slots=True)
class Spot:
    """How often a machine is taken back, and what saving and starting again cost.

    None for `checkpoint_seconds`: what the forecast takes to write its state.
    """

    interruptions_per_hour: float
    checkpoint_seconds: float | None = None
    restart_seconds: float = RESTART_SECONDS

    def __post_init__(self) -> None:
        if not (isfinite(self.interruptions_per_hour) and 0 <= self.interruptions_per_hour <= 60):
            raise BadInput(f"interruptions per hour must be between 0 and 60, got {self.interruptions_per_hour:g}")
        for name, value in (("checkpoint", self.checkpoint_seconds), ("restart", self.restart_seconds)):
            if value is not None and not (isfinite(value) and value >= 0):
                raise BadInput(f"seconds of a {name} must be at least 0, got {value:g}")

    def mean_seconds_between(self, machines: int) -> float:
        """M: from one interruption of the job to the next."""
        rate = machines * self.interruptions_per_hour / 3600
        return 1 / rate if rate else inf


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A job on spare capacity: what it takes in all, and how often it saves and is interrupted."""

    total_seconds: Interval
    checkpoint_interval_seconds: float
    interruptions: float


def checkpoint_interval_seconds(checkpoint_seconds: float, mean_seconds_between: float) -> float:
    """τ of Daly (2006); infinite where nothing interrupts."""
    cost, mean = checkpoint_seconds, mean_seconds_between
    if mean == inf:
        return inf
    if cost >= 2 * mean:
        return mean
    part = sqrt(cost / (2 * mean))
    return max(sqrt(2 * cost * mean) * (1 + part / 3 + part**2 / 9) - cost, 1e-3 * mean)


def expected_seconds(
    work_seconds: float,
    interval_seconds: float,
    checkpoint_seconds: float,
    restart_seconds: float,
    mean_seconds_between: float,
) -> float:
    """Daly's expected seconds of a job; infinite where it is interrupted too often to get on."""
    mean = mean_seconds_between
    if mean == inf:
        return work_seconds
    interval = min(interval_seconds, work_seconds)
    exponent = (interval + checkpoint_seconds) / mean
    if exponent > _MOST_EXPONENT or restart_seconds / mean > _MOST_EXPONENT:
        return inf
    return mean * exp(restart_seconds / mean) * expm1(exponent) * work_seconds / interval


def interrupted(work_seconds: Interval, spot: Spot, checkpoint_seconds: float, machines: int) -> Interrupted | None:
    """The job with its interruptions; None where they come too often to get on. The interval has the forecast's
    uncertainty and that of when interruptions come, which add as squares.
    """
    mean = spot.mean_seconds_between(machines)
    cost = checkpoint_seconds if spot.checkpoint_seconds is None else spot.checkpoint_seconds
    interval = checkpoint_interval_seconds(cost, mean)
    low, mid, high = (
        expected_seconds(work, interval, cost, spot.restart_seconds, mean)
        for work in (work_seconds.low, work_seconds.mid, work_seconds.high)
    )
    if high == inf:
        return None
    interruptions = 0.0 if mean == inf else mid / mean
    lost = 0.0 if mean == inf else min(interval, work_seconds.mid) + cost
    restart = spot.restart_seconds
    deviation = sqrt(interruptions * (restart**2 + restart * lost + lost**2 / 3))
    away = NormalDist().inv_cdf((1 + work_seconds.coverage) / 2) * deviation if work_seconds.coverage < 1 else 0.0
    seconds = Interval(
        max(min(work_seconds.low, mid), mid - hypot(mid - low, away)),
        mid,
        mid + hypot(high - mid, away),
        work_seconds.coverage,
    )
    return Interrupted(seconds, min(interval, work_seconds.mid), interruptions)
