"""Data, tensor, pipeline, context and expert parallelism together (Narayanan et al. 2021, "Efficient large-scale
language model training on GPU clusters using Megatron-LM"; experts and contexts as in Megatron-Core).

Ranks are numbered so that tensor parallel ranks are neighbours, then those of a context, then data parallel ones, then
stages: what talks most sits in one box. Experts are spread over neighbours of a stage, whatever else those share. One
rank's step is that of `ranks`; its segments are shared out over the stages so that the slowest takes the least time by
forecast; accumulated passes (micro-batches) run through the stages by a schedule. Behind a stage's last backward pass
its gradients are summed, unhidden; without stages they are summed in buckets behind the backward pass, on a wire of
their own. Gradients are summed over data and context parallel ranks, those of experts over the ranks of a stage that
have the same ones.

    exposed communication = all-reduces of tensor parallelism + all-to-alls of experts + keys and values not hidden
                            + waiting for other stages (the bubble) + gradients

Tensor parallel ranks each send their part of an activation to the next stage and gather it there (scatter/gather).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from epochcast.base.notes import Importance, Note
from epochcast.describe.graph.op_kinds import View
from epochcast.describe.graph.tensor import DType
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.hardware.cluster import Group
from epochcast.hardware.device import Device
from epochcast.predict.comm.collectives import (
    all_gather_seconds,
    all_reduce_seconds,
    all_to_all_seconds,
    point_to_point_seconds,
    reduce_scatter_seconds,
)
from epochcast.predict.forecast.exchange import DDP_BUCKETS, gradients_of, waiting_for_the_slowest
from epochcast.predict.forecast.step_parts import BACKWARD, FORWARD, Kernels, StepParts, assembled
from epochcast.predict.forecast.strategies.context_parallel import shift_messages
from epochcast.predict.forecast.strategies.cuts import Places, Segments, segments
from epochcast.predict.forecast.strategies.degrees import Layout
from epochcast.predict.forecast.strategies.exposed_pieces import WHOLE, exposed_pieces
from epochcast.predict.forecast.strategies.messages import Message, pass_seconds, timeline
from epochcast.predict.forecast.strategies.pipeline_schedules import MicroBatchWork, stage_ends
from epochcast.predict.forecast.strategies.pipeline_stages import fullest_stage, shared_out
from epochcast.predict.forecast.strategies.rank_steps import rank_for, repeated_layers
from epochcast.predict.forecast.strategies.strategy import Strategy, Timing
from epochcast.predict.forecast.strategies.subgroups import subgroup
from epochcast.predict.forecast.strategies.tensor_parallel import Rank
from epochcast.predict.forecast.streams import Seconds, kernel_ends
from epochcast.predict.memory.communication_buffers import ALL_TO_ALL, COLLECTIVE, NEIGHBOURS, Communicator
from epochcast.predict.memory.sharding import Held, RankShares, bucket_fraction, zero1_bucket_fraction

GRADIENT_WIRE = 1
# What is said of layers that tensor parallel ranks repeat: from which part of the products on, and how many by name.
LEAST_REPEATED, NAMED_LAYERS = 0.01, 3
# What a collective inside a pass costs the host, in launches of a kernel: the call, its events, the waits of two
# streams. Where kernels are too short to hide the host, a layer of Megatron-DeepSpeed takes 3.3 ms alone and 5.0 ms
# with six all-reduces (vtrain_single, micro-batches of one, width 1024), at 41 µs per kernel: 280 µs each. With it ten
# collectives and 45 kernels of a layer of nanotron come to the 4.5 ms that all its models take there.
CALL_LAUNCHES = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitModel(Strategy):
    """The model is split over the ranks of `layout`, copies of it are data parallel; `shards_state` is zero1."""

    layout: Layout
    shards_state: bool = False

    def timing(self, trace: Trace, middle: Kernels, group: Group, device: Device) -> Timing:
        rank = replace(rank_for(trace, self.layout), trace=middle.trace)
        whole_bytes = float(sum(p.tensor.bytes for p in trace.parameters))
        plan = stage_plan(self, group, rank, whole_bytes, _with_calls(middle, rank))
        return lambda kernels: waiting_for_the_slowest(
            _parts(_with_calls(kernels, rank), plan), trace, group, self.runner
        )

    def rank_trace(self, trace: Trace, gpus: int) -> Trace:
        """The step of one rank of a stage, all stages being one."""
        return rank_for(trace, self.layout).trace

    def replicas(self, gpus: int) -> int:
        return self.layout.data

    @property
    def stages(self) -> int:
        return self.layout.pipeline

    @property
    def splits_products(self) -> bool:
        return self.layout.tensor > 1

    def notes(self, trace: Trace) -> Iterator[str]:
        """Which layers tensor parallel ranks cannot share out."""
        fraction, layers = repeated_layers(trace, self.layout.tensor)
        if fraction >= LEAST_REPEATED:
            more = f" and {len(layers) - NAMED_LAYERS} more" if len(layers) > NAMED_LAYERS else ""
            yield Note(
                f"Tensor parallelism cannot split {fraction:.0%} of the matrix products: all {self.layout.tensor} GPUs "
                f"repeat {', '.join(layers[:NAMED_LAYERS])}{more}.",
                Importance.LIMIT,
            )

    @property
    def sharing_less(self) -> Strategy | None:
        return replace(self, shards_state=False) if self.shards_state else None

    def check(self, gpus: int, nodes: int) -> None:
        if gpus != self.layout.ranks:
            raise BadInput(f"strategy {self.name!r} is for {self.layout.ranks} GPUs, and there are {gpus}")

    def held(self, trace: Trace, gpus: int) -> Held:
        """The stage that holds most. Copies of the model keep their gradients in buckets, too, as DDP does; zero1
        shares out the optimizer's state.
        """
        rank = rank_for(trace, self.layout)
        stage, others_bytes = fullest_stage(rank.trace, self.layout)
        has_buckets = self.layout.data * self.layout.context > 1 and trace.recipe.mode != "forward"
        return Held(
            stage,
            RankShares(
                state_fraction=_state_fraction(stage, rank, self.layout) if self.shards_state else 1.0,
                bucket_fraction=self._bucket_fraction(stage) if has_buckets else 0.0,
                others_sample_bytes=others_bytes,
            ),
        )

    def communicators(self, group: Group) -> tuple[Communicator, ...]:
        """Those of tensor and context parallel ranks, of gradients, of experts, and the stages next to a rank's own."""
        layout = self.layout
        copies = layout.data * layout.context
        spread = [
            (layout.tensor, 1, COLLECTIVE),
            (layout.context, layout.tensor, NEIGHBOURS),
            (copies, layout.tensor, COLLECTIVE),
            (layout.expert, 1, ALL_TO_ALL),
            (layout.pipeline, layout.stage_ranks, NEIGHBOURS),
        ]
        return tuple(
            Communicator(subgroup(group, ranks, stride), exchange) for ranks, stride, exchange in spread if ranks > 1
        )

    def _bucket_fraction(self, stage: Trace) -> float:
        return zero1_bucket_fraction(stage) if self.shards_state else bucket_fraction(stage)


