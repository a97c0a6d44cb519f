"""Data, tensor, pipeline, context and expert parallelism together (Narayanan et al. 2021, "Efficient large-scale
language model training on GPU clusters using Megatron-LM"; experts and contexts as in Megatron-Core).

Ranks are numbered so that tensor parallel ranks are neighbours, then those of a context, then data parallel ones, then
stages: what talks most sits in one box. Experts are spread over neighbours of a stage, whatever else those share. One
rank's step is that of `ranks`; its segments are shared out over the stages so that the slowest takes the least time by
forecast; micro-batches (`--accumulate`) run through the stages by a schedule. Behind a stage's last backward pass its
gradients are summed, unhidden; without stages they are summed in buckets behind the backward pass, on a wire of their
own. Gradients are summed over data and context parallel ranks, those of experts over the ranks of a stage that have the
same ones.

    exposed communication = all-reduces of tensor parallelism + all-to-alls of experts + keys and values not hidden
                            + waiting for other stages (the bubble) + gradients

Tensor parallel ranks each send their part of an activation to the next stage and gather it there (scatter/gather).
"""

from dataclasses import dataclass

import numpy as np

from epochcast.comm.collectives import (
    all_gather_seconds,
    all_reduce_seconds,
    all_to_all_seconds,
    point_to_point_seconds,
    reduce_scatter_seconds,
)
from epochcast.errors import BadInput
from epochcast.forecasting.exchange import buckets, gradients_of
from epochcast.forecasting.parts import BACKWARD, FORWARD, Kernels, StepParts, assembled
from epochcast.forecasting.placement import Placement
from epochcast.forecasting.strategies.context import shift_messages
from epochcast.forecasting.strategies.cuts import Places, Segments, balanced, segments
from epochcast.forecasting.strategies.messages import Message, pass_seconds, timeline
from epochcast.forecasting.strategies.rules import Layout
from epochcast.forecasting.strategies.schedules import Work, stage_ends
from epochcast.forecasting.strategies.subgroups import subgroup
from epochcast.forecasting.strategies.tensor import Rank
from epochcast.forecasting.streams import Seconds, kernel_ends
from epochcast.graph.kinds import View
from epochcast.hardware.cluster import Group

GRADIENT_WIRE = 1


@dataclass(frozen=True)
class Plan:
    """What is decided once for a step: the part of the model that each segment belongs to.

    `expert_bytes` are those of every segment's parameters that belong to experts.
    """

    layout: Layout
    rank: Rank
    cut: Segments
    part_of_segment: tuple[int, ...]
    parameter_fraction: float
    expert_bytes: tuple[int, ...]

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


def planned(rank: Rank, whole_parameters: float, kernels: Kernels, placement: Placement) -> Plan:
    """Share the segments out by the seconds of their kernels and of what these wait for; refuse a pipeline that has
    more stages than places to cut.
    """
    layout = placement.rule.layout
    assert layout is not None
    cut = segments(rank.trace)
    parts = layout.pipeline * layout.chunks
    if cut.count < parts:
        raise BadInput(
            f"a pipeline of {parts} parts: {rank.trace.name} can be cut into {cut.count} at most; take fewer stages"
        )
    waits = _in_line(kernels, rank, layout, placement)
    increments = np.diff(timeline(*kernels.passes, waits)[0], prepend=0.0)
    weights = np.bincount(cut.of_entry[cut.of_entry >= 0], increments, cut.count)
    mine = float(sum(cut.parameter_bytes))
    fraction = mine / whole_parameters if whole_parameters else 1.0
    return Plan(layout, rank, cut, balanced(weights.tolist(), parts), fraction, _expert_bytes(rank, cut))


def _expert_bytes(rank: Rank, cut: Segments) -> tuple[int, ...]:
    found, left = [0] * cut.count, set(rank.experts)
    if not left:
        return tuple(found)
    segments_of = cut.of_entry[rank.trace.entries].tolist()
    for op, segment in zip(rank.trace.template.base, segments_of, strict=True):
        if isinstance(op.kind, View) or segment < 0:
            continue
        for tensor in (*op.inputs, *op.weights):
            if tensor.name in left:
                found[segment] += tensor.bytes
                left.discard(tensor.name)
    return tuple(found)


def parts(kernels: Kernels, placement: Placement, input_seconds: float, plan: Plan) -> StepParts:
    """The step of one rank of one stage: the one that is done last."""
    waits = _in_line(kernels, plan.rank, plan.layout, placement)
    if plan.layout.pipeline == 1:
        return _flat(kernels, placement, input_seconds, plan, waits)
    return _staged(kernels, placement, input_seconds, plan, waits)


def _in_line(kernels: Kernels, rank: Rank, layout: Layout, placement: Placement) -> list[Message]:
    """What kernels wait for: sums of tensor parallel ranks, tokens on their way to experts and back, keys and values
    that come too late.
    """
    group, batch = placement.group(), rank.trace.batch
    found = []
    if layout.tensor > 1:
        near = subgroup(group, layout.tensor, 1)
        found += [
            Message(after, before, all_reduce_seconds(batch * sample_bytes, near, placement.rule.algorithm))
            for after, before, sample_bytes in rank.sums
        ]
    if layout.expert > 1:
        experts = subgroup(group, layout.expert, 1)
        found += [
            Message(after, before, all_to_all_seconds(batch * sample_bytes, experts))
            for after, before, sample_bytes in rank.dispatches
        ]
    if layout.context > 1:
        ring = subgroup(group, layout.context, layout.tensor)
        found += shift_messages(rank.shifts, kernels.seconds, batch, layout.context, ring)
    return found


