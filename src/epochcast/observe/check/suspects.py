"""What a family of causes works with: the question, and a suspect, the step of the job as it would be with one cause.

Most suspects are the job forecast again with one thing changed, so their error is the forecast's own: the step is the
forecast's interval times a ratio. A cause without a model has a range of factors that people meet.

Which suspect is likeliest (`ranked`): weight = prior × how well its step meets the observed one,

    exp(-z²/2) / σ,   z = ln(observed / suspect) / σ,   σ² = σ_suspect² + σ_observed²

and the same for "nothing is wrong, the forecast is off". Something that has no model here is as likely at any factor
between 1/100 and 100. A sign that was measured multiplies the weight.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import exp, hypot, log, pi, sqrt

from epochcast.errors import EpochcastError
from epochcast.interval import Interval
from epochcast.observe.check.observation import RunSigns
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import JOB_OPTIONS, Job
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.session import Session

_NINETY = 1.645
# Priors and signs are set by hand: what is asked most often in issue threads of trainers comes first. They only decide
# between causes that meet the observation equally well; `studies/check` scores the order.
COMMON, USUAL, RARE = 1.0, 0.5, 0.2
NOTHING_WRONG, UNKNOWN = 1.0, 0.3
SHOWN, SAID = 20.0, 0.3
"""Factors of a weight: a sign was measured; the user said the option, so that it is unlikely to be something else."""
LEAST_CHANGE = 0.03
"""A suspect that changes the step by less explains nothing."""
_UNKNOWN_DENSITY = sqrt(2 * pi) / (2 * log(100))


@dataclass(frozen=True, slots=True)
class SpeedQuestion:
    """A job, its forecast, and the seconds of a step that somebody saw."""

    forecast: Forecast
    job: Job
    placement: Placement
    session: Session
    observed_seconds: Interval
    signs: RunSigns

    @property
    def is_text(self) -> bool:
        """Whether a language model is trained: what people set differs from other networks."""
        return self.forecast.tokens_per_sample is not None

    def instead(
        self, placement: Placement | None = None, session: Session | None = None, **options: object
    ) -> Interval | None:
        """The step of the job with other options or at another place; None where there is no such job."""
        try:
            job = replace(self.job, **options)  # type: ignore[arg-type]
            answer = forecast_job(job, placement or self.placement, session or self.session, step_only=True)
        except EpochcastError:
            return None
        return self.times(answer.step_seconds.mid / self.forecast.step_seconds.mid)

    def times(self, factor: float) -> Interval:
        """The forecast step times a factor."""
        return self.forecast.step_seconds.scaled(factor)

    def waiting(self, fraction: float) -> Interval:
        """The forecast step, and the share of the observed one that is waited."""
        step, waited = self.forecast.step_seconds, fraction * self.observed_seconds.mid
        return Interval(step.low + waited, step.mid + waited, step.high + waited, step.coverage)

    def between(self, low: float, high: float) -> Interval:
        """The forecast step times a factor somewhere in a range, in nine tenths of the cases."""
        step, middle = self.forecast.step_seconds, sqrt(low * high)
        below = hypot(log(middle / low), log(step.mid / step.low))
        above = hypot(log(high / middle), log(step.high / step.mid))
        return Interval(step.mid * middle * exp(-below), step.mid * middle, step.mid * middle * exp(above))

    def prior_of(self, option: str, prior: float) -> float:
        """The prior of a cause that is an option of the job being otherwise than forecast."""
        is_said = option not in self.forecast.assumed and getattr(self.job, option) != _DEFAULTS[option]
        return prior * (SAID if is_said else 1.0)


_DEFAULTS: Mapping[str, object] = {option.name: option.default for option in JOB_OPTIONS}


@dataclass(frozen=True, slots=True)
class Suspect:
    """A cause: the step as it would be with it, why it is suspected, and what separates it from the others.

    `is_shown` where a sign of the observation is evidence for it.
    """

    name: str
    step_seconds: Interval
    prior: float
    evidence: str
    separate_by: str
    is_shown: bool = False

    def weight(self, observed: Interval) -> float:
        """Prior times how well the step meets the observed one, and what was measured."""
        return self.prior * (SHOWN if self.is_shown else 1.0) * agreement(self.step_seconds, observed)


def agreement(step: Interval, observed: Interval) -> float:
    """The density of an observation where a step is expected, in the logarithm."""
    away = log(observed.mid / step.mid)
    own = log(step.high / step.mid) if away > 0 else log(step.mid / step.low)
    seen = log(observed.mid / observed.low) if away > 0 else log(observed.high / observed.mid)
    sigma = max(hypot(own, seen) / _NINETY, 1e-3)
    return exp(-((away / sigma) ** 2) / 2) / sigma


def likeliest(suspects: Iterable[Suspect], question: SpeedQuestion) -> list[tuple[Suspect, float]]:
    """The best suspect of each name, with the probability of all of that name; those that point the other way are left
    out.

    The rest of the probability is that nothing is wrong, or something that is not among them.
    """
    expected, observed = question.forecast.step_seconds, question.observed_seconds
    is_slower = observed.mid > expected.mid
    best: dict[str, tuple[Suspect, float]] = {}
    sums: dict[str, float] = defaultdict(float)
    for suspect in suspects:
        change = suspect.step_seconds.mid / expected.mid
        if (change if is_slower else 1 / change) < 1 + LEAST_CHANGE:
            continue
        weight = suspect.weight(observed)
        sums[suspect.name] += weight
        if suspect.name not in best or weight > best[suspect.name][1]:
            best[suspect.name] = suspect, weight
    others = NOTHING_WRONG * agreement(expected, observed) + UNKNOWN * _UNKNOWN_DENSITY
    total = others + sum(sums.values())
    return sorted(((suspect, sums[name] / total) for name, (suspect, _) in best.items()), key=lambda pair: -pair[1])