def _state_fraction(stage: Trace, rank: Rank, layout: Layout) -> float:
    """What zero1 leaves a rank of its state: experts are sharded over the ranks of a stage that have the same, the rest
    over data and context parallel ranks.
    """
    mine = [p for p in stage.parameters if p.trainable]
    experts = sum(p.elements for p in mine if p.name in rank.experts)
    dense = sum(p.elements for p in mine) - experts
    sharded = dense / (layout.data * layout.context) + experts * layout.expert / layout.stage_ranks
    return sharded / ((dense + experts) or 1)


@dataclass(frozen=True)
class StagePlan:
    """What is decided once for a step: the part of the model that each segment belongs to.

    `expert_bytes` are those of every segment's parameters that belong to experts.
    """

    strategy: SplitModel
    group: Group
    rank: Rank
    cut: Segments
    part_of_segment: tuple[int, ...]
    parameter_fraction: float
    expert_bytes: tuple[int, ...]

    @property
    def layout(self) -> Layout:
        """The degrees."""
        return self.strategy.layout

    @property
    def parts(self) -> int:
        """Stages times chunks."""
        return self.layout.pipeline * self.layout.chunks

    @property
    def part_of_entry(self) -> Places:
        """Of forward and backward entries."""
        of_entry = self.cut.of_entry[self.cut.of_entry >= 0]
        return np.array(self.part_of_segment)[of_entry]

    def by_stage(self, bytes_of_segment: tuple[int, ...]) -> Seconds:
        """Bytes of segments summed over the parts of every stage."""
        stages = np.array(self.part_of_segment) % self.layout.pipeline
        sums = np.bincount(stages, np.array(bytes_of_segment, dtype=np.float64), self.layout.pipeline)
        return sums.astype(np.float64)


