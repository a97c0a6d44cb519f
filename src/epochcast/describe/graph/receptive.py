"""Receptive field: how many input pixels, along each side, one output element can see.

For a layer of window k, stride s and dilation d on top of a field r with jump j (input pixels between neighbouring
outputs):

    r' = r + d·(k-1)·j,   j' = j·s,        so N layers of F x F with stride 1 see N·F - N + 1.

A transposed layer spreads each element over k outputs, s apart, so that an output sees ⌈k/s⌉ of them:
r' = r + (⌈k/s⌉-1)·j, j' = j/s. Where branches meet the larger field counts. Ops that mix all positions (a linear layer
on flattened features, a product of two computed tensors, attention, recurrence, a global pool or mean) see the whole
input. As in publications, a field is not cut off at the border (ResNet-50 sees 427 pixels of 224), and the statistics
of a normalisation are not counted.
"""

from dataclasses import dataclass
from functools import singledispatch
from math import ceil

from epochcast.describe.graph.op import Graph, Op
from epochcast.describe.graph.op_kinds import (
    Attention,
    Conv,
    Copy,
    Elementwise,
    Embedding,
    Gather,
    Kind,
    Loss,
    Matmul,
    Norm,
    Opaque,
    OptimizerUpdate,
    Pool,
    Recurrent,
    Reduce,
    Scatter,
    Softmax,
    View,
)


@dataclass(frozen=True, slots=True)
class ReceptiveField:
    """Pixels seen and pixels between neighbours, per spatial dimension."""

    size: tuple[int, ...]
    jump: tuple[int, ...]


def receptive_fields(graph: Graph) -> dict[str, tuple[int, ...] | None]:
    """The field of every op by its name; None where the input has no spatial dimensions."""
    spatial = graph.inputs[0].shape[2:] if graph.inputs else ()
    if not spatial or not graph.inputs[0].dtype.is_float:
        return {op.name: None for op in graph.ops}
    single_pixel = ReceptiveField((1,) * len(spatial), (1,) * len(spatial))
    fields = {tensor.name: single_pixel for tensor in graph.inputs}
    size_of_op: dict[str, tuple[int, ...] | None] = {}
    for op in graph.ops:
        before = [fields[t.name] for t in op.inputs if t.name in fields]
        if not before:
            size_of_op[op.name] = None
            continue
        joined = ReceptiveField(
            tuple(max(sizes) for sizes in zip(*(f.size for f in before), strict=True)),
            tuple(max(jumps) for jumps in zip(*(f.jump for f in before), strict=True)),
        )
        after = field_after(op.kind, op, joined, spatial)
        size_of_op[op.name] = after.size
        for tensor in op.outputs:
            fields[tensor.name] = after
    return size_of_op


@singledispatch
def field_after(kind: Kind, op: Op, field: ReceptiveField, spatial: tuple[int, ...]) -> ReceptiveField:
    """The field after an op. A kind without a rule is assumed to keep positions, as the kinds below do."""
    return field


for _kind in (Norm, Softmax, Elementwise, Embedding, Gather, Scatter, Copy, View, Loss, OptimizerUpdate, Opaque):
    field_after.register(_kind, field_after.dispatch(object))


def _whole_input(field: ReceptiveField, spatial: tuple[int, ...]) -> ReceptiveField:
    return ReceptiveField(tuple(max(r, n) for r, n in zip(field.size, spatial, strict=True)), spatial)


def _windowed(
    field: ReceptiveField, window: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
) -> ReceptiveField:
    return ReceptiveField(
        tuple(r + d * (k - 1) * j for r, j, k, d in zip(field.size, field.jump, window, dilation, strict=True)),
        tuple(j * s for j, s in zip(field.jump, stride, strict=True)),
    )


@field_after.register
def _(kind: Conv, op: Op, field: ReceptiveField, spatial: tuple[int, ...]) -> ReceptiveField:
    window = op.weights[0].shape[2:]
    if len(window) != len(spatial):
        return field
    if kind.transposed:
        return ReceptiveField(
            tuple(
                r + (ceil(k / s) - 1) * j
                for r, j, k, s in zip(field.size, field.jump, window, kind.stride, strict=True)
            ),
            tuple(max(1, j // s) for j, s in zip(field.jump, kind.stride, strict=True)),
        )
    return _windowed(field, window, kind.stride, kind.dilation)


@field_after.register
def _(kind: Pool, op: Op, field: ReceptiveField, spatial: tuple[int, ...]) -> ReceptiveField:
    if not all(kind.window):
        return _whole_input(field, spatial)
    if len(kind.window) != len(spatial):
        return field
    return _windowed(field, kind.window, kind.stride, (1,) * len(spatial))


@field_after.register(Attention)
@field_after.register(Recurrent)
def _(kind: Kind, op: Op, field: ReceptiveField, spatial: tuple[int, ...]) -> ReceptiveField:
    return _whole_input(field, spatial)


@field_after.register
def _(kind: Matmul, op: Op, field: ReceptiveField, spatial: tuple[int, ...]) -> ReceptiveField:
    """A weight applied to each token keeps the field. Flattened features or two computed tensors see all."""
    return field if op.weights and len(op.inputs[0].shape) > 2 else _whole_input(field, spatial)


@field_after.register
def _(kind: Reduce, op: Op, field: ReceptiveField, spatial: tuple[int, ...]) -> ReceptiveField:
    """A mean over channels keeps its positions; one over positions sees everything."""
    before, after = op.inputs[0].shape, op.output.shape
    keeps_positions = after[-len(spatial) :] == before[-len(spatial) :]
    return field if keeps_positions else _whole_input(field, spatial)
