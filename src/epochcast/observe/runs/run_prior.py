"""What is expected of a run before it has shown anything: its pace, what is lost beside steps, what its start takes.

A prior comes from the job's forecast (`prior_of_forecast`), from runs of the past (`past_prior`), or from both
(`combined`). The tracker takes one; the more a run has shown itself, the less it weighs (`remaining`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, fsum, log, sqrt
from typing import ClassVar

from epochcast.base.record import Record, paths
from epochcast.errors import BadInput
from epochcast.interval import COVERAGE, Interval
from epochcast.predict.forecast.forecast import Forecast

# Quantile of a normal distribution at which 90 % lie within ±.
NORMAL_90 = 1.6449
# No prior is surer than this (log). An assumption: what another run of the same job on the same machine differs by.
LEAST_LOG_ERROR = 0.01


@dataclass(frozen=True, slots=True)
class Prior:
    """`pause_fraction` is seconds beside steps (validation, checkpoints) over seconds of steps; None: nobody said."""

    step_seconds: Interval | None = None
    pause_fraction: float | None = None
    start_seconds: float | None = None
    source: str = "the forecast"

    def __post_init__(self) -> None:
        if self.step_seconds is not None and not self.step_seconds.low > 0:
            raise BadInput(f"step_seconds must be positive, got {self.step_seconds.low}")
        for name in ("pause_fraction", "start_seconds"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise BadInput(f"{name} must be 0 or more, got {value}")

    @property
    def log_error(self) -> float | None:
        """One standard deviation of the pace, as a logarithm."""
        return None if self.step_seconds is None else max(LEAST_LOG_ERROR, log_error(self.step_seconds))


@dataclass(frozen=True, slots=True)
class Past(Record):
    """What past runs say. `ratio` is observed over forecast seconds of a step; `same` counts runs of the very job."""

    ratio: Interval
    same: int
    similar: int
    pause_fraction: float | None = None
    start_seconds: float | None = None

    json_paths: ClassVar[Mapping[str, str]] = paths("ratio", "same", "similar", told="sentence")

    @property
    def sentence(self) -> str:
        """In words."""
        change = self.ratio.mid - 1
        size = f"{abs(change):.0%}".replace("%", " %")
        how = "as fast as forecast" if size == "0 %" else f"{size} {'slower' if change > 0 else 'faster'} than forecast"
        count, kind = (self.same, "of this job") if self.same else (self.similar, "like this one")
        return f"your last {f'run {kind} was' if count == 1 else f'{count} runs {kind} were'} {how}"


def log_error(interval: Interval) -> float:
    """The standard deviation whose 90 % is the interval, as a logarithm."""
    return log(interval.high / interval.low) / (2 * NORMAL_90) if interval.low > 0 else 1.0


def prior_of_forecast(forecast: Forecast) -> Prior:
    """Pace, validation and checkpoints, and warm-up, as the forecast has them."""
    step, steps, epoch, total = (
        forecast.step_seconds,
        forecast.steps_per_epoch,
        forecast.epoch_seconds,
        forecast.total_seconds,
    )
    pause_fraction = start_seconds = None
    if steps and epoch is not None:
        pause_fraction = max(0.0, epoch.mid / (steps * step.mid) - 1)
    if total is not None and epoch is not None:
        start_seconds = max(0.0, total.mid - forecast.epochs * epoch.mid)
    return Prior(step if step.low > 0 else None, pause_fraction, start_seconds)


def combined(priors: Sequence[Prior | None]) -> Prior | None:
    """All that say something as one: paces in log space by precision; of the rest, the surest that has it."""
    ranked = sorted((prior for prior in priors if prior is not None), key=_error)
    if not ranked:
        return None
    return Prior(
        _pace([(prior.step_seconds, prior.log_error) for prior in ranked]),
        next((prior.pause_fraction for prior in ranked if prior.pause_fraction is not None), None),
        next((prior.start_seconds for prior in ranked if prior.start_seconds is not None), None),
        " and ".join(dict.fromkeys(prior.source for prior in ranked)),
    )


def _error(prior: Prior) -> float:
    return float("inf") if prior.log_error is None else prior.log_error


def _pace(paces: Sequence[tuple[Interval | None, float | None]]) -> Interval | None:
    measured = [(interval, error) for interval, error in paces if interval is not None and error is not None]
    if not measured:
        return None
    if len(measured) == 1:
        return measured[0][0]
    weights = [error**-2 for _, error in measured]
    middle = fsum(weight * log(interval.mid) for weight, (interval, _) in zip(weights, measured, strict=True))
    # Two that disagree by more than they claim are both less sure than they claim (Birge's ratio).
    mean = middle / fsum(weights)
    misfit = fsum(w * (log(interval.mid) - mean) ** 2 for w, (interval, _) in zip(weights, measured, strict=True))
    error = sqrt(max(1.0, misfit / (len(measured) - 1)) / fsum(weights))
    around = Interval.around(exp(mean), exp(NORMAL_90 * max(error, LEAST_LOG_ERROR)))
    return Interval(around.low, around.mid, around.high, COVERAGE)


def past_prior(past: Past | None, forecast: Forecast | None) -> Prior | None:
    """What past runs say, as the tracker takes it: the forecast's pace times their ratio."""
    if past is None or forecast is None:
        return None
    pace = past.ratio.scaled(forecast.step_seconds.mid)
    return Prior(pace, past.pause_fraction, past.start_seconds, past.sentence)