def stage_plan(
    strategy: SplitModel, group: Group, rank: Rank, whole_parameter_bytes: float, kernels: Kernels
) -> StagePlan:
    """Share the segments out by the seconds of their kernels and of what these wait for; refuse a pipeline that has
    more stages than places to cut.
    """
    cut = segments(rank.trace)
    parts = strategy.layout.pipeline * strategy.layout.chunks
    if cut.count < parts:
        raise BadInput(
            f"a pipeline of {parts} parts: {rank.trace.name} can be cut into {cut.count} at most; take fewer stages"
        )
    waits = _in_line(kernels, rank, strategy, group)
    increments = np.diff(timeline(*kernels.passes, waits)[0], prepend=0.0)
    weights = np.bincount(cut.of_entry[cut.of_entry >= 0], increments, cut.count)
    fraction = float(sum(cut.parameter_bytes)) / whole_parameter_bytes if whole_parameter_bytes else 1.0
    part_of_segment = shared_out(rank.trace, cut, weights.tolist(), strategy.layout)
    return StagePlan(strategy, group, rank, cut, part_of_segment, fraction, _expert_bytes(rank, cut))


def _expert_bytes(rank: Rank, cut: Segments) -> tuple[int, ...]:
    sizes_bytes, left = [0] * cut.count, set(rank.experts)
    if not left:
        return tuple(sizes_bytes)
    segments_of = cut.of_entry[rank.trace.entries].tolist()
    for op, segment in zip(rank.trace.template.base, segments_of, strict=True):
        if isinstance(op.kind, View) or segment < 0:
            continue
        for tensor in (*op.inputs, *op.weights):
            if tensor.name in left:
                sizes_bytes[segment] += tensor.bytes
                left.discard(tensor.name)
    return tuple(sizes_bytes)


def _parts(kernels: Kernels, plan: StagePlan) -> StepParts:
    """The step of one rank of one stage: the one that is done last."""
    waits = _in_line(kernels, plan.rank, plan.strategy, plan.group)
    return _flat(kernels, plan, waits) if plan.layout.pipeline == 1 else _staged(kernels, plan, waits)


def _in_line(kernels: Kernels, rank: Rank, strategy: SplitModel, group: Group) -> list[Message]:
    """What kernels wait for: sums of tensor parallel ranks, tokens on their way to experts and back, keys and values
    that come too late.
    """
    layout, batch = strategy.layout, rank.trace.batch
    messages = []
    if layout.tensor > 1:
        near = subgroup(group, layout.tensor, 1)
        messages += [
            Message(after, before, all_reduce_seconds(batch * sample_bytes, near, strategy.algorithm))
            for after, before, sample_bytes in rank.sums
        ]
        exposed = exposed_pieces(kernels, layout.tensor) if layout.overlaps else WHOLE
        messages += [
            Message(after, before, exposed.gather_seconds(before, all_gather_seconds(batch * size, near)))
            for after, before, size in rank.gathers
        ]
        messages += [
            Message(after, before, exposed.scatter_seconds(after, reduce_scatter_seconds(batch * size, near)))
            for after, before, size in rank.scatters
        ]
    if layout.expert > 1:
        experts = subgroup(group, layout.expert, 1)
        messages += [
            Message(after, before, all_to_all_seconds(batch * sample_bytes, experts))
            for after, before, sample_bytes in rank.dispatches
        ]
    if layout.context > 1:
        ring = subgroup(group, layout.context, layout.tensor)
        messages += shift_messages(rank.shifts, kernels.seconds, batch, layout.context, ring)
    return messages


