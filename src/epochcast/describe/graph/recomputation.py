"""What a compiled backward pass computes again instead of reading it (Inductor's min-cut partitioner, He and Yu 2023,
torch/_functorch/partitioners.py).

A forward kernel of elementwise ops, casts, norms and softmaxes writes what the backward pass reads of it. Where that
can be computed from something smaller that is in memory in any case (the activation of a feed-forward layer from the
result of its product, the softmax of a loss from the logits), the kernel writes nothing for the backward pass, whose
kernels read these sources:

    recomputed if   bytes written + bytes read by backward kernels  >  bytes of the sources that these read instead

Tensors with the same sources are decided together. What dropout drew, and what other forward kernels or library kernels
read, is in memory.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from epochcast.describe.graph.op import Op, Phase
from epochcast.describe.graph.op_kinds import Copy, Elementwise, Norm, Softmax, View
from epochcast.describe.graph.tensor import Tensor

Place = tuple[int, int]
"""(op, operand): where a kernel reads a source."""


@dataclass(frozen=True, slots=True)
class KernelGraph:
    """Ops in order, the kernel of each (a view has none), and the storage behind every view."""

    ops: Sequence[Op]
    kernel_of: Mapping[int, int]
    storage_of: Mapping[str, str]
    writes: Mapping[str, int]
    fusible: frozenset[int]
    """Kernels of the compiler's own: the others read what is in memory."""

    def storage(self, tensor: Tensor) -> str:
        """The storage behind a tensor."""
        return self.storage_of.get(tensor.name, tensor.name)


@dataclass(frozen=True, slots=True)
class Recomputation:
    """`storages` are not written for the backward pass; `sources` are what its kernels read instead."""

    storages: frozenset[str]
    sources: Mapping[int, tuple[Place, ...]]


def recomputation(graph: KernelGraph, kept: frozenset[str]) -> Recomputation:
    """What is computed again; `kept` are storages that are written in any case, or never."""
    users = _Users(graph)
    storages: set[str] = set()
    sources: dict[int, dict[str, Place]] = {}
    for (producer, needed), names in _candidates(graph, users, kept).items():
        saved_bytes = sum(users.bytes_of[name] * (1 + len(users.backward[name])) for name in names)
        readers = {reader for name in names for reader in users.backward[name]}
        added = {reader: [s for s in needed if s not in users.read_by(reader)] for reader in readers}
        if saved_bytes <= sum(users.bytes_of[s] for each in added.values() for s in each):
            continue
        storages.update(names)
        for reader, each in added.items():
            sources.setdefault(reader, {}).update({s: users.place_of[producer, s] for s in each})
    return Recomputation(frozenset(storages), {k: tuple(v.values()) for k, v in sources.items()})


class _Users:
    """Who writes and reads each storage, by kernel."""

    def __init__(self, graph: KernelGraph) -> None:
        self.graph = graph
        self.written_by: dict[str, int] = {}
        self.made_by: dict[str, int] = {}
        self.bytes_of: dict[str, int] = {}
        self.backward: dict[str, set[int]] = {}
        self.forward: dict[str, set[int]] = {}
        self.place_of: dict[tuple[int, str], Place] = {}
        self._read: dict[int, set[str]] = {}
        for place, op in enumerate(graph.ops):
            if isinstance(op.kind, View):
                continue
            kernel = graph.kernel_of[place]
            for index, tensor in enumerate((*op.inputs, *op.weights)):
                name = graph.storage(tensor)
                self.bytes_of.setdefault(name, tensor.bytes)
                self.place_of.setdefault((kernel, name), (place, index))
                self._read.setdefault(kernel, set()).add(name)
                by_phase = self.forward if op.phase is Phase.FORWARD else self.backward
                by_phase.setdefault(name, set()).add(kernel)
            for tensor in op.outputs:
                name = graph.storage(tensor)
                self.bytes_of[name] = tensor.bytes
                self.written_by[name], self.made_by[name] = kernel, place

    def read_by(self, kernel: int) -> set[str]:
        """Storages that a kernel reads as it is."""
        return self._read.get(kernel, set())


def _candidates(graph: KernelGraph, users: _Users, kept: frozenset[str]) -> dict[tuple[int, frozenset[str]], list[str]]:
    """Storages that could be computed again, by their kernel and their sources."""
    inside = {name for name in users.written_by if _is_saved_alone(graph, users, name, kept)}
    # In the order in which they are written, so that those of earlier storages are there.
    sources: dict[str, frozenset[str]] = {}
    for name in sorted((kept | inside) & users.written_by.keys(), key=lambda name: users.made_by[name]):
        sources[name] = _sources(graph, users, name, sources)
    candidates: dict[tuple[int, frozenset[str]], list[str]] = {}
    for name in sorted(inside):
        if sources[name]:
            candidates.setdefault((users.written_by[name], sources[name]), []).append(name)
    return candidates


def _is_saved_alone(graph: KernelGraph, users: _Users, name: str, kept: frozenset[str]) -> bool:
    """Whether a forward kernel of the compiler's own writes it for compiled kernels of the backward pass alone."""
    kernel, op = users.written_by[name], graph.ops[users.made_by[name]]
    readers = users.backward.get(name, set())
    return (
        name not in kept
        and op.phase is Phase.FORWARD
        and kernel in graph.fusible
        and graph.writes.get(name, 0) == 1
        and bool(readers)
        and readers <= graph.fusible
        and users.forward.get(name, set()) <= {kernel}
    )


def _sources(graph: KernelGraph, users: _Users, name: str, earlier: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """What is in memory of which it is computed, `earlier` for storages of its kernel that need not be; empty where an
    op on the way cannot run again, or works in place.
    """
    kernel, op = users.written_by[name], graph.ops[users.made_by[name]]
    if not _runs_again(op):
        return frozenset()
    sources: set[str] = set()
    for tensor in _operands(op):
        source = graph.storage(tensor)
        if users.written_by.get(source) == kernel and source in earlier:
            if not earlier[source]:
                return frozenset()
            sources |= earlier[source]
        elif source == name or graph.writes.get(source, 0) > 1:
            return frozenset()
        else:
            sources.add(source)
    return frozenset(sources)


def _operands(op: Op) -> Iterator[Tensor]:
    yield from op.inputs
    yield from op.weights


def _runs_again(op: Op) -> bool:
    """Reductions keep their few results, so that norms and softmaxes are elementwise the second time."""
    match op.kind:
        case Elementwise(function):
            return function != "dropout"
        case Norm(style="batch"):
            return False
        case Copy() | Norm() | Softmax():
            return True
        case _:
            return False
