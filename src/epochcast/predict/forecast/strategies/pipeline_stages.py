"""What one stage of a pipeline holds: its own ops and parameters, and the activations of the micro-batches in flight.

    1F1B          stage s of p has p - s micro-batches in flight, or all there are if they are fewer
    interleaved   the first of p stages of v chunks has the activations of p + (p-1)/v (Korthikanti et al. 2022)
    GPipe         all micro-batches are in flight on every stage

A stage's step is that of its segments. What it receives from its neighbours counts as its input. The first stage has
most in flight, the last one the loss; a table that both use (tied embeddings) lies on both.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil

import numpy as np
from numpy.typing import NDArray

from epochcast.describe.graph.checkpointing import blocks_of
from epochcast.describe.graph.op import Op, Phase
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.rebatch import Sides, Template
from epochcast.describe.graph.tensor import Tensor
from epochcast.describe.graph.trace import CLASSES, Trace
from epochcast.predict.forecast.strategies.cuts import Places, Segments, balanced, segments
from epochcast.predict.forecast.strategies.degrees import Layout
from epochcast.predict.memory.lifetimes import Role, lifetimes
from epochcast.predict.memory.peak import step_on

Sharing = Callable[[Sequence[float], int], tuple[int, ...]]
"""From the weights of layers and a number of parts to the part of each layer."""


def fullest_stage(trace: Trace, layout: Layout) -> tuple[Trace, int]:
    """The step of the stage that holds most of one rank's step, and the bytes per sample of the other micro-batches."""
    micro_batches = trace.recipe.accumulate if trace.recipe.mode != "forward" else 1
    stages = sorted({0, min(1, layout.pipeline - 1), layout.pipeline - 1})
    stage_sizes = []
    for stage in stages:
        part = _stage(trace, layout, stage)
        others_bytes = ceil((_in_flight(layout, stage, micro_batches) - 1) * _kept_sample_bytes(part))
        live_bytes = int(step_on(part, None).live_bytes(trace.batch).sum(axis=0).max())
        stage_sizes.append((live_bytes + trace.batch * others_bytes, -stage, part, others_bytes))
    *_, part, others_bytes = max(stage_sizes, key=lambda item: item[:2])
    return part, others_bytes


def _in_flight(layout: Layout, stage: int, micro_batches: int) -> float:
    """Micro-batches whose activations a stage has at a time, counted in its own layers."""
    stages = layout.pipeline
    if layout.schedule == "gpipe":
        return micro_batches
    if layout.schedule != "1f1b":
        return 1
    own = float(stages - stage)
    if layout.chunks > 1:
        own += (stages - 1 - stage) / layout.chunks
    return max(1.0, min(own, micro_batches))


def _kept_sample_bytes(part: Trace) -> int:
    """Bytes per sample that the forward pass leaves for the backward pass."""
    lives = lifetimes(part)
    base = part.template.base
    end = max((place for place, op in enumerate(base) if op.phase is Phase.FORWARD), default=-1)
    is_kept = (lives.roles == Role.ACTIVATIONS) & (lives.born <= end) & (lives.last > end)
    return int(lives.sample_bytes[is_kept].sum())


def _stage(trace: Trace, layout: Layout, stage: int) -> Trace:
    key = "stage", layout.pipeline, layout.chunks, layout.is_even, stage
    part: Trace = trace.template.derived.get(key, lambda: _cut_out(trace, layout, stage))
    return replace(part, recipe=trace.recipe)


def _cut_out(trace: Trace, layout: Layout, stage: int) -> Trace:
    mine = _of_stage(trace, layout, stage)
    base, growths = trace.template.base, trace.template.growths
    places = np.flatnonzero(mine).tolist()
    names = {t.name for place in places for t in (*base[place].inputs, *base[place].weights)}
    parameters = tuple(p for p in trace.parameters if p.name in names)
    own, trained = {p.name: p.tensor for p in parameters}, [p.name for p in trace.parameters if p.trainable]
    kept: list[tuple[Op, Sides | None]] = []
    for place, (op, growth) in enumerate(zip(base, growths, strict=True)):
        if op.phase is Phase.UPDATE:
            update = _update_of(op, trained, own)
            if update.inputs:
                kept.append((update, None))
        elif mine[place]:
            kept.append((op, growth))
    template = Template(tuple(op for op, _ in kept), tuple(growth for _, growth in kept))
    return replace(trace, template=template, parameters=parameters)