@dataclass(frozen=True, slots=True)
class Summed:
    """Ranks that have the same parameters: `group` sums their gradients, and zero1 shards the optimizer over them."""

    group: Group
    placement: Placement

    def seconds(self, size_bytes: float) -> tuple[float, float]:
        """Seconds of summing gradients before the update, and of gathering parameters behind it (zero1)."""
        if self.group.ranks == 1 or not size_bytes:
            return 0.0, 0.0
        if self.placement.rule.stage:
            return reduce_scatter_seconds(size_bytes, self.group), all_gather_seconds(size_bytes, self.group)
        return all_reduce_seconds(size_bytes, self.group, self.placement.rule.algorithm), 0.0

    @property
    def update_fraction(self) -> float:
        """Which part of these parameters a rank updates."""
        return 1 / self.group.ranks if self.placement.rule.stage else 1.0


def _summed(placement: Placement, layout: Layout) -> tuple[Summed, Summed]:
    """For the parameters that every rank has, and for those of experts."""
    group = placement.group()
    dense = subgroup(group, layout.data * layout.context, layout.tensor)
    experts = subgroup(group, layout.stage_ranks // layout.expert, layout.expert)
    return Summed(dense, placement), Summed(experts, placement)


def _flat(kernels: Kernels, placement: Placement, input_seconds: float, plan: Plan, waits: list[Message]) -> StepParts:
    """No stages: gradients of the last pass travel in buckets beside the sums of tensor parallelism."""
    seconds, launches = kernels.passes
    alone = float(kernel_ends(seconds, launches)[-1])
    each = pass_seconds(seconds, launches, waits) if waits else alone
    last, behind, updated_bytes = each, 0.0, 0.0
    trace, experts = kernels.trace, plan.rank.experts
    expert_bytes = float(sum(plan.expert_bytes))
    dense_bytes = float(sum(plan.cut.parameter_bytes)) - expert_bytes
    exchanged: list[Message] = []
    for summed, size_bytes, is_expert in zip(
        _summed(placement, plan.layout), (dense_bytes, expert_bytes), (False, True), strict=True
    ):
        updated_bytes += size_bytes * summed.update_fraction
        if trace.recipe.mode != "forward" and summed.group.ranks > 1 and size_bytes:
            made = gradients_of(trace, [p for p in trace.parameters if (p.name in experts) is is_expert])
            exchanged += [
                Message(place, len(seconds), summed.seconds(size)[0], GRADIENT_WIRE)
                for size, place in buckets(made, placement.rule)
            ]
            behind += summed.seconds(made.total_bytes)[1]
    if exchanged:
        last = pass_seconds(seconds, launches, [*waits, *exchanged])
    return assembled(
        kernels,
        alone_seconds=alone,
        comm_seconds=max(0.0, last - alone),
        repeated_comm_seconds=max(0.0, each - alone),
        behind_seconds=behind,
        update_fraction=plan.parameter_fraction * updated_bytes / ((dense_bytes + expert_bytes) or 1.0),
        input_seconds=input_seconds,
    )


def _staged(
    kernels: Kernels, placement: Placement, input_seconds: float, plan: Plan, waits: list[Message]
) -> StepParts:
    trace, layout = kernels.trace, plan.layout
    seconds, launches = kernels.passes
    micro_batches = trace.recipe.accumulate
    phase, part = trace.columns.phase[~kernels.is_update], plan.part_of_entry
    increments = np.diff(timeline(seconds, launches, waits)[0], prepend=0.0)
    alone = np.diff(kernel_ends(seconds, launches), prepend=0.0)

    def by_part(values: Seconds, of_phase: int) -> Seconds:
        mask = phase == of_phase
        return np.bincount(part[mask], values[mask], plan.parts).astype(np.float64)

    work = Work(
        tuple(by_part(increments, FORWARD).tolist()),
        tuple(by_part(increments, BACKWARD).tolist()),
        _sends(plan, placement, trace.batch),
    )
    ends = stage_ends(work, layout.pipeline, micro_batches, layout.schedule)

    expert_bytes = plan.by_stage(plan.expert_bytes)
    dense_bytes = plan.by_stage(plan.cut.parameter_bytes) - expert_bytes
    whole_bytes = float(dense_bytes.sum() + expert_bytes.sum()) or 1.0
    updating = float(kernels.seconds[kernels.is_update].sum()) * plan.parameter_fraction
    outcome = []
    for stage in range(layout.pipeline):
        exchanging, updated_bytes = 0.0, 0.0
        for summed, size_bytes in zip(
            _summed(placement, layout), (dense_bytes[stage], expert_bytes[stage]), strict=True
        ):
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
    return StepParts(forward, backward, update, comm, input_seconds, host, min(bubble, comm))


def _sends(plan: Plan, placement: Placement, batch: int) -> tuple[float, ...]:
    """Seconds to hand the result of each part to the next: inside a box, or from all ranks of a box to another."""
    layout, group = plan.layout, placement.group()
    is_near = layout.stage_ranks * 2 <= group.ranks_per_node
    pair = subgroup(group, 2, 1) if is_near else Group(2, group.ranks_per_node, group.inner, group.outer)
    tensor_group = subgroup(group, layout.tensor, 1)
    found = []
    for part in range(plan.parts - 1):
        segment = max(place for place, of in enumerate(plan.part_of_segment) if of == part)
        size_bytes = batch * plan.cut.crossing_bytes[segment]
        seconds = point_to_point_seconds(size_bytes / layout.tensor, pair)
        found.append(seconds + (all_gather_seconds(size_bytes, tensor_group) if layout.tensor > 1 else 0.0))
    return (*found, 0.0)
