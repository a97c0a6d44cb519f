"""Is this speed normal? The forecast of a job against what was observed, and the likeliest causes of a difference."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from epochcast.base.display import Displayed
from epochcast.base.record import Record, paths
from epochcast.interval import Interval
from epochcast.observe.check.device_causes import (
    other_device_causes,
    shared_causes,
    spill_causes,
    throttle_causes,
)
from epochcast.observe.check.feeding_causes import first_step_causes, launch_causes, loader_causes, pause_causes
from epochcast.observe.check.group_causes import link_causes, rank_causes, rate_causes
from epochcast.observe.check.observation import Observation
from epochcast.observe.check.settings_causes import (
    accumulation_causes,
    attention_causes,
    checkpointing_causes,
    compiler_causes,
    length_causes,
    precision_causes,
)
from epochcast.observe.check.suspects import SpeedQuestion, Suspect, likeliest
from epochcast.observe.runs.speed_verdict import NORMAL, SLOWER, SUSPICIOUS, observed_mfu, speed_factor, speed_verdict
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.session import Session
from epochcast.predict.memory.verdict import SURE

MOST_CAUSES = 5
LEAST_PROBABILITY = 0.02
"""Causes that are less likely are not named."""
PAUSES_SHOW = 0.1
"""Share of a log's time from which pauses are named."""
PAUSE_TEST = "epochcast track LOG: it lists the pauses; evaluate and save less often, or look at what stopped it"


@dataclass(frozen=True, slots=True)
class Cause(Record):
    """A cause, its probability among those that were compared, and how many of the missing seconds it explains.

    `step_seconds` is the step of the job as it would be. `separate_by` is a command or setting that tells it from the
    others. `is_measured` where the observation itself shows it.
    """

    name: str
    probability: float
    step_seconds: Interval
    explained_seconds: Interval
    evidence: str
    separate_by: str
    is_measured: bool


@dataclass(frozen=True)
class SpeedCheck(Displayed, Record):
    """The verdict on an observed speed. `mfu` is the utilisation at the observed speed."""

    view: ClassVar[str] = "speed_check"
    json_paths: ClassVar[Mapping[str, str]] = paths(
        "verdict",
        "factor",
        "observed_seconds",
        "missing_seconds",
        "mfu",
        "causes",
        observed="observation",
        model="forecast.model",
        device="forecast.device",
        gpus="forecast.gpus",
        batch_per_gpu="forecast.batch_per_gpu",
        global_batch="forecast.global_batch",
        precision="forecast.precision",
        forecast_step_seconds="forecast.step_seconds",
        assumed="forecast.assumed",
        warnings="forecast.warnings",
    )

    forecast: Forecast
    observation: Observation
    observed_seconds: Interval
    factor: Interval
    verdict: str
    mfu: float | None
    causes: tuple[Cause, ...] = ()

    @property
    def missing_seconds(self) -> float:
        """Observed beyond the forecast, per step; below 0 where it is faster."""
        return self.observed_seconds.mid - self.forecast.step_seconds.mid

    def exceeds(self, tolerance: float | None) -> bool:
        """Whether a step takes more than so many times the forecast."""
        return tolerance is not None and self.factor.mid > tolerance


def check_speed(job: Job, placement: Placement, observation: Observation, session: Session) -> SpeedCheck:
    """The verdict on an observation of a job."""
    forecast = forecast_job(job, placement, session)
    observed = observation.step_seconds(forecast)
    factor = speed_factor(observed, forecast.step_seconds)
    mfu = observed_mfu(forecast, observed.mid)
    verdict = speed_verdict(factor, mfu)
    if verdict == SUSPICIOUS and factor.low > 1 and _may_spill(forecast):
        verdict = SLOWER  # memory that spills to the host slows a step by hundreds of times
    question = SpeedQuestion(forecast, job, placement, session, observed, observation.signs)
    causes = tuple(_causes(question, observation, verdict))
    pauses = tuple(_pauses(observed, observation))
    causes = (*pauses, *causes) if verdict == NORMAL else (*causes, *pauses)
    return SpeedCheck(forecast, observation, observed, factor, verdict, mfu, causes)


def _may_spill(forecast: Forecast) -> bool:
    return forecast.fits_probability is not None and forecast.fits_probability < SURE


def _causes(question: SpeedQuestion, observation: Observation, verdict: str) -> Iterator[Cause]:
    """The likeliest first; of a normal speed those alone that were measured."""
    ranked = likeliest(_suspects(question, observation), question)
    is_wanted = verdict != NORMAL
    shown = [(s, p) for s, p in ranked if p >= LEAST_PROBABILITY and (is_wanted or s.is_shown)]
    for suspect, probability in shown[:MOST_CAUSES]:
        step, expected = suspect.step_seconds, question.forecast.step_seconds.mid
        share = 1 - expected / step.mid
        explained = step.scaled(abs(share))
        if share < 0:
            explained = Interval(-explained.high, -explained.mid, -explained.low, explained.coverage)
        yield Cause(suspect.name, probability, step, explained, suspect.evidence, suspect.separate_by, suspect.is_shown)


def _pauses(observed: Interval, observation: Observation) -> Iterator[Cause]:
    """What a log shows between its steps. The pace leaves it out, so that it is no reason for a slow one."""
    fraction = observation.signs.pause_fraction
    if fraction is None or fraction < PAUSES_SHOW:
        return
    evidence = f"{fraction:.0%} of the time was no step: evaluation, checkpoints, or a process that was stopped"
    with_pauses, lost = observed.scaled(1 / (1 - fraction)), observed.scaled(fraction / (1 - fraction))
    yield Cause("pauses", 1.0, with_pauses, lost, evidence, PAUSE_TEST, True)


def _suspects(question: SpeedQuestion, observation: Observation) -> Iterator[Suspect]:
    for family in FAMILIES:
        yield from family(question)
    yield from first_step_causes(question, observation.source)
    yield from rate_causes(question, observation)


FAMILIES = (
    precision_causes,
    attention_causes,
    checkpointing_causes,
    compiler_causes,
    accumulation_causes,
    length_causes,
    loader_causes,
    launch_causes,
    pause_causes,
    other_device_causes,
    throttle_causes,
    shared_causes,
    spill_causes,
    link_causes,
    rank_causes,
)
"""Each gives the suspects of one cause."""
