"""What it would take to be sure of a choice: a few measured steps on it and on its nearest rivals, and what they save.

The price X of the choice and Y of a rival are uncertain (by the forecast, not by the price list). Errors are ratios,
taken as normal in the logarithm with σ from the 90 % interval, σ = ln(high/mid)/1.645; what like devices share cancels:

    v² = σx² + σy² − 2·ρ·σx·σy           ρ: correlation of the two errors

Today X is taken. Measured, the cheaper of the two would be: that saves max(0, X − Y), which is the value of an option
to exchange one asset for another (Margrabe 1978):

    value = X·Φ(d) − Y·Φ(d − w),   d = ln(X/Y)/w + w/2,   w² = v² − r²

with r what stays uncertain after measuring. A rival that may turn out to be beyond a limit counts by the probability
that it is not. A run costs its boot, its warm-up and STEPS steps as they are billed; it is
worth it where the value exceeds the price of RUNS runs on each of the two. Time is valued likewise, in seconds, where
the fastest is looked for.

W. Margrabe, The value of an option to exchange one asset for another, Journal of Finance 33(1), 1978.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt
from statistics import NormalDist
from typing import ClassVar

from epochcast.base.record import Record, paths
from epochcast.decide.plan.billing import Extras
from epochcast.decide.plan.candidate import Candidate
from epochcast.decide.plan.choice import PlanLimits
from epochcast.decide.plan.odds import sigma
from epochcast.interval import Interval
from epochcast.predict.forecast.epochs import WARMUP_SECONDS

RUNS, STEPS, RIVALS = 5, 100, 2
# What stays uncertain of a job's time once its own steps were measured on the machine: the largest repeat noise among
# published measurements, 4 % between seeds of MLPerf runs (identical steps differ by 0.6 %, GPUs of a fleet by 2.3 %).
RESIDUAL = 0.04
# How much of their errors two forecasts of one job share, on the same device and on two; from studies/plan, where
# errors of the same network on two devices were compared (docs/accuracy/plan-accuracy.md).
SAME_DEVICE_CORRELATION, OTHER_DEVICE_CORRELATION = 0.86, 0.72


@dataclass(frozen=True, slots=True)
class Rival(Record):
    """A configuration that might turn out better, how probable that is, and what knowing would be worth.

    `saving` is in dollars, or in seconds where time is the goal.
    """

    candidate: Candidate
    probability: float
    saving: float
    calibration_dollars: float

    json_paths: ClassVar[Mapping[str, str]] = paths(
        "calibration_dollars",
        offer="candidate.offer.instance.name",
        cloud="candidate.offer.instance.cloud",
        device="candidate.offer.instance.device",
        gpus="candidate.offer.gpus",
        nodes="candidate.offer.nodes",
        probability_better="probability",
        expected_saving="saving",
    )


def rivals(
    choice: Candidate, candidates: Sequence[Candidate], limits: PlanLimits, goal: str, extras: Extras
) -> tuple[Rival, ...]:
    """The nearest rivals of a choice on other devices, the one whose measurement is worth most first. What is beyond a
    limit by its middle is none.
    """
    nearest: dict[str, Candidate] = {}
    for other in sorted(candidates, key=lambda candidate: _value(candidate, goal).mid):
        if other.offer.instance.device != choice.offer.instance.device and _is_within(other, limits):
            nearest.setdefault(other.offer.instance.device, other)
    others = [_rival(choice, other, limits, goal, extras) for other in nearest.values()]
    return tuple(sorted(others, key=lambda rival: (-rival.saving, -rival.probability))[:RIVALS])


def exchange_value(mine: float, other: float, spread: float) -> float:
    """X·Φ(d) − Y·Φ(d − w); without a spread what is known to be saved."""
    if spread <= 0:
        return max(0.0, mine - other)
    normal, d = NormalDist(), log(mine / other) / spread + spread / 2
    return max(0.0, mine * normal.cdf(d) - other * normal.cdf(d - spread))


def ratio_spread(mine: Interval, other: Interval, correlation: float) -> float:
    """v: the standard deviation of ln(X/Y)."""
    x, y = sigma(mine), sigma(other)
    return sqrt(max(0.0, x * x + y * y - 2 * correlation * x * y))


def calibration_dollars(candidate: Candidate, extras: Extras) -> float:
    """RUNS runs of STEPS steps on an offer."""
    run = extras.startup_seconds + WARMUP_SECONDS + STEPS * candidate.forecast.step_seconds.mid
    offer = candidate.offer
    return RUNS * Extras(extras.billing).dollars(run, offer.dollars_per_hour, offer.instance.cloud)


def _rival(choice: Candidate, other: Candidate, limits: PlanLimits, goal: str, extras: Extras) -> Rival:
    mine, theirs = _value(choice, goal), _value(other, goal)
    is_same = choice.offer.instance.device == other.offer.instance.device
    spread = ratio_spread(mine, theirs, SAME_DEVICE_CORRELATION if is_same else OTHER_DEVICE_CORRELATION)
    learnt = sqrt(max(0.0, spread**2 - 2 * RESIDUAL**2))
    better = NormalDist().cdf(log(mine.mid / theirs.mid) / spread) if spread else float(theirs.mid < mine.mid)
    cost = calibration_dollars(choice, extras) + calibration_dollars(other, extras)
    within = _within_probability(other, limits)
    return Rival(other, within * better, within * exchange_value(mine.mid, theirs.mid, learnt), cost)


def _value(candidate: Candidate, goal: str) -> Interval:
    return candidate.total_seconds if goal == "fastest" else candidate.dollars


def _is_within(candidate: Candidate, limits: PlanLimits) -> bool:
    """By the middle: a measurement may show that it is."""
    deadline, budget = limits.deadline_seconds, limits.budget_dollars
    return (deadline is None or candidate.total_seconds.mid <= deadline) and (
        budget is None or candidate.dollars.mid <= budget
    )


def _within_probability(candidate: Candidate, limits: PlanLimits) -> float:
    """Whether it will turn out to be within the limits; the less sure of two, as time and money err together."""
    chances = (limits.deadline_probability(candidate), limits.budget_probability(candidate))
    return min((chance for chance in chances if chance is not None), default=1.0)
