"""What several GPUs change, given how long one takes.

The single-GPU step of the same system, model, batch per GPU and precision is taken as measured, and only the
difference is forecast:

    step(N GPUs) = measured step(1 GPU) + forecast step(N GPUs) − forecast step(1 GPU)

with kernels scaled so that the forecast of one GPU meets the measured step: a backward pass that really takes longer
hides more. Where the measured step had another number of passes (a global batch that is kept by accumulating), its
kernels are scaled all the same, and the step of one GPU is forecast with as many passes as the run on several has.
The interval knows two errors: steps repeat to a few percent, and what is added is known to half.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import hypot
from typing import Any

from epochcast.cost.model import CostModel, Costs
from epochcast.cost.setting import Setting
from epochcast.fitting.bare import bare_added_seconds
from epochcast.fitting.run_placement import run_placement
from epochcast.fitting.run_table import Run
from epochcast.forecasting.step import step_forecast
from epochcast.graph.trace import Columns, Trace
from epochcast.hardware.device import Device
from epochcast.interval import Interval

# How far measured steps lie below and above the middle, as fractions of the known step and of what is added. Chosen on
# the rows of studies/scaling for about nine of ten inside, none held back; its page has what each source gets. Tails
# are on the slow side: stragglers and input that ranks share.
BELOW_FRACTIONS = (0.06, 0.5)
ABOVE_FRACTIONS = (0.12, 0.6)

# How much of the forecast of one GPU may be corrected: beyond it the two describe different runs.
MOST_RATIO = 10.0


@dataclass(frozen=True)
class Scaled:
    """A cost model whose kernels all take `factor` times as long."""

    base: CostModel
    factor: float

    @property
    def name(self) -> str:
        """The base's own."""
        return self.base.name

    @property
    def is_monotone(self) -> bool:
        """As the base."""
        return self.base.is_monotone

    def costs(self, columns: Columns, device: Device, setting: Setting) -> Costs:
        """The base's answer, scaled."""
        costs, factor = self.base.costs(columns, device, setting), self.factor
        return Costs(costs.low * factor, costs.mid * factor, costs.high * factor, costs.models, costs.answered)


@dataclass(frozen=True, slots=True)
class Single:
    """A measured step of one GPU, of so many passes."""

    seconds: float
    accumulate: int

    @property
    def pass_seconds(self) -> float:
        """Of one pass and its part of the update."""
        return self.seconds / self.accumulate


def single_steps(runs: Iterable[Run]) -> dict[int, Single]:
    """By the place of each run on several GPUs: the measured step of its single-GPU row, where there is one.

    The row of the same framework and data counts, else of the same framework, else any, else any with another number
    of passes; of several the middle one.
    """
    listed = list(runs)
    measured: dict[tuple[Any, ...], list[Single]] = {}
    for run in listed:
        if run.gpus == 1:
            for key in _keys(run):
                measured.setdefault(key, []).append(Single(run.step_seconds, run.recipe.accumulate))
    found: dict[int, Single] = {}
    for run in listed:
        known = next((measured[key] for key in _keys(run) if key in measured), None)
        if run.gpus > 1 and known is not None:
            found[run.place] = sorted(known, key=lambda single: single.pass_seconds)[(len(known) - 1) // 2]
    return found


def _keys(run: Run) -> tuple[tuple[Any, ...], ...]:
    """What a run shares with its single-GPU row, the nearest first; of a system's name the part before a colon, behind
    which some tables write the scale.
    """
    system = run.system.partition(":")[0]
    keys: list[tuple[Any, ...]] = []
    for any_passes, recipe in ((False, run.recipe), (True, replace(run.recipe, accumulate=1))):
        key = (any_passes, run.source, system, run.model, run.input_shape, run.device.name, recipe, run.setting)
        keys += [(*key, run.framework, run.data), (*key, run.framework), key]
    return tuple(keys)


def given_step(run: Run, trace: Trace, model: CostModel, single: Single) -> Interval:
    """The step of a run on several GPUs whose single-GPU step is known."""
    alone, placement = run_placement(run, gpus=1), run_placement(run)
    as_measured = replace(trace, recipe=replace(trace.recipe, accumulate=single.accumulate))
    ratio = single.seconds / step_forecast(as_measured, alone, model, setting=run.setting).seconds.mid
    scaled = Scaled(model, min(MOST_RATIO, max(1 / MOST_RATIO, ratio)))
    one, many = (step_forecast(trace, where, scaled, setting=run.setting).seconds.mid for where in (alone, placement))
    known = single.seconds
    if single.accumulate != run.recipe.accumulate:
        known *= one / step_forecast(as_measured, alone, scaled, setting=run.setting).seconds.mid
    return given_interval(known, many - one)


def given_bare_step(run: Run, single: Single) -> Interval:
    """The same of a network that cannot be built."""
    known = run.recipe.accumulate * single.pass_seconds
    return given_interval(known, bare_added_seconds(run, single.pass_seconds))


def given_interval(single_seconds: float, added_seconds: float) -> Interval:
    """A known step and what is added to it; never less than a tenth of the step."""
    mid = max(single_seconds + added_seconds, 0.1 * single_seconds)
    below, above = (
        hypot(of_step * single_seconds, of_added * added_seconds)
        for of_step, of_added in (BELOW_FRACTIONS, ABOVE_FRACTIONS)
    )
    return Interval(max(0.0, mid - below), mid, mid + above)