def _of_stage(trace: Trace, layout: Layout, stage: int) -> NDArray[np.bool_]:
    """Which ops of the passes a stage runs."""
    is_pass = np.array([op.phase is not Phase.UPDATE for op in trace.template.base], dtype=np.bool_)
    if layout.pipeline == 1:
        return is_pass
    cut = segments(trace)
    parts = np.array(shared_out(trace, cut, _flops(trace, cut), layout, filled))
    mine: NDArray[np.bool_] = parts[cut.of_entry[np.maximum(0, trace.entries)]] % layout.pipeline == stage
    return is_pass & mine


def shared_out(
    trace: Trace, cut: Segments, weights: Sequence[float], layout: Layout, share: Sharing = balanced
) -> tuple[int, ...]:
    """The part of the model that every segment belongs to, whole layers together where there are enough of them: such
    that the heaviest part is as light as can be, or, where the layout says even, with as many layers each (Megatron-LM:
    what is in front of the first layer goes to the first part, what is behind the last to the last).
    """
    parts = layout.pipeline * layout.chunks
    places = _layer_of_segment(trace, cut)
    layers = len({place for place in places if place is not None})
    if layout.is_even and layers and layers % parts == 0:
        each, last = layers // parts, 0
        chosen: list[int] = []
        for place in places:
            last = place // each if place is not None else (parts - 1 if chosen and last == parts - 1 else last)
            chosen.append(last)
        return tuple(chosen)
    groups: list[int] = []
    for index, place in enumerate(places):
        is_same = index > 0 and place is not None and place == places[index - 1]
        groups.append(groups[-1] if is_same else (groups[-1] + 1 if groups else 0))
    if len(set(groups)) < parts:
        return share(weights, parts)
    summed = np.bincount(groups, np.array(weights, dtype=np.float64))
    of_group = share(summed.tolist(), parts)
    return tuple(of_group[group] for group in groups)


def filled(weights: Sequence[float], parts: int) -> tuple[int, ...]:
    """Parts in order, each with what crosses its share of the whole (nanotron): the first ones, which hold most, rather
    have a layer too many. Every part gets at least one.
    """
    total, cumulative, part = sum(weights), 0.0, 0
    chosen: list[int] = []
    for place, weight in enumerate(weights):
        chosen.append(part)
        cumulative += weight
        left = len(weights) - place - 1
        if part < parts - 1 and (cumulative > total * (part + 1) / parts or left <= parts - part - 1):
            part += 1
    return tuple(chosen)


def _layer_of_segment(trace: Trace, cut: Segments) -> list[int | None]:
    """Which of the repeated blocks a segment is in, None outside of them."""
    base = trace.template.base
    forward = [place for place in trace.places.tolist() if base[place].phase is Phase.FORWARD]
    blocks = blocks_of({base[place].layer for place in forward})
    numbers: dict[str, int] = {}
    block_of: list[int | None] = [None] * cut.count
    segment_of = cut.of_entry[trace.entries[forward]].tolist()
    for place, segment in zip(forward, segment_of, strict=True):
        block = blocks.get(base[place].layer)
        if block is not None and block_of[segment] is None:
            block_of[segment] = numbers.setdefault(block, len(numbers))
    return block_of


def _flops(trace: Trace, cut: Segments) -> list[float]:
    inside = cut.of_entry >= 0
    is_product = trace.columns.op_class == CLASSES.index(OpClass.LINEAR)
    flops = np.where(is_product, trace.columns.flops, 0.0)[inside]
    weights: Places = np.bincount(cut.of_entry[inside], flops, cut.count)
    return [float(weight) or 1.0 for weight in weights]


def _update_of(op: Op, trained: Sequence[str], parameters: Mapping[str, Tensor]) -> Op:
    """The update of a rank's parameters, in their sizes: what a strategy splits, it splits in the passes alone.

    A pass of an optimizer has operands for all trained parameters in turn (`describe.graph.optimizer`).
    """

    def own(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        own_tensors = []
        for place, tensor in enumerate(tensors):
            relation = tensor.relation
            owner = relation.state_of or relation.master_of or relation.gradient_of or trained[place % len(trained)]
            parameter = parameters.get(owner)
            if parameter is not None:
                is_like = len(tensor.shape) == len(parameter.shape) and tensor.elements > 1
                own_tensors.append(tensor.sized(parameter.shape) if is_like else tensor)
        return tuple(own_tensors)

    return replace(op, inputs=own(op.inputs), outputs=own(op.outputs))
