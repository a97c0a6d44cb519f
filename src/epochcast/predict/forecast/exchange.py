"""What ranks exchange: gradients in the order the backward pass makes them, gathered in buckets; and what they wait for
each other where their batches differ.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from epochcast.base.caching import remembered
from epochcast.describe.graph.op import Parameter, Phase
from epochcast.describe.graph.op_kinds import Embedding, Recurrent
from epochcast.describe.graph.trace import PHASES, Trace
from epochcast.hardware.cluster import Group
from epochcast.predict.comm.stragglers import Batch, waiting, waiting_seconds
from epochcast.predict.forecast.step_parts import StepParts

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
    """The gradients of some of the parameters. Places are among the kernels of forward and backward: a step of the
    user's own may update between them.
    """
    before = np.cumsum(trace.columns.phase == PHASES.index(Phase.UPDATE))
    made_by = trace.gradient_entries(parameters)
    return Gradients(tuple(size for _, size in made_by), tuple(entry - int(before[entry]) for entry, _ in made_by))


MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class Buckets:
    """Gradients travel `size_bytes` together, the first of them `first_bytes`."""

    size_bytes: int
    first_bytes: int

    def filled(self, summands: Gradients) -> tuple[tuple[int, int], ...]:
        """(bytes, place of the last gradient) of each bucket; a bucket closes when it has reached its size."""
        return _filled(summands, self)


@remembered(256)  # a step asks for slow, middling and fast kernels, and a plan for many offers
def _filled(summands: Gradients, buckets: Buckets) -> tuple[tuple[int, int], ...]:
    closed: list[tuple[int, int]] = []
    filled_bytes, limit_bytes = 0, buckets.first_bytes
    for index, (size_bytes, place) in enumerate(zip(summands.sizes_bytes, summands.places, strict=True)):
        filled_bytes += size_bytes
        if filled_bytes >= limit_bytes or index == len(summands.sizes_bytes) - 1:
            closed.append((filled_bytes, place))
            filled_bytes, limit_bytes = 0, buckets.size_bytes
    return tuple(closed)


# torch.nn.parallel.DistributedDataParallel: bucket_cap_mb=25, first bucket 1 MiB (_DEFAULT_FIRST_BUCKET_BYTES).
DDP_BUCKETS = Buckets(25 * MEBIBYTE, 1 * MEBIBYTE)
# Horovod: HOROVOD_FUSION_THRESHOLD defaults to 64 MiB.
HOROVOD_BUCKETS = Buckets(64 * MEBIBYTE, 64 * MEBIBYTE)


def waiting_for_the_slowest(parts: StepParts, trace: Trace, group: Group, runner: str) -> StepParts:
    """The parts of a step in which every rank waits for the slowest."""
    waits = waiting_seconds(
        parts.forward + parts.backward,
        group,
        waiting(runner),
        accumulate=trace.recipe.accumulate,
        batch=batch_of(trace),
    )
    return replace(parts, exposed_comm=parts.exposed_comm + waits)


def batch_of(trace: Trace) -> Batch:
    """How the batches of ranks differ, so that one has more to do than another."""
    lengths: LengthVariation = trace.template.derived.get("lengths", lambda: _lengths(trace))
    samples = 0 if lengths is LengthVariation.ALIKE else trace.batch
    return Batch(samples, lengths is LengthVariation.PADDED, trace.recipe.uneven)


class LengthVariation(Enum):
    """Whether the samples of a network differ in length: speech does, padded to the longest; pairs of texts (and what
    else goes through recurrent cells) do; other networks are fed sizes that are fixed or always padded alike.
    """

    ALIKE = "alike"
    RAGGED = "ragged"
    PADDED = "padded"


def _lengths(trace: Trace) -> LengthVariation:
    texts, is_recurrent = set(), False
    for op in trace.template.base:
        is_recurrent = is_recurrent or isinstance(op.kind, Recurrent)
        is_lookup = isinstance(op.kind, Embedding) and op.phase is Phase.FORWARD and op.weights
        if is_lookup and op.weights[0].shape[0] >= LEAST_WORDS and len(op.inputs[0].shape) == 2:
            texts.add(op.inputs[0].name)
    if is_recurrent:
        return LengthVariation.RAGGED if texts else LengthVariation.PADDED
    return LengthVariation.RAGGED if len(texts) == 2 else LengthVariation.ALIKE
