"""Receptive fields: how many input pixels, along each side, one output element of a graph can see.

For a layer of window k, stride s and dilation d on top of a field r with jump j (input pixels between neighbouring
outputs):

    r' = r + d·(k-1)·j,   j' = j·s,        so N layers of F x F with stride 1 see N·F - N + 1.

A transposed layer spreads each element over k outputs, s apart, so that an output sees ⌈k/s⌉ of them:
r' = r + (⌈k/s⌉-1)·j, j' = j/s.

Where branches meet, the larger field counts. Ops that mix all positions (a linear layer on flattened features, a
product of two computed tensors, attention, recurrence, a global pool or mean) see the whole input. As in publications,
a field is not cut off at the border (ResNet-50 sees 427 pixels of 224), and statistics of a normalisation are not
counted.
"""

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epochcast.describe.graph.op import Graph

Sizes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReceptiveField:
    """Pixels seen and pixels between neighbours, per spatial dimension."""

    size: Sizes
    jump: Sizes

    def mixed(self, spatial: Sizes) -> "ReceptiveField":
        """The field of an op that mixes all positions of an input with these spatial sizes."""
        return ReceptiveField(tuple(max(r, n) for r, n in zip(self.size, spatial, strict=True)), spatial)

    def windowed(self, window: Sizes, stride: Sizes, dilation: Sizes) -> "ReceptiveField":
        """The field behind a sliding window."""
        return ReceptiveField(
            tuple(r + d * (k - 1) * j for r, j, k, d in zip(self.size, self.jump, window, dilation, strict=True)),
            tuple(j * s for j, s in zip(self.jump, stride, strict=True)),
        )

    def transposed(self, window: Sizes, stride: Sizes) -> "ReceptiveField":
        """The field behind a transposed window."""
        return ReceptiveField(
            tuple(r + (ceil(k / s) - 1) * j for r, j, k, s in zip(self.size, self.jump, window, stride, strict=True)),
            tuple(max(1, j // s) for j, s in zip(self.jump, stride, strict=True)),
        )


def receptive_fields(graph: "Graph") -> dict[str, tuple[int, ...] | None]:
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
        after = op.kind.receptive_field(op, joined, spatial)
        size_of_op[op.name] = after.size
        for tensor in op.outputs:
            fields[tensor.name] = after
    return size_of_op
