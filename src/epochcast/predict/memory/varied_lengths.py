"""Batches of different lengths through one allocator: what their blocks leave behind for the longest one.

Every batch has the same storages at other sizes. A size is at most quadratic in the length (scores of attention), so
three lengths give it at any other:

    bytes(ℓ) = Σᵢ bytes(ℓᵢ) · Πⱼ≠ᵢ (ℓ − ℓⱼ)/(ℓᵢ − ℓⱼ)          (Lagrange)

The allocator keeps the segments of batches that were shorter. A longer one cannot use those that are too small for its
requests, so more is reserved than the longest batch alone would need.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from epochcast.describe.graph.trace import Trace
from epochcast.predict.memory.lifetimes import Integers, Lifetimes


@dataclass(frozen=True)
class VariedLengths:
    """A step at three lengths, the longest last, and the lengths of the batches that are replayed, in their order.
    `flushed_every`: steps between two calls of torch.cuda.empty_cache.
    """

    nodes: tuple[tuple[int, Trace], ...]
    drawn: tuple[int, ...]
    flushed_every: int | None = None

    def changed(self, change: Callable[[Trace], Trace]) -> "VariedLengths":
        """With every step changed in the same way."""
        return replace(self, nodes=tuple((length, change(trace)) for length, trace in self.nodes))


@dataclass(frozen=True)
class VariedStorages:
    """The same with the storages of each step instead of the step."""

    nodes: tuple[tuple[int, Lifetimes], ...]
    drawn: tuple[int, ...]
    flushed_every: int | None = None

    def sizes(self, size_bytes: Callable[[Lifetimes], Integers]) -> Iterator[Integers]:
        """The bytes of all storages for each batch, where `size_bytes` has them for one of the three lengths."""
        lengths = [length for length, _ in self.nodes]
        columns = np.stack([size_bytes(lives).astype(np.float64) for _, lives in self.nodes])
        for length in self.drawn:
            yield np.maximum(0, np.rint(np.array(_weights(length, lengths)) @ columns)).astype(np.int64)


def _weights(length: int, nodes: Sequence[int]) -> list[float]:
    return [float(np.prod([(length - other) / (node - other) for other in nodes if other != node])) for node in nodes]
