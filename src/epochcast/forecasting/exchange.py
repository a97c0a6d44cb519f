"""Gradients between data-parallel ranks: in buckets, in the order the backward pass makes them, on a second stream.

A bucket may leave when its last gradient is ready and the wire is free (Li et al. 2020, "PyTorch Distributed"); Horovod
looks for ready ones every cycle. What is still travelling when the backward pass ends is exposed; the rest was hidden
behind it, and slowed it down where both need the same memory (`comm.waiting`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from epochcast.caching import remembered
from epochcast.comm.allreduce import all_reduce_seconds
from epochcast.comm.waiting import ALIKE, Batch, Waiting, contention_fraction, waiting, waiting_seconds
from epochcast.forecasting.placement import Placement, Strategy
from epochcast.forecasting.streams import Seconds
from epochcast.graph.backward import grad
from epochcast.graph.kinds import Embedding, Recurrent
from epochcast.graph.op import Parameter, Phase
from epochcast.graph.trace import Trace
from epochcast.hardware.cluster import Group
from epochcast.hardware.device import Device

# Tables of fewer rows are no vocabulary: BERT's two token types, positions, users and items of small recommenders.
LEAST_WORDS = 5000


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
    read: Gradients = trace.template.derived.get("gradients", lambda: gradients_of(trace, trace.parameters))
    return read


def gradients_of(trace: Trace, parameters: Iterable[Parameter]) -> Gradients:
    """The gradients of some of the parameters."""
    trained = {grad(p.tensor).name for p in parameters if p.trainable}
    made: dict[str, tuple[int, int]] = {}
    entries = trace.entries.tolist()  # a view is ready with the kernel before it
    for entry, op in zip(entries, trace.template.base, strict=True):
        if op.phase is Phase.BACKWARD:
            made.update({t.name: (entry, t.bytes) for t in op.outputs if t.name in trained})
    ordered = sorted(made.values(), key=lambda pair: pair[0])
    return Gradients(tuple(size for _, size in ordered), tuple(place for place, _ in ordered))


@dataclass(frozen=True, slots=True)
class Exchange:
    """What the exchange of one step costs: `wire_seconds` of collectives, of which `exposed_seconds` are left behind
    the backward pass and the others slow kernels down by `slowed_seconds`; then everybody waits for the slowest rank.
    """

    wire_seconds: float
    exposed_seconds: float
    slowed_seconds: float
    waiting_seconds: float

    @property
    def seconds(self) -> float:
        """What it adds to the step."""
        return self.exposed_seconds + self.slowed_seconds + self.waiting_seconds


def exchange(trace: Trace, ends: Seconds, backward_end_seconds: float, placement: Placement) -> Exchange:
    """The exchange of a step whose kernels end at `ends`."""
    if placement.gpus == 1:
        return Exchange(0.0, 0.0, 0.0, 0.0)
    made, strategy = gradients(trace), placement.rule
    if strategy.bucket_bytes is None:
        ready = [(float(made.total_bytes), backward_end_seconds)]
    else:
        ready = [(float(size_bytes), float(ends[place])) for size_bytes, place in buckets(made, strategy)]
    return exchange_ready(
        ready,
        backward_end_seconds,
        placement.group(),
        placement.device,
        strategy,
        accumulate=trace.recipe.accumulate,
        batch=batch_of(trace),
    )


def exchange_ready(
    ready: Sequence[tuple[float, float]],
    backward_end_seconds: float,
    group: Group,
    device: Device,
    strategy: Strategy,
    *,
    accumulate: int = 1,
    batch: Batch = ALIKE,
    known: Waiting | None = None,
) -> Exchange:
    """Two streams: buckets of so many bytes are ready at so many seconds; collectives run one after another."""
    known = known or waiting(strategy.runner)
    wire_seconds = free_seconds = 0.0
    for size_bytes, ready_seconds in ready:
        bucket_seconds = all_reduce_seconds(size_bytes, group, strategy.algorithm)
        begin_seconds = max(free_seconds, ready_seconds) + known.bucket_seconds + strategy.cycle_seconds
        free_seconds = begin_seconds + bucket_seconds
        wire_seconds += bucket_seconds
    exposed = max(0.0, free_seconds - backward_end_seconds)
    slowed = max(0.0, wire_seconds - exposed) * contention_fraction(group, device, known)
    computing_seconds = accumulate * backward_end_seconds
    waits = waiting_seconds(computing_seconds, group, known, accumulate=accumulate, batch=batch)
    return Exchange(wire_seconds, exposed, slowed, waits)


def exposed_seconds(trace: Trace, ends: Seconds, backward_end_seconds: float, placement: Placement) -> float:
    """Seconds that exchanging gradients adds to a step."""
    return exchange(trace, ends, backward_end_seconds, placement).seconds


def batch_of(trace: Trace) -> Batch:
    """How the batches of ranks differ, so that one has more to do than another."""
    lengths: Lengths = trace.template.derived.get("lengths", lambda: _lengths(trace))
    samples = 0 if lengths is Lengths.ALIKE else trace.batch
    return Batch(samples, lengths is Lengths.PADDED, trace.recipe.uneven)


class Lengths(Enum):
    """Whether the samples of a network differ in length: speech does, padded to the longest; pairs of texts (and what
    else goes through recurrent cells) do; other networks are fed sizes that are fixed or always padded alike.
    """

    ALIKE = "alike"
    RAGGED = "ragged"
    PADDED = "padded"


def _lengths(trace: Trace) -> Lengths:
    texts, is_recurrent = set(), False
    for op in trace.template.base:
        is_recurrent = is_recurrent or isinstance(op.kind, Recurrent)
        is_lookup = isinstance(op.kind, Embedding) and op.phase is Phase.FORWARD and op.weights
        if is_lookup and op.weights[0].shape[0] >= LEAST_WORDS and len(op.inputs[0].shape) == 2:
            texts.add(op.inputs[0].name)
    if is_recurrent:
        return Lengths.RAGGED if texts else Lengths.PADDED
    return Lengths.RAGGED if len(texts) == 2 else Lengths.ALIKE


@remembered(256)  # a step asks for slow, middling and fast kernels, and a plan for many offers
def buckets(made: Gradients, strategy: Strategy) -> tuple[tuple[int, int], ...]:
    """(bytes, place of the last gradient) of each bucket; a bucket closes when it has reached its size."""
    assert strategy.bucket_bytes is not None
    closed: list[tuple[int, int]] = []
    filled, limit = 0, strategy.first_bucket_bytes or strategy.bucket_bytes
    for index, (size_bytes, place) in enumerate(zip(made.sizes_bytes, made.places, strict=True)):
        filled += size_bytes
        if filled >= limit or index == len(made.sizes_bytes) - 1:
            closed.append((filled, place))
            filled, limit = 0, strategy.bucket_bytes
    return tuple(closed)
