"""Data, tensor and pipeline parallelism together (Narayanan et al. 2021, "Efficient large-scale language model
training on GPU clusters using Megatron-LM").

Ranks are numbered so that tensor parallel ranks are neighbours, then data parallel ones, then stages: what talks most
sits in one box. One rank's step is that of `tensor`; its segments are shared out over the stages so that the slowest
takes the least time by forecast; micro-batches (`--accumulate`) run through the stages by a schedule. Behind a stage's
last backward pass its gradients are summed over the data parallel ranks, unhidden; without stages they are summed in
buckets behind the backward pass, on a wire of their own.

    exposed communication = all-reduces of tensor parallelism + waiting for other stages (the bubble) + gradients

Tensor parallel ranks each send their part of an activation to the next stage and gather it there (scatter/gather).
"""

from dataclasses import dataclass

import numpy as np

from epochcast.comm.collectives import (
    all_gather_seconds,
    all_reduce_seconds,
    point_to_point_seconds,
    reduce_scatter_seconds,
)
from epochcast.errors import BadInput
from epochcast.forecast.exchange import buckets, gradients
from epochcast.forecast.parts import BACKWARD, FORWARD, Kernels, StepParts, assembled
from epochcast.forecast.placement import Placement
from epochcast.forecast.strategies.cuts import Places, Segments, balanced, segments
from epochcast.forecast.strategies.messages import Message, pass_seconds, timeline
from epochcast.forecast.strategies.rules import Layout
from epochcast.forecast.strategies.schedules import Work, stage_ends
from epochcast.forecast.strategies.subgroups import subgroup
from epochcast.forecast.strategies.tensor import Rank
from epochcast.forecast.streams import Seconds, kernel_ends
from epochcast.hardware.cluster import Group

GRADIENT_WIRE = 1


@dataclass(frozen=True)
class Plan:
    """What is decided once for a step: the part of the model that each segment belongs to."""

    layout: Layout
    rank: Rank
    cut: Segments
    part_of_segment: tuple[int, ...]
    parameter_fraction: float

    @property
    def parts(self) -> int:
        """Stages times chunks."""
        return self.layout.pipeline * self.layout.chunks

    @property
    def part_of_entry(self) -> Places:
        """Of forward and backward entries."""
        of_entry = self.cut.of_entry[self.cut.of_entry >= 0]
        return np.array(self.part_of_segment)[of_entry]


def planned(rank: Rank, whole_parameters: float, seconds: Seconds, layout: Layout) -> Plan:
    """Share the segments out by their kernels' seconds; refuse a pipeline that has more stages than places to cut."""
    cut = segments(rank.trace)
    parts = layout.pipeline * layout.chunks
    if cut.count < parts:
        raise BadInput(
            f"a pipeline of {parts} parts: {rank.trace.name} can be cut into {cut.count} at most; take fewer stages"
        )
    inside = cut.of_entry >= 0
    weights = np.bincount(cut.of_entry[inside], seconds[inside], cut.count)
    mine = float(sum(cut.parameter_bytes))
    fraction = mine / whole_parameters if whole_parameters else 1.0
    return Plan(layout, rank, cut, balanced(weights.tolist(), parts), fraction)


def parts(kernels: Kernels, placement: Placement, input_seconds: float, plan: Plan) -> StepParts:
    """The step of one rank of one stage: the one that is done last."""
    sums = _sums(plan, placement)
    if plan.layout.pipeline == 1:
        return _flat(kernels, placement, input_seconds, plan, sums)
    return _staged(kernels, placement, input_seconds, plan, sums)


def _sums(plan: Plan, placement: Placement) -> list[Message]:
    """The all-reduces between tensor parallel ranks."""
    if plan.layout.tensor == 1:
        return []
    group = subgroup(placement.group(), plan.layout.tensor, 1)
    batch = plan.rank.trace.batch
    return [
        Message(after, before, all_reduce_seconds(batch * sample_bytes, group, placement.rule.algorithm))
        for after, before, sample_bytes in plan.rank.sums
    ]


def _data_group(placement: Placement, layout: Layout) -> Group:
    return subgroup(placement.group(), layout.data, layout.tensor)


def _exchange(size_bytes: float, placement: Placement, group: Group) -> tuple[float, float]:
    """Seconds of summing gradients before the update, and of gathering parameters behind it (zero1)."""
    if placement.rule.stage:
        return reduce_scatter_seconds(size_bytes, group), all_gather_seconds(size_bytes, group)
    return all_reduce_seconds(size_bytes, group, placement.rule.algorithm), 0.0


