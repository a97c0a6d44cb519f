"""Where a network can be cut: the places between its ops over which a single activation passes.

A residual block, a transformer's attention or its feed-forward layer lie between two such places; a segment is what
lies between two neighbours. Pipelines put whole segments on a stage, sharded strategies gather the parameters of one
segment at a time. What does not grow with the batch or follows from the inputs alone (positions, masks, rotations) does
not count: every stage has it or makes it.
The loss stays with the last layer that has weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epochcast.describe.graph.op import Op, Phase
from epochcast.describe.graph.trace import SMALL_BATCH, Trace

Places = NDArray[np.int64]


@dataclass(frozen=True)
class Segments:
    """The segment of every entry of the columns, what crosses behind each segment per sample, and its parameters.

    Entries of the update belong to none: -1. `parameter_bytes` are of the parameters first read in a segment.
    """

    of_entry: Places
    crossing_bytes: tuple[float, ...]
    parameter_bytes: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.parameter_bytes)


def segments(trace: Trace) -> Segments:
    """Read off the ops; kept on the template."""
    cut: Segments = trace.template.derived.get("segments", lambda: _cut(trace).by_entry(trace))
    return cut


@dataclass(frozen=True)
class _Cut:
    """The same by op: the segment of every op, and the bytes of the parameters that it is the first to read."""

    of_op: Places
    crossing_bytes: tuple[float, ...]
    bytes_of_op: Places

    def by_entry(self, trace: Trace) -> Segments:
        inside = self.of_op >= 0
        sizes = np.zeros(len(self.crossing_bytes) + 1, dtype=np.int64)
        np.add.at(sizes, self.of_op[inside], self.bytes_of_op[inside])
        return Segments(self.of_op[trace.places], self.crossing_bytes, tuple(sizes.tolist()))


def _cut(trace: Trace) -> _Cut:
    base, growths = trace.template.base, trace.template.growths
    forward = [place for place, op in enumerate(base) if op.phase is Phase.FORWARD]
    parameters = {p.name: p.tensor.bytes for p in trace.parameters}
    last_weighted = max((place for place in forward if base[place].weights), default=-1)
    last_use: dict[str, int] = {}
    for place in forward:
        for tensor in (*base[place].inputs, *base[place].weights):
            last_use[tensor.name] = place
    growing: dict[str, int] = {}
    ends: dict[int, list[str]] = {}
    segment_of_op: dict[int, int] = {}
    crossing: list[float] = []
    segment, holds_weights = 0, False
    learned: set[str] = set()  # what follows from parameters; masks and positions do not
    for place in forward:
        op = base[place]
        if op.weights or any(t.name in learned or t.name in parameters for t in op.inputs):
            learned.update(t.name for t in op.outputs)
        segment_of_op[place] = segment
        holds_weights = holds_weights or bool(op.weights)
        growth = growths[place]
        for index, tensor in enumerate(op.outputs):
            grows = growth is not None and growth[1][index] is not None and tensor.name in learned
            if grows and last_use.get(tensor.name, -1) > place and tensor.name not in growing:
                growing[tensor.name] = tensor.bytes
                ends.setdefault(last_use[tensor.name], []).append(tensor.name)
        for name in ends.pop(place, []):
            growing.pop(name, None)
        if holds_weights and len(growing) == 1 and place < last_weighted:
            crossing.append(next(iter(growing.values())) / SMALL_BATCH)
            segment, holds_weights = segment + 1, False
    return _with_backward(base, segment_of_op, parameters, crossing, segment + 1)


def _with_backward(
    base: Sequence[Op],
    segment_of_op: dict[int, int],
    parameters: dict[str, int],
    crossing: list[float],
    count: int,
) -> _Cut:
    """A backward op belongs where the forward ops of its layer are; one without a layer stays with the op before it."""
    of_layer: dict[str, int] = {}
    sizes = [0] * len(base)
    for place, segment in segment_of_op.items():
        op = base[place]
        of_layer.setdefault(op.layer, segment)
        for tensor in (*op.inputs, *op.weights):
            if tensor.name in parameters:
                sizes[place] += parameters.pop(tensor.name)
    segment_of: list[int] = []
    current = count - 1
    for place, op in enumerate(base):
        if place in segment_of_op:
            segment_of.append(segment_of_op[place])
        elif op.phase is Phase.UPDATE:
            segment_of.append(-1)
        else:
            # Backward runs from the end to the front: a layer shared by several segments never leads back.
            current = min(current, of_layer.get(op.layer, current))
            segment_of.append(current)
    return _Cut(np.array(segment_of, dtype=np.int64), tuple(crossing), np.array(sizes, dtype=np.int64))


def balanced(weights: Sequence[float], parts: int) -> tuple[int, ...]:
    """The part of every segment, in order, such that the heaviest part is as light as can be.

    Bisection on the weight of a part; segments are filled in greedily, and every part gets at least one.
    """
    low, high = max(weights), sum(weights)
    for _ in range(60):
        middle = (low + high) / 2
        if _needed(weights, middle) <= parts:
            high = middle
        else:
            low = middle
    chosen: list[int] = []
    part, filled = 0, 0.0
    for place, weight in enumerate(weights):
        left = len(weights) - place
        is_full = filled + weight > high * (1 + 1e-9)
        must_open = left <= parts - part - 1
        if place and part < parts - 1 and filled and (is_full or must_open):
            part, filled = part + 1, 0.0
        chosen.append(part)
        filled += weight
    return tuple(chosen)


def _needed(weights: Sequence[float], most: float) -> int:
    parts, filled = 1, 0.0
    for weight in weights:
        if filled + weight > most:
            parts, filled = parts + 1, 0.0
        filled += weight
    return parts
