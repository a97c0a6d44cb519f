"""One training step on a placement: kernels, launches, exchange. Parts are exposed seconds that sum to it.

    step = forward + backward + update   (kernels busy)
         + host                          (the device waits for a launch)
         + exposed communication + input stall

With gradient accumulation forward and backward run `accumulate` times for one exchange and one update. What GPUs
exchange and when is the strategy's (`strategies`); a strategy that splits the model costs the ops of one rank.
"""

from dataclasses import dataclass, replace
from math import hypot

import numpy as np

from epochcast.describe.graph.trace import Trace
from epochcast.hardware.device import Device
from epochcast.interval import Interval
from epochcast.predict.comm.stragglers import exchange_error_seconds
from epochcast.predict.cost.compiled import fused_costs
from epochcast.predict.cost.cost_model import CostModel, Costs, Unanswered, describe_op
from epochcast.predict.cost.launch import launch_interval
from epochcast.predict.cost.software_setting import TODAY, SoftwareSetting
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.step_parts import FORWARD, Kernels, StepParts
from epochcast.predict.forecast.streams import kernel_ends

__all__ = ["StepForecast", "StepParts", "step_costs", "step_forecast"]


@dataclass(frozen=True)
class StepForecast:
    """A step: how long, made of what, answered by whom.

    `forward_seconds` is one forward pass with its launches, as a validation step runs it; `costs` has the seconds of
    every op of one rank. `casts_seconds` are what the casts of mixed precision would add to a step that is forecast as
    in float32 (`mixed`).
    """

    seconds: Interval
    parts: StepParts
    forward_seconds: float
    answered_by: dict[str, float]
    costs: Costs
    casts_seconds: float = 0.0


def step_forecast(
    trace: Trace,
    placement: Placement,
    model: CostModel,
    *,
    setting: SoftwareSetting | None = None,
) -> StepForecast:
    """Cost every op of a rank, run the streams, exchange what the strategy exchanges.

    Without a `setting` it is today's PyTorch, in the layout of the recipe. A compiler may turn the layout.
    """
    strategy, device = placement.strategy, placement.device
    rank = strategy.rank_trace(trace, placement.gpus)
    costs = step_costs(rank, device, model, setting)
    launch = launch_interval(rank, device, placement.host)
    middle = Kernels(rank, costs.mid, rank.columns.launches * launch.mid)
    kernels = [replace(middle, seconds=seconds) for seconds in (costs.low, costs.mid, costs.high)]
    hosts = [replace(middle, launches=rank.columns.launches * seconds) for seconds in (launch.low, launch.high)]

    timing = strategy.timing(trace, middle, placement.group, device)
    parts = [timing(each) for each in (*kernels, *hosts)]
    forward_seconds = _forward_seconds(middle) / strategy.stages
    return StepForecast(_interval(*parts), parts[1], forward_seconds, dict(costs.time_fractions()), costs)


def step_costs(trace: Trace, device: Device, model: CostModel, setting: SoftwareSetting | None) -> Costs:
    """Of every kernel; an op without an answer is named with its layer."""
    setting = setting or replace(TODAY, channels_last=trace.recipe.channels_last)
    if trace.fusion is not None:
        costs = fused_costs(trace, device, model, setting)
    else:
        costs = model.costs(trace.columns, device, setting)
    missing = np.flatnonzero(costs.answered < 0)
    if len(missing):
        op = f"{describe_op(trace.columns, missing[0])} of layer {trace.layers[missing[0]]!r}"
        raise Unanswered(f"{model.name} has no cost of {op} on {device.name}; {len(missing)} such ops")
    return costs


def _interval(
    low: StepParts,
    mid: StepParts,
    high: StepParts,
    fast_host: StepParts | None = None,
    slow_host: StepParts | None = None,
) -> Interval:
    """The step of fast and slow kernels, of a fast and a slow host, and beside these what is not known of the exchange:
    errors that are independent add as squares. A pipeline's bubble is the kernels'.
    """
    middle = mid.total_seconds
    below, above = exchange_error_seconds(mid.exposed_comm - mid.bubble)
    # max: against rounding alone, more seconds of kernels or launches never make a shorter step
    below = hypot(*(max(0.0, middle - (each or mid).total_seconds) for each in (low, fast_host)), below)
    above = hypot(*(max(0.0, (each or mid).total_seconds - middle) for each in (high, slow_host)), above)
    return Interval(max(0.0, middle - below), middle, middle + above)


def _forward_seconds(kernels: Kernels) -> float:
    is_forward = kernels.trace.columns.phase == FORWARD
    ends = kernel_ends(kernels.seconds[is_forward], kernels.launches[is_forward])
    return float(ends[-1]) if len(ends) else 0.0
