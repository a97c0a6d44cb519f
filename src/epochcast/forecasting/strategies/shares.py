"""What one GPU holds of a step's memory, as fractions of what a GPU that had the whole model would hold.

ZeRO 1, 2, 3    state; + gradients; + parameters: one p-th each (two gathered segments come on top)
tensor          parameters by how they are split; activations by the step of one rank
context         activations by the step of one rank, parameters whole
expert          a p-th of the experts
pipeline        a p-th of the model; of 1F1B's first stage, p micro-batches in flight; of GPipe's, all of them
hybrid          the products' parameters by rank
data_parallel   the first GPU gathers what the others make and has the loss of all, kept here for the whole step
"""

from epochcast.forecasting.placement import Placement
from epochcast.forecasting.strategies.cuts import segments
from epochcast.forecasting.strategies.hybrid import head_of
from epochcast.forecasting.strategies.ranks import rank_for
from epochcast.forecasting.strategies.rules import Family, Layout
from epochcast.forecasting.strategies.tensor import Rank, parameter_fraction, rank_of
from epochcast.graph.trace import SMALL_BATCH, Trace
from epochcast.graph.training import LOSS_LAYER
from epochcast.memory.lifetimes import Role
from epochcast.memory.peak import PeakMemory, peak_memory, step_on
from epochcast.memory.sharding import WHOLE, Shares, zero_shares


def memory_shares(trace: Trace, placement: Placement) -> Shares:
    """Of the GPU that holds most."""
    rule, gpus = placement.rule, placement.gpus
    if gpus == 1:
        return WHOLE
    match rule.family:
        case Family.DATA:  # buckets without a cycle are DistributedDataParallel's: it keeps them beside the gradients
            return Shares(has_buckets=rule.bucket_bytes is not None and not rule.cycle_seconds)
        case Family.REPLICAS:
            return Shares(others_sample_bytes=(gpus - 1) * _loss_sample_bytes(trace))
        case Family.SHARDED:
            gathered = 2 * max(segments(trace).parameter_bytes, default=0) if rule.stage == 3 else 0
            return zero_shares(rule.stage, gpus, gathered)
        case Family.HYBRID:
            head_of(trace)
            part = parameter_fraction(trace, rank_of(trace, gpus).trace)
            return Shares(part, part, part)
        case Family.LAYOUT if rule.layout is not None:
            layout, rank = rule.layout, rank_for(trace, rule.layout)
            part = parameter_fraction(trace, rank.trace) / layout.pipeline
            in_flight = trace.recipe.accumulate
            if layout.schedule != "gpipe":
                in_flight = min(in_flight, layout.pipeline if layout.schedule == "1f1b" else 1)
            held = _activation_bytes(rank.trace) / max(1, _activation_bytes(trace))
            if layout.pipeline > 1:
                held *= in_flight / layout.pipeline
            return Shares(
                part, part, _state_fraction(trace, rank, layout) / layout.pipeline if rule.stage else part, held
            )
        case _:
            return WHOLE


def _loss_sample_bytes(trace: Trace) -> int:
    """What goes into the loss of a sample, what the loss makes of it, and the gradients on the way back."""
    ops = [op for op in trace.template.base if op.layer == LOSS_LAYER]
    made = {t.name: t.bytes for op in ops for t in (*op.inputs, *op.outputs) if t.dtype.is_float}
    return sum(made.values()) // SMALL_BATCH


def _state_fraction(trace: Trace, rank: Rank, layout: Layout) -> float:
    """What zero1 leaves a rank: experts are sharded over the ranks of a stage that have the same, the rest over data
    and context parallel ranks.
    """
    whole = sum(p.elements for p in trace.parameters if p.trainable) or 1
    mine = [p for p in rank.trace.parameters if p.trainable]
    experts = sum(p.elements for p in mine if p.name in rank.experts)
    dense = sum(p.elements for p in mine) - experts
    sharded = dense / (layout.data * layout.context) + experts * layout.expert / layout.stage_ranks
    return sharded / whole


def rank_memory(
    trace: Trace, placement: Placement, *, set_to_none: bool = True, allocator: str = "caching"
) -> PeakMemory:
    """The peak memory of the GPU that holds most."""
    shares = memory_shares(trace, placement)
    return peak_memory(trace, placement.device, set_to_none=set_to_none, allocator=allocator, shares=shares)


def _activation_bytes(trace: Trace) -> int:
    """The most that is alive at any time of the step, which need not be at its peak."""
    return int(step_on(trace, None).live_bytes(trace.batch)[Role.ACTIVATIONS].max())
