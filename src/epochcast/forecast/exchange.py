"""Gradients between data-parallel ranks: in buckets, in the order the backward pass makes them, on a second stream.

A bucket may leave when its last gradient is ready and the wire is free (Li et al. 2020, "PyTorch Distributed"). What is
still travelling when the backward pass ends is exposed; the rest was hidden behind it.
"""

from dataclasses import dataclass

from epochcast.comm.allreduce import all_reduce_seconds
from epochcast.forecast.placement import STRATEGIES, Placement, Strategy
from epochcast.forecast.streams import Seconds
from epochcast.graph.backward import grad
from epochcast.graph.kinds import View
from epochcast.graph.op import Phase
from epochcast.graph.trace import Trace


@dataclass(frozen=True, slots=True)
class Gradients:
    """The gradients of a step in the order they are made: bytes of each, and the place in the columns it is made by."""

    sizes_bytes: tuple[int, ...]
    places: tuple[int, ...]

    @property
    def total_bytes(self) -> int:
        """All of them."""
        return sum(self.sizes_bytes)


def gradients(trace: Trace) -> Gradients:
    """Read off the trace: the last backward op that writes each trainable parameter's gradient."""
    trained = {grad(p.tensor).name for p in trace.parameters if p.trainable}
    made: dict[str, tuple[int, int]] = {}
    column = -1
    for op in trace.template.base:
        if not isinstance(op.kind, View):
            column += 1  # a view is ready with the kernel before it
        if op.phase is Phase.BACKWARD:
            made.update({t.name: (column, t.bytes) for t in op.outputs if t.name in trained})
    ordered = sorted(made.values(), key=lambda pair: pair[0])
    return Gradients(tuple(size for _, size in ordered), tuple(place for place, _ in ordered))


def exposed_seconds(trace: Trace, ends: Seconds, backward_end_seconds: float, placement: Placement) -> float:
    """Seconds of gradient exchange that the backward pass does not hide."""
    if placement.gpus == 1:
        return 0.0
    made = gradients(trace)
    strategy, group = STRATEGIES[placement.strategy], placement.group()
    if strategy.bucket_bytes is None:
        return all_reduce_seconds(made.total_bytes, group, strategy.algorithm)
    wire_free_seconds = 0.0
    for size_bytes, place in buckets(made, strategy):
        start = max(wire_free_seconds, float(ends[place]))
        wire_free_seconds = start + all_reduce_seconds(size_bytes, group, strategy.algorithm)
    return max(0.0, wire_free_seconds - backward_end_seconds)


def buckets(made: Gradients, strategy: Strategy) -> list[tuple[int, int]]:
    """(bytes, place of the last gradient) of each bucket; a bucket closes when it has reached its size."""
    assert strategy.bucket_bytes is not None
    closed: list[tuple[int, int]] = []
    filled, limit = 0, strategy.first_bucket_bytes or strategy.bucket_bytes
    for index, (size_bytes, place) in enumerate(zip(made.sizes_bytes, made.places, strict=True)):
        filled += size_bytes
        if filled >= limit or index == len(made.sizes_bytes) - 1:
            closed.append((filled, place))
            filled, limit = 0, strategy.bucket_bytes
    return closed