def _with_calls(kernels: Kernels, rank: Rank) -> Kernels:
    """The kernels with the host's work for collectives in front of those that wait for them."""
    before = [place for exchanged in (rank.sums, rank.gathers, rank.scatters) for _, place, _ in exchanged]
    started = float(kernels.trace.columns.launches.sum())
    if not before or not started:
        return kernels
    each = CALL_LAUNCHES * float(kernels.launches.sum()) / started
    calls = np.bincount(np.minimum(before, len(kernels.launches) - 1), minlength=len(kernels.launches))
    return replace(kernels, launches=kernels.launches + each * calls)


@dataclass(frozen=True, slots=True)
class Summed:
    """Ranks that have the same parameters: `group` sums their gradients, and zero1 shards the optimizer over them."""

    group: Group
    strategy: SplitModel
    gathered_fraction: float
    """Bytes of a parameter of a byte of its gradient: parameters in half may have gradients in float32."""

    def seconds(self, size_bytes: float) -> tuple[float, float]:
        """Seconds of summing gradients before the update, and of gathering parameters behind it (zero1)."""
        if self.group.ranks == 1 or not size_bytes:
            return 0.0, 0.0
        if self.strategy.shards_state:
            gathered_bytes = self.gathered_fraction * size_bytes
            return reduce_scatter_seconds(size_bytes, self.group), all_gather_seconds(gathered_bytes, self.group)
        return all_reduce_seconds(size_bytes, self.group, self.strategy.algorithm), 0.0

    @property
    def update_fraction(self) -> float:
        """Which part of these parameters a rank updates."""
        return 1 / self.group.ranks if self.strategy.shards_state else 1.0