def _flat(kernels: Kernels, placement: Placement, input_seconds: float, plan: Plan, sums: list[Message]) -> StepParts:
    """No stages: gradients of the last pass travel in buckets beside the sums of tensor parallelism."""
    seconds, launches = kernels.passes
    alone = float(kernel_ends(seconds, launches)[-1])
    each = pass_seconds(seconds, launches, sums) if sums else alone
    last, behind = each, 0.0
    if plan.layout.data > 1 and kernels.trace.recipe.mode != "forward":
        group = _data_group(placement, plan.layout)
        made = gradients(kernels.trace)
        exchanged = [
            Message(place, len(seconds), _exchange(size, placement, group)[0], GRADIENT_WIRE)
            for size, place in buckets(made, placement.rule)
        ]
        last = pass_seconds(seconds, launches, [*sums, *exchanged])
        behind = _exchange(made.total_bytes, placement, group)[1]
    return assembled(
        kernels,
        alone_seconds=alone,
        comm_seconds=max(0.0, last - alone),
        repeated_comm_seconds=max(0.0, each - alone),
        behind_seconds=behind,
        update_fraction=plan.parameter_fraction / (plan.layout.data if placement.rule.stage else 1),
        input_seconds=input_seconds,
    )


def _staged(kernels: Kernels, placement: Placement, input_seconds: float, plan: Plan, sums: list[Message]) -> StepParts:
    trace, layout = kernels.trace, plan.layout
    seconds, launches = kernels.passes
    micro_batches = trace.recipe.accumulate
    phase, part = trace.columns.phase[~kernels.is_update], plan.part_of_entry
    increments = np.diff(timeline(seconds, launches, sums)[0], prepend=0.0)
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

    stage_of_part = np.arange(plan.parts) % layout.pipeline
    owned_bytes = np.bincount(
        np.array(plan.part_of_segment), np.array(plan.cut.parameter_bytes, dtype=np.float64), plan.parts
    )
    stage_bytes = np.bincount(stage_of_part, owned_bytes, layout.pipeline)
    whole_bytes = float(owned_bytes.sum()) or 1.0
    updating = float(kernels.seconds[kernels.is_update].sum()) * plan.parameter_fraction
    is_training = trace.recipe.mode != "forward"
    outcome = []
    for stage in range(layout.pipeline):
        before, behind = 0.0, 0.0
        if layout.data > 1 and is_training:
            before, behind = _exchange(float(stage_bytes[stage]), placement, _data_group(placement, layout))
        shards = layout.data if placement.rule.stage else 1
        update = updating * float(stage_bytes[stage]) / whole_bytes / shards
        outcome.append((ends[stage] + before + update + behind, update, stage))
    total, update, stage = max(outcome)
    mine = np.isin(part, np.flatnonzero(stage_of_part == stage))
    forward, backward = (micro_batches * float(seconds[mine & (phase == of)].sum()) for of in (FORWARD, BACKWARD))
    host = max(0.0, micro_batches * float(alone[mine].sum()) - forward - backward)
    comm = max(0.0, total - forward - backward - update - host)
    bubble = max(0.0, ends[stage] - micro_batches * float(increments[mine].sum()))
    return StepParts(forward, backward, update, comm, input_seconds, host, min(bubble, comm))


def _sends(plan: Plan, placement: Placement, batch: int) -> tuple[float, ...]:
    """Seconds to hand the result of each part to the next: inside a box, or from all ranks of a box to another."""
    layout, group = plan.layout, placement.group()
    apart = layout.tensor * layout.data
    is_near = apart * 2 <= group.ranks_per_node
    pair = subgroup(group, 2, 1) if is_near else Group(2, group.ranks_per_node, group.inner, group.outer)
    tensor_group = subgroup(group, layout.tensor, 1)
    found = []
    for part in range(plan.parts - 1):
        segment = max(place for place, of in enumerate(plan.part_of_segment) if of == part)
        size_bytes = batch * plan.cut.crossing_bytes[segment]
        seconds = point_to_point_seconds(size_bytes / layout.tensor, pair)
        found.append(seconds + (all_gather_seconds(size_bytes, tensor_group) if layout.tensor > 1 else 0.0))
    return (*found, 0.0)
