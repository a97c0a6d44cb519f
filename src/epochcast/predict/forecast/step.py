"""One training step on a placement: kernels, launches, exchange. Parts are exposed seconds that sum to it.

    step = forward + backward + update   (kernels busy)
         + host                          (the device waits for a launch)
         + exposed communication + input stall

With gradient accumulation forward and backward run `accumulate` times for one exchange and one update. What GPUs
exchange and when is the strategy's (`strategies`); a strategy that splits the model costs the ops of one rank.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import exp, hypot, log

import numpy as np

from epochcast.describe.graph.trace import Trace
from epochcast.hardware.device import Device
from epochcast.interval import Interval
from epochcast.predict.comm.stragglers import exchange_error_seconds
from epochcast.predict.cost.compiled import fused_costs
from epochcast.predict.cost.cost_model import CostModel, Costs, Unanswered, describe_op
from epochcast.predict.cost.launch import launch_interval, started_kernels, work_seconds
from epochcast.predict.cost.masked_attention import at_masked_rate
from epochcast.predict.cost.software_setting import TODAY, SoftwareSetting
from epochcast.predict.cost.untuned_convolutions import at_untuned_rate
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.step_parts import FORWARD, Kernels, StepParts
from epochcast.predict.forecast.strategies.strategy import Strategy
from epochcast.predict.forecast.streams import Seconds, kernel_ends, with_waits

__all__ = ["StepForecast", "StepParts", "step_costs", "step_forecast"]


@dataclass(frozen=True)
class StepForecast:
    """A step: how long, made of what, answered by whom.

    `forward_seconds` is one forward pass with its launches, as a validation step runs it; `costs` has the seconds of
    every op of one rank. `casts_seconds` are what the casts of mixed precision would add to a step that is forecast as
    in float32 (`mixed`). `variances` say what makes the interval as wide as it is: by part, the square of half the
    logarithm of high ÷ low if that part alone were uncertain.
    """

    seconds: Interval
    parts: StepParts
    forward_seconds: float
    answered_by: dict[str, float]
    costs: Costs
    casts_seconds: float = 0.0
    variances: Mapping[str, float] = field(default_factory=dict)


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
    launch, started = launch_interval(rank, device, placement.host), started_kernels(rank)
    low_work, work, high_work = work_seconds(rank)

    def kernels_of(seconds: Seconds, host: Seconds) -> Kernels:
        return Kernels(rank, seconds, with_waits(seconds, host, rank.awaited))

    host = started * launch.mid + work
    middle = kernels_of(costs.mid, host)
    kernels = [kernels_of(seconds, host) for seconds in (costs.low, costs.mid, costs.high)]
    ends = ((launch.low, low_work), (launch.high, high_work))
    hosts = [kernels_of(costs.mid, started * seconds + at_work) for seconds, at_work in ends]

    timing = strategy.timing(trace, middle, placement.group, device)
    low, mid, high, fast_host, slow_host = (timing(each) for each in (*kernels, *hosts))
    ranges = {
        KERNELS: (low.total_seconds, high.total_seconds),
        HOST: (fast_host.total_seconds, slow_host.total_seconds),
        COMMUNICATION: exchange_range(mid, _on_other_hosts(strategy, trace, middle, placement, mid)),
    }
    seconds, variances = combined(mid.total_seconds, ranges)
    return StepForecast(
        seconds,
        mid,
        _forward_seconds(middle) / strategy.stages,
        dict(costs.time_fractions()),
        costs,
        variances=_by_part(variances, costs.variances),
    )


KERNELS, HOST, COMMUNICATION, INPUT = "kernels", "host", "communication", "input"
GPU, FRAMEWORK, NETWORK = "gpu", "framework", "network"
SETUP = "setup"
"""What may make an interval wide; that of kernels is divided into GPU, FRAMEWORK and NETWORK. SETUP is how people run
such a step beyond what the job says (`step_margins`).
"""


def exchange_range(mid: StepParts, on_other_hosts: tuple[float, float] | None = None) -> tuple[float, float]:
    """The step if the exchange is as fast, or as slow, as it may be; a pipeline's bubble is the kernels'.

    `on_other_hosts` is the step where the links of a box are as fast, or as slow, as hosts have them.
    """
    below, above = exchange_error_seconds(mid.exposed_comm - mid.bubble)
    total = mid.total_seconds
    alone = (total - below, total + above)
    seconds, _ = combined(total, {COMMUNICATION: alone, HOST: on_other_hosts or (total, total)})
    return seconds.low, seconds.high


def _on_other_hosts(
    strategy: Strategy, trace: Trace, middle: Kernels, placement: Placement, mid: StepParts
) -> tuple[float, float]:
    """The step on the fastest and the slowest of nine hosts in ten, where the links of a box depend on the host."""
    factor = placement.group.rate_factor
    if factor == 1:
        return mid.total_seconds, mid.total_seconds
    groups = [placement.group.at_rate(rate) for rate in (factor, 1 / factor)]
    fast, slow = (strategy.timing(trace, middle, group, placement.device)(middle) for group in groups)
    return fast.total_seconds, slow.total_seconds


def combined(middle: float, ranges: Mapping[str, tuple[float, float]]) -> tuple[Interval, dict[str, float]]:
    """The interval of a step of which several parts are uncertain, each alone within its range: errors of parts are
    independent, so that their logarithms add as squares. And the variance of each part.
    """
    # max: against rounding alone, more seconds of kernels or launches never make a shorter step
    below = {part: max(0.0, log(middle / max(low, 1e-12 * middle))) for part, (low, _) in ranges.items()}
    above = {part: max(0.0, log(high / middle)) for part, (_, high) in ranges.items()}
    seconds = Interval(middle * exp(-hypot(*below.values())), middle, middle * exp(hypot(*above.values())))
    return seconds, {part: ((below[part] + above[part]) / 2) ** 2 for part in ranges}


def _by_part(variances: Mapping[str, float], of_kernels: Mapping[str, float]) -> dict[str, float]:
    """The variance of kernels divided by what it comes from."""
    total = sum(of_kernels.values())
    shares = {part: each / total for part, each in of_kernels.items()} if total > 0 else {NETWORK: 1.0}
    parts = {part: share * variances[KERNELS] for part, share in shares.items()}
    return {**parts, **{part: each for part, each in variances.items() if part != KERNELS}}


def step_costs(trace: Trace, device: Device, model: CostModel, setting: SoftwareSetting | None) -> Costs:
    """Of every kernel; an op without an answer is named with its layer."""
    setting = setting or replace(TODAY, channels_last=trace.recipe.channels_last)
    if trace.fusion is not None:
        costs = fused_costs(trace, device, model, setting)
    else:
        costs = at_masked_rate(model.costs(trace.columns, device, setting), trace, device)
        costs = at_untuned_rate(costs, trace, device, setting)
    missing = np.flatnonzero(costs.answered < 0)
    if len(missing):
        op = f"{describe_op(trace.columns, missing[0])} of layer {trace.layers[missing[0]]!r}"
        raise Unanswered(f"{model.name} has no cost of {op} on {device.name}; {len(missing)} such ops")
    return costs


def _forward_seconds(kernels: Kernels) -> float:
    is_forward = kernels.trace.columns.phase == FORWARD
    ends = kernel_ends(kernels.seconds[is_forward], kernels.launches[is_forward])
    return float(ends[-1]) if len(ends) else 0.0
