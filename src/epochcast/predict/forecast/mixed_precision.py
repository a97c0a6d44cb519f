"""Mixed precision against float32: where tensor cores multiply its halves, a step is never slower than in float32.

Autocast adds casts, each a kernel and a launch. In a small step they may take longer than the products save. Whoever
measures that turns autocast off, so the step is forecast as the same in float32, and a warning says what casts would
add. That they do add it stays possible: the upper end of the interval is that of the step with its casts.

Of 184 networks that NVIDIA publishes in both precisions on V100 and A100, three are slower in mixed precision, by 3,
7 and 18 %.
"""

from dataclasses import replace

from epochcast.describe.graph.trace import Trace
from epochcast.hardware.device import Device
from epochcast.interval import Interval
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.cost.software_setting import SoftwareSetting
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.step import StepForecast, step_costs
from epochcast.predict.forecast.step_parts import UPDATE


def has_casts(trace: Trace, device: Device) -> bool:
    """Whether a step is cast op by op for the tensor cores of a device."""
    rules = trace.recipe.precision_rules
    return rules.is_autocast and device.tensor_cores and rules.math in device.peak_flops_per_second


def is_surely_slower(
    single: Trace, placement: Placement, model: CostModel, setting: SoftwareSetting, mixed: StepForecast
) -> bool:
    """Whether the kernels of the step in float32 alone take longer than all of it in mixed precision, which is the rule
    for large batches, so that nothing more has to be timed. Not asked where layers or stages are timed separately.
    """
    if setting.framework != "pytorch" or placement.strategy.stages > 1:
        return False
    rank = placement.strategy.rank_trace(single, placement.gpus)
    busy = step_costs(rank, placement.device, model, setting).mid[~rank.in_phase(UPDATE)].sum()
    return bool(single.recipe.accumulate * busy >= mixed.seconds.mid)


def no_slower(mixed: StepForecast, single: StepForecast) -> StepForecast:
    """The step in mixed precision, at most as long as the same in float32. Its ops keep their own costs.

    Where the user's measurements correct one precision alone, the law has no say.
    """
    own, most = mixed.seconds, single.seconds
    if own.mid <= most.mid or mixed.costs.is_calibrated != single.costs.is_calibrated:
        return mixed
    return replace(
        mixed,
        seconds=Interval(min(own.low, most.low), most.mid, max(own.high, most.high), own.coverage),
        parts=single.parts,
        forward_seconds=min(mixed.forward_seconds, single.forward_seconds),
        casts_seconds=own.mid - most.mid,
    )
