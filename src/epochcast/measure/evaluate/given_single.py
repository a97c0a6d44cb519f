"""What several GPUs change, given how long one takes.

The single-GPU step of the same system, model, batch per GPU and precision is taken as measured, and only the
difference is forecast:

    step(N GPUs) = measured step(1 GPU) + forecast step(N GPUs) − forecast step(1 GPU)

with kernels scaled so that the forecast of one GPU equals the measured step: a backward pass that takes longer hides
more communication. Where the measured step had another number of passes (a fixed global batch, by accumulation), its
kernels are scaled all the same, and the step of one GPU is forecast with as many passes as the run on several has.
The interval covers two errors: steps vary by a few percent, and what is added is known to about half.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import hypot
from typing import Any

from epochcast.describe.graph.recipe import ATTENTIONS
from epochcast.interval import Interval
from epochcast.measure.evaluate.unbuilt_runs import bare_added_seconds
from epochcast.measure.tables.run_placement import run_placement
from epochcast.measure.tables.run_table import MeasuredRun
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.session import Session

# How far measured steps lie below and above the middle, as fractions of the measured step and of what is added. Chosen
# on all rows of studies/scaling, such that about 90 % lie inside; its page has the coverage of each source.
# Tails are on the slow side: stragglers, and input that ranks share.
BELOW_FRACTIONS = (0.06, 0.5)
ABOVE_FRACTIONS = (0.12, 0.6)

# How far the forecast of one GPU may be corrected: beyond it the two rows describe different runs.
MOST_RATIO = 10.0


@dataclass(frozen=True, slots=True)
class MeasuredSingle:
    """A measured step of one GPU, and its number of passes."""

    seconds: float
    accumulate: int

    @property
    def pass_seconds(self) -> float:
        """Seconds of one pass and its part of the update."""
        return self.seconds / self.accumulate


class SingleSteps:
    """The measured steps on one GPU of a table, added piece by piece."""

    def __init__(self, runs: Iterable[MeasuredRun] = ()) -> None:
        self._measured: dict[tuple[Any, ...], list[MeasuredSingle]] = {}
        self.add(runs)

    def add(self, runs: Iterable[MeasuredRun]) -> None:
        """The runs on one GPU among these."""
        for run in runs:
            if run.gpus == 1:
                for key in _keys(run):
                    self._measured.setdefault(key, []).append(MeasuredSingle(run.step_seconds, run.recipe.accumulate))

    def of(self, runs: Iterable[MeasuredRun]) -> dict[int, MeasuredSingle]:
        """For the row of each run on several GPUs: the measured step of its single-GPU row, where there is one.

        That is the row of the same framework and data, else of the same framework, else any, else any with another
        number of passes; of several the median.
        """
        medians: dict[tuple[Any, ...], MeasuredSingle] = {}
        singles: dict[int, MeasuredSingle] = {}
        for run in (run for run in runs if run.gpus > 1):
            key = next((key for key in _keys(run) if key in self._measured), None)
            if key is None:
                continue
            if key not in medians:
                by_speed = sorted(self._measured[key], key=lambda single: single.pass_seconds)
                medians[key] = by_speed[(len(by_speed) - 1) // 2]
            singles[run.row_index] = medians[key]
        return singles


def _keys(run: MeasuredRun) -> tuple[tuple[Any, ...], ...]:
    """What a run has in common with its single-GPU row, the closest match first. Of a system's name only the part
    before a colon counts: some tables write the number of GPUs after it. The framework says how attention runs.
    """
    system = run.system.partition(":")[0]
    own = replace(run.recipe, attention=ATTENTIONS[0])
    keys: list[tuple[Any, ...]] = []
    for any_passes, recipe in ((False, own), (True, replace(own, accumulate=1))):
        key = (any_passes, run.source, system, run.model, run.input_shape, run.device.name, recipe, run.setting)
        keys += [(*key, run.framework, run.data), (*key, run.framework), key]
    return tuple(keys)


def given_step(run: MeasuredRun, session: Session, single: MeasuredSingle) -> Interval:
    """The step of a run on several GPUs whose single-GPU step was measured."""
    session = session.scaled(1.0)
    single_placement, placement = run_placement(run, gpus=1), run_placement(run)
    as_measured = replace(run.job, accumulate=single.accumulate)

    def seconds(job: Job, on: Placement, session: Session) -> float:
        return forecast_job(job, on, session, step_only=True).step_seconds.mid

    ratio = min(MOST_RATIO, max(1 / MOST_RATIO, single.seconds / seconds(as_measured, single_placement, session)))
    scaled = session.scaled(ratio)
    single_forecast, forecast = (seconds(run.job, on, scaled) for on in (single_placement, placement))
    single_seconds = single.seconds
    if single.accumulate != run.recipe.accumulate:
        single_seconds *= single_forecast / seconds(as_measured, single_placement, scaled)
    return given_interval(single_seconds, forecast - single_forecast)


def given_bare_step(run: MeasuredRun, single: MeasuredSingle) -> Interval:
    """The same, for a network that cannot be built."""
    single_seconds = run.recipe.accumulate * single.pass_seconds
    return given_interval(single_seconds, bare_added_seconds(run, single.pass_seconds))


def given_interval(single_seconds: float, added_seconds: float) -> Interval:
    """A measured step plus what is added to it; at least a tenth of the step."""
    mid = max(single_seconds + added_seconds, 0.1 * single_seconds)
    below, above = (
        hypot(of_step * single_seconds, of_added * added_seconds)
        for of_step, of_added in (BELOW_FRACTIONS, ABOVE_FRACTIONS)
    )
    return Interval(max(0.0, mid - below), mid, mid + above)