def _summed(plan: StagePlan) -> tuple[Summed, Summed]:
    """For the parameters that every rank has, and for those of experts."""
    group, layout = plan.group, plan.layout
    dense = subgroup(group, layout.data * layout.context, layout.tensor)
    experts = subgroup(group, layout.stage_ranks // layout.expert, layout.expert)
    fraction = bucket_fraction(plan.rank.trace)
    return Summed(dense, plan.strategy, fraction), Summed(experts, plan.strategy, fraction)


def _flat(kernels: Kernels, plan: StagePlan, waits: list[Message]) -> StepParts:
    """No stages: gradients of the last pass travel in buckets beside the sums of tensor parallelism."""
    seconds, launches = kernels.passes
    alone = kernels.alone_seconds
    each = pass_seconds(seconds, launches, waits) if waits else alone
    last, behind, updated_bytes = each, 0.0, 0.0
    trace, experts = kernels.trace, plan.rank.experts
    expert_bytes = float(sum(plan.expert_bytes))
    dense_bytes = float(sum(plan.cut.parameter_bytes)) - expert_bytes
    exchanged: list[Message] = []
    for summed, size_bytes, is_expert in zip(_summed(plan), (dense_bytes, expert_bytes), (False, True), strict=True):
        updated_bytes += size_bytes * summed.update_fraction
        if trace.recipe.mode != "forward" and summed.group.ranks > 1 and size_bytes:
            summands = gradients_of(trace, [p for p in trace.parameters if (p.name in experts) is is_expert])
            exchanged += [
                Message(place, len(seconds), summed.seconds(size)[0], GRADIENT_WIRE)
                for size, place in DDP_BUCKETS.filled(summands)
            ]
            behind += summed.seconds(summands.total_bytes)[1]
    if exchanged:
        last = pass_seconds(seconds, launches, [*waits, *exchanged])
    return assembled(
        kernels,
        alone_seconds=alone,
        comm_seconds=max(0.0, last - alone),
        repeated_comm_seconds=max(0.0, each - alone),
        behind_seconds=behind,
        update_fraction=plan.parameter_fraction * updated_bytes / ((dense_bytes + expert_bytes) or 1.0),
    )


def _staged(kernels: Kernels, plan: StagePlan, waits: list[Message]) -> StepParts:
    trace, layout = kernels.trace, plan.layout
    seconds, launches = kernels.passes
    micro_batches = trace.recipe.accumulate
    phase, part = trace.columns.phase[~kernels.is_update], plan.part_of_entry
    increments = np.diff(timeline(seconds, launches, waits)[0], prepend=0.0)
    alone = np.diff(kernel_ends(seconds, launches), prepend=0.0)

    def by_part(values: Seconds, of_phase: int) -> Seconds:
        mask = phase == of_phase
        return np.bincount(part[mask], values[mask], plan.parts).astype(np.float64)

    work = MicroBatchWork(
        tuple(by_part(increments, FORWARD).tolist()),
        tuple(by_part(increments, BACKWARD).tolist()),
        _sends(plan, trace.batch),
    )
    ends = stage_ends(work, layout.pipeline, micro_batches, layout.schedule)

    rules = trace.recipe.precision_rules
    scale = rules.products.bytes / DType.FLOAT32.bytes if rules.is_stored else 1.0  # gradients as parameters are stored
    expert_bytes = scale * plan.by_stage(plan.expert_bytes)
    dense_bytes = scale * plan.by_stage(plan.cut.parameter_bytes) - expert_bytes
    whole_bytes = float(dense_bytes.sum() + expert_bytes.sum()) or 1.0
    updating = float(kernels.seconds[kernels.is_update].sum()) * plan.parameter_fraction
    outcome = []
    for stage in range(layout.pipeline):
        exchanging, updated_bytes = 0.0, 0.0
        for summed, size_bytes in zip(_summed(plan), (dense_bytes[stage], expert_bytes[stage]), strict=True):
            if trace.recipe.mode != "forward":
                exchanging += sum(summed.seconds(float(size_bytes)))
            updated_bytes += float(size_bytes) * summed.update_fraction
        update = updating * updated_bytes / whole_bytes
        outcome.append((ends[stage] + exchanging + update, update, stage))
    total, update, stage = max(outcome)
    mine = part % layout.pipeline == stage
    forward, backward = (micro_batches * float(seconds[mine & (phase == of)].sum()) for of in (FORWARD, BACKWARD))
    host = max(0.0, micro_batches * float(alone[mine].sum()) - forward - backward)
    comm = max(0.0, total - forward - backward - update - host)
    bubble = max(0.0, ends[stage] - micro_batches * float(increments[mine].sum()))
    return StepParts(forward, backward, update, comm, 0.0, host, min(bubble, comm))


def _sends(plan: StagePlan, batch: int) -> tuple[float, ...]:
    """Seconds to hand the result of each part to the next: inside a box, or from all ranks of a box to another. Ranks
    that have cut it along the tokens send their part and gather nothing.
    """
    layout, group = plan.layout, plan.group
    is_near = layout.stage_ranks * 2 <= group.ranks_per_node
    pair = subgroup(group, 2, 1) if is_near else Group(2, group.ranks_per_node, group.inner, group.outer)
    tensor_group = subgroup(group, layout.tensor, 1)
    sends = []
    for part in range(plan.parts - 1):
        segment = max(place for place, of in enumerate(plan.part_of_segment) if of == part)
        size_bytes = batch * plan.cut.crossing_bytes[segment]
        if layout.tensor == 1 or plan.rank.scatters:
            sends.append(point_to_point_seconds(size_bytes, pair))
            continue
        gathering = all_gather_seconds(size_bytes, tensor_group)
        sends.append(point_to_point_seconds(size_bytes / layout.tensor, pair) + gathering)
    return (*sends, 0.0)
