"""One training step on a placement: kernels, launches, exchange. Parts are exposed seconds that sum to it.

    step = forward + backward + update   (kernels busy)
         + host                          (the device waits for a launch)
         + exposed communication + input stall

With gradient accumulation forward and backward run `accumulate` times for one exchange and one update. What GPUs
exchange and when is the strategy's (`strategies`); a strategy that splits the model costs the ops of one rank.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import hypot

from epochcast.comm.waiting import exchange_error_seconds, waiting, waiting_seconds
from epochcast.cost.launch import host_seconds
from epochcast.cost.model import CostModel, Costs, Unanswered
from epochcast.cost.setting import TODAY, Setting
from epochcast.forecasting.exchange import batch_of, exposed_seconds, gradients
from epochcast.forecasting.parts import FORWARD, Kernels, StepParts, assembled
from epochcast.forecasting.placement import Placement
from epochcast.forecasting.strategies import hybrid, layout, replicas, sharded
from epochcast.forecasting.strategies.ranks import rank_for
from epochcast.forecasting.strategies.rules import Family
from epochcast.forecasting.strategies.servers import servers_seconds
from epochcast.forecasting.strategies.tensor import Rank
from epochcast.forecasting.streams import Seconds, kernel_ends
from epochcast.graph.trace import Trace
from epochcast.hardware.device import Device
from epochcast.interval import Interval

__all__ = ["StepForecast", "StepParts", "step_forecast"]


@dataclass(frozen=True)
class StepForecast:
    """A step: how long, made of what, answered by whom.

    `forward_seconds` is one forward pass with its launches, as a validation step runs it; `costs` has the seconds of
    every op of one rank.
    """

    seconds: Interval
    parts: StepParts
    forward_seconds: float
    answered_by: dict[str, float]
    costs: Costs


def step_forecast(
    trace: Trace,
    placement: Placement,
    model: CostModel,
    *,
    setting: Setting | None = None,
    exposed_input_seconds: float = 0.0,
) -> StepForecast:
    """Cost every op of a rank, run the streams, exchange what the strategy exchanges.

    Without a `setting` it is today's PyTorch, in the layout of the recipe.
    """
    rule = placement.rule
    rank = rank_for(trace, rule.layout)
    own = hybrid.rank_trace(trace, placement) if rule.family is Family.HYBRID else rank.trace
    costs = _costs(own, placement.device, model, setting)
    launches = host_seconds(own, placement.device)

    way = _way(trace, rank, placement, Kernels(own, costs.mid, launches))
    parts = [
        way(Kernels(own, seconds, launches), placement, exposed_input_seconds)
        for seconds in (costs.low, costs.mid, costs.high)
    ]
    seconds = _interval(*parts)
    forward = _forward_seconds(own, costs.mid, launches) / (rule.layout.pipeline if rule.layout else 1)
    return StepForecast(seconds, parts[1], forward, dict(costs.time_fractions()), costs)


def _costs(trace: Trace, device: Device, model: CostModel, setting: Setting | None) -> Costs:
    """Of every op; an op without an answer is named with its layer."""
    try:
        return model.costs(trace.columns, device, setting or replace(TODAY, channels_last=trace.recipe.channels_last))
    except Unanswered as error:
        error.add_note(f"the op is of layer {trace.layers[error.index]!r}")
        raise


def _interval(low: StepParts, mid: StepParts, high: StepParts) -> Interval:
    """The step of slow and fast kernels, and beside it what is not known of the exchange: errors that are independent
    add as squares. A pipeline's bubble is the kernels'.
    """
    middle = mid.total_seconds
    below, above = exchange_error_seconds(mid.exposed_comm - mid.bubble)
    # max: against rounding alone, more kernel seconds never make a shorter step
    below = hypot(max(0.0, middle - low.total_seconds), below)
    above = hypot(max(0.0, high.total_seconds - middle), above)
    return Interval(max(0.0, middle - below), middle, middle + above)


Way = Callable[[Kernels, Placement, float], StepParts]


def _way(trace: Trace, rank: Rank, placement: Placement, kernels: Kernels) -> Way:
    """How the strategy's steps are timed."""
    rule = placement.rule
    if placement.gpus == 1 or rule.family is Family.DATA:
        return _data_parallel
    way: Way
    match rule.family:
        case Family.LAYOUT:
            whole_bytes = float(sum(p.tensor.bytes for p in trace.parameters))
            way = partial(layout.parts, plan=layout.planned(rank, whole_bytes, kernels, placement))
        case Family.HYBRID:
            way = partial(hybrid.parts, whole=trace)
        case Family.SHARDED:
            way = sharded.parts
        case Family.REPLICAS:
            way = replicas.parts
    return lambda kernels, where, stall: _waiting(way(kernels, where, stall), trace, where)


def _waiting(parts: StepParts, trace: Trace, placement: Placement) -> StepParts:
    """The parts of a step in which every rank waits for the slowest."""
    waits = waiting_seconds(
        parts.forward + parts.backward,
        placement.group(),
        waiting(placement.rule.runner),
        accumulate=trace.recipe.accumulate,
        batch=batch_of(trace),
    )
    return replace(parts, exposed_comm=parts.exposed_comm + waits)


def _forward_seconds(trace: Trace, kernels: Seconds, launches: Seconds) -> float:
    is_forward = trace.columns.phase == FORWARD
    ends = kernel_ends(kernels[is_forward], launches[is_forward])
    return float(ends[-1]) if len(ends) else 0.0


def _data_parallel(kernels: Kernels, placement: Placement, input_seconds: float) -> StepParts:
    """Every rank has the model; the update begins when the last gradients have arrived."""
    trace, rule = kernels.trace, placement.rule
    ends = kernel_ends(kernels.seconds, kernels.launches)
    passes = ends[~kernels.is_update]
    alone = float(passes[-1]) if len(passes) else 0.0
    trains, has_servers = trace.recipe.mode != "forward", rule.servers > 1
    comm = 0.0
    if trains and has_servers:
        comm = servers_seconds(gradients(trace).total_bytes, placement.group(), rule.servers)
    elif trains:
        comm = exposed_seconds(trace, ends, alone, placement)
    parts = assembled(kernels, alone_seconds=alone, comm_seconds=comm, input_seconds=input_seconds)
    return _waiting(parts, trace, placement) if trains and has_servers else parts
