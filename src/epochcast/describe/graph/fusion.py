"""What a compiler makes of a step: which ops become one kernel, and which tensors are then never in memory.

The rules are those of torch.compile's Inductor (torch/_inductor/scheduler.py), as far as they decide time and memory:

- Chains of elementwise ops, casts and copies become one kernel. Normalisations, softmax and other reductions belong to
  it with what comes before and behind them, as long as all run over the same elements.
- Products, convolutions, attention and recurrent layers stay library kernels: nothing is fused into them.
- Pooling windows and lookups begin a kernel: what they read is in memory.
- Forward and backward are compiled apart: what backward reads is written by forward.
- A tensor that only its own kernel uses is neither written nor read. A dropout mask is drawn again in backward.
- Batch normalisation of a forward pass alone (inference) uses stored statistics and is elementwise.

XLA fuses the same here. `vendor` is what submissions to benchmarks do: elementwise ops and copies beside any other
kernel are part of it and cost nothing.

Kernels run in the order of the step. A kernel runs where its last op was; an op whose other operands are ready earlier
may move up to the kernel it joins. So no kernel ever waits for itself.

- What backward can compute again from less is neither written by forward nor read (`recomputation`).
- Ops of layers that are not compiled (`eager`: a loss outside of torch.compile) run one by one, and what they read and
  write is in memory.

Limit: memory is an upper limit, since it counts what is computed again as saved.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from epochcast.describe.graph.fusion_extent import FusionExtent, begins_kernel, extent_of
from epochcast.describe.graph.kernels import own_storages
from epochcast.describe.graph.op import Op, Phase
from epochcast.describe.graph.op_kinds import (
    Copy,
    Elementwise,
    Norm,
    View,
)
from epochcast.describe.graph.op_work import OpWork
from epochcast.describe.graph.rebatch import Growth, Numbers, Template, quadratic
from epochcast.describe.graph.recomputation import KernelGraph, Recomputation, recomputation
from epochcast.describe.graph.tensor import Tensor

Places = NDArray[np.int64]

# torch/_inductor/config.py, max_fusion_size: nodes of one kernel.
MOST_OPS = 64
_FLOPS, _READ, _WRITTEN, _LAUNCHES = (
    OpWork._fields.index(n) for n in ("flops", "read_bytes", "written_bytes", "launches")
)


@dataclass(frozen=True, eq=False)
class Fusion:
    """The kernels of a compiled step, in the order they run.

    `places` is the op at whose place each runs, `leaders` the op whose class it has, `kernel_of` the kernel of every op
    (a view has that of the op before it, -1 where there is none). `unwritten` are storages that never exist. `spared`
    are the coefficients of n⁰, n¹, n² of the bytes that are not read and not written, by kernel.
    """

    places: Places
    leaders: Places
    kernel_of: Places
    members: tuple[tuple[int, ...], ...]
    unwritten: frozenset[str]
    spared: Numbers

    def work(self, template: Template, batch: int) -> Numbers:
        """The `OpWork` of every kernel: sums of its ops without what is spared; shape and launches of its leader."""
        of_ops = template.work(batch)
        numbers: Numbers = of_ops[self.leaders]
        runs = np.concatenate([np.array(m, dtype=np.int64) for m in self.members]) if self.members else self.places
        kernel = self.kernel_of[runs]
        for column in (_FLOPS, _READ, _WRITTEN):
            numbers[:, column] = np.bincount(kernel, of_ops[runs, column], minlength=len(self.places))
        spared = self.spared[0] + batch * (self.spared[1] + batch * self.spared[2])
        numbers[:, _READ : _WRITTEN + 1] = np.maximum(0.0, numbers[:, _READ : _WRITTEN + 1] - spared)
        return numbers


def fused(
    template: Template,
    parameters: Iterable[str],
    *,
    inference: bool,
    epilogues: bool,
    eager: Container[str] = (),
    part_of: Callable[[Op], str] | None = None,
) -> Fusion:
    """The kernels of a step. `inference`: its batch normalisations use stored statistics; `epilogues`: elementwise ops
    beside another kernel are part of it; `eager`: layers that are not compiled.

    `part_of` names the part of the network that an op belongs to, where only ops of one part become one kernel. What a
    part makes for itself alone is then worked out again in backward, and never in memory (`kernels`).
    """
    walk = _FusionWalk(template.base, inference, eager, part_of)
    groups = sorted(walk.groups, key=lambda group: group.place)
    unwritten = _unwritten(walk, frozenset(parameters))
    if part_of is not None:
        fused_parts = [part_of(op) if is_fused else "" for op, is_fused in walk.fusible()]
        unwritten |= own_storages(walk.ops, fused_parts, walk.storage) - frozenset(parameters)
    if epilogues:
        groups = _absorbed(groups, walk)
    return _Result(template, walk, groups, unwritten).fusion()


@dataclass(slots=True, eq=False)
class _Group:
    """A kernel that grows; `number` tells it from others."""

    number: int
    place: int
    members: list[int]
    elements: int
    rows: int = 0
    can_grow: bool = True
    is_open: bool = True
    touched: set[str] = field(default_factory=set)


class _FusionWalk:
    """One walk over the ops in order: every op joins the kernels of its operands or begins its own."""

    def __init__(
        self,
        ops: Sequence[Op],
        inference: bool,
        eager: Container[str],
        part_of: Callable[[Op], str] | None = None,
    ) -> None:
        self.ops, self.inference, self.eager, self.part_of = ops, inference, eager, part_of
        self.root: dict[str, str] = {}
        self.groups: list[_Group] = []
        self.group_of: dict[int, _Group] = {}
        self.writer: dict[str, _Group] = {}
        self.touching: dict[str, list[_Group]] = {}
        self.writes: dict[str, int] = {}
        self._name_storages()
        for place, op in enumerate(ops):
            if not isinstance(op.kind, View):
                self._see(place, op)

    def _name_storages(self) -> None:
        for op in self.ops:
            for tensor in op.outputs:
                if isinstance(op.kind, View) and op.inputs:
                    self.root[tensor.name] = self.storage(op.inputs[0])
                else:
                    name = self.storage(tensor)
                    self.writes[name] = self.writes.get(name, 0) + 1

    def fusible(self) -> Iterable[tuple[Op, bool]]:
        """Every op, and whether a kernel of the compiler's own runs it."""
        return ((op, place in self.group_of and self.group_of[place].can_grow) for place, op in enumerate(self.ops))

    def storage(self, tensor: Tensor) -> str:
        """The storage behind a tensor."""
        return self.root.get(tensor.name, tensor.name)

    def _see(self, place: int, op: Op) -> None:
        extent = None if op.layer in self.eager else extent_of(op, self.inference)
        group = self._joined(place, op, extent) if extent is not None else None
        if group is None:
            group = _Group(place, place, [], extent.elements if extent else 0, can_grow=extent is not None)
            self.groups.append(group)
        if extent is not None and extent.rows:
            group.rows = extent.rows
        group.members.append(place)
        self.group_of[place] = group
        self._close(op, group)
        for tensor in op.outputs:
            self.writer[self.storage(tensor)] = group

    def _joined(self, place: int, op: Op, extent: FusionExtent) -> _Group | None:
        """The kernel that an op joins: those of its operands in one, or the last of them."""
        if begins_kernel(op.kind):
            return None
        before = list(dict.fromkeys(self._writers(op)))
        fitting = [group for group in before if self._fits(group, op, extent)]
        sinking = [group for group in fitting if group.is_open]
        if sinking:
            return self._merged(sinking, place, extent)
        for group in sorted(fitting, key=lambda each: -each.place):
            if self._can_move_up(op, group, before):
                return group
        return None

    def _writers(self, op: Op) -> Iterable[_Group]:
        for tensor in (*op.inputs, *op.weights):
            if (group := self.writer.get(self.storage(tensor))) is not None:
                yield group

    def _fits(self, group: _Group, op: Op, extent: FusionExtent) -> bool:
        first = self.ops[group.members[0]]
        if not group.can_grow or len(group.members) >= MOST_OPS or first.phase is not op.phase:
            return False
        if self.part_of is not None and (not self.part_of(op) or self.part_of(first) != self.part_of(op)):
            return False
        if extent.elements != group.elements:
            return extent.elements == group.rows and not extent.rows
        return not (extent.rows and group.rows) or (extent.rows == group.rows and not extent.is_wide)

    def _can_move_up(self, op: Op, group: _Group, before: Iterable[_Group]) -> bool:
        """Whether the op may run with a kernel that others have read since: all else it reads is ready by then, and it
        overwrites nothing.
        """
        overwrites = any(self.writes[self.storage(t)] > 1 for t in op.outputs)
        reads_changing = any(self.writes.get(self.storage(t), 0) > 1 for t in (*op.inputs, *op.weights))
        return not overwrites and not reads_changing and all(g is group or g.place < group.place for g in before)

    def _merged(self, groups: list[_Group], place: int, extent: FusionExtent) -> _Group:
        """One kernel of several that no other op has read; those that would need two reductions stay apart."""
        merged = groups[-1]
        for group in groups[:-1]:
            size = len(group.members) + len(merged.members)
            agrees = group.elements == merged.elements and (
                not group.rows or not merged.rows or group.rows == merged.rows
            )
            if not agrees or size >= MOST_OPS or (extent.is_wide and group.rows):
                continue
            merged.members += group.members
            merged.rows = merged.rows or group.rows
            merged.touched |= group.touched
            for member in group.members:
                self.group_of[member] = merged
            for name in group.touched:
                self.touching[name].append(merged)
                if self.writer.get(name) is group:
                    self.writer[name] = merged
            self.groups.remove(group)
        merged.place = place
        return merged

    def _close(self, op: Op, reader: _Group) -> None:
        """Other kernels whose result is read, or whose operand is overwritten, must have run by now."""
        for tensor in (*op.inputs, *op.weights):
            name = self.storage(tensor)
            writer = self.writer.get(name)
            if writer is not None and writer is not reader:
                writer.is_open = False
            self._touch(name, reader)
        for tensor in op.outputs:
            name = self.storage(tensor)
            for group in self.touching.get(name, ()):
                if group is not reader:
                    group.is_open = False
            self._touch(name, reader)

    def _touch(self, name: str, group: _Group) -> None:
        if name not in group.touched:
            group.touched.add(name)
            self.touching.setdefault(name, []).append(group)


def _is_pointwise(op: Op) -> bool:
    return isinstance(op.kind, Elementwise | Copy) and op.phase is not Phase.UPDATE


def _unwritten(walk: _FusionWalk, parameters: frozenset[str]) -> frozenset[str]:
    """Storages that one kernel writes and no other reads, and masks. What nobody reads is a result of the step; what is
    read before it is written (an optimizer's state, a master copy) was there before the step and stays.
    """
    users: dict[str, set[int]] = {}
    written: set[str] = set()
    read: set[str] = set()
    results = set(parameters)
    masks: set[str] = set()
    for place, op in enumerate(walk.ops):
        if isinstance(op.kind, View):
            continue
        storages = [walk.storage(tensor) for tensor in op.outputs]
        operands = [walk.storage(tensor) for tensor in (*op.inputs, *op.weights)]
        results.update(name for name in operands if name not in written)
        read.update(operands)
        written.update(storages)
        results.update(walk.storage(t) for t in op.outputs if t.relation.gradient_of in parameters)
        if op.kind == Elementwise("dropout") and not op.is_gradient:
            masks.update(storages[1:])
        for name in (*storages, *operands):
            users.setdefault(name, set()).add(walk.group_of[place].number)
    alone = {name for name in written & read if len(users[name]) == 1}
    return frozenset((alone | masks) - results)


def _absorbed(groups: list[_Group], walk: _FusionWalk) -> list[_Group]:
    """Kernels of elementwise ops and copies alone become part of the one whose result they read, else of the one that
    reads theirs; where there is none, they stay.
    """
    absorbing = {g.number for g in groups if not all(_is_pointwise(walk.ops[m]) for m in g.members)}
    readers: dict[str, list[_Group]] = {}
    writers: dict[str, list[_Group]] = {}
    for group in groups:
        for member in group.members:
            op = walk.ops[member]
            for tensor in (*op.inputs, *op.weights):
                readers.setdefault(walk.storage(tensor), []).append(group)
            for tensor in op.outputs:
                writers.setdefault(walk.storage(tensor), []).append(group)
    remaining = []
    for group in groups:
        if group.number in absorbing:
            remaining.append(group)
            continue
        ops = [walk.ops[m] for m in group.members]
        sources = [w for op in ops for t in (*op.inputs, *op.weights) for w in writers.get(walk.storage(t), ())]
        targets = [r for op in ops for t in op.outputs for r in readers.get(walk.storage(t), ())]
        phase = ops[0].phase
        beside = [g for g in (*sources, *targets) if g.number in absorbing and walk.ops[g.members[0]].phase is phase]
        if not beside:
            remaining.append(group)
            continue
        for member in group.members:
            walk.group_of[member] = beside[0]
    return remaining


class _Result:
    """From groups of ops to the numbers of a `Fusion`."""

    def __init__(self, template: Template, walk: _FusionWalk, groups: list[_Group], unwritten: frozenset[str]) -> None:
        self.template, self.walk, self.groups, self.unwritten = template, walk, groups, unwritten
        self.index = {group.number: number for number, group in enumerate(groups)}
        self.again = _again(walk, unwritten)

    def fusion(self) -> Fusion:
        count = len(self.template.base)
        kernel_of = np.full(count, -1, dtype=np.int64)
        last = -1
        for place in range(count):
            group = self.walk.group_of.get(place)
            last = last if group is None else self.index[group.number]
            kernel_of[place] = last
        members = tuple(tuple(sorted(group.members)) for group in self.groups)
        return Fusion(
            np.array([group.place for group in self.groups], dtype=np.int64),
            np.array([self._leader(group) for group in self.groups], dtype=np.int64),
            kernel_of,
            members,
            self.unwritten,
            self._spared(),
        )

    def _leader(self, group: _Group) -> int:
        """The op whose class and shape the kernel has: its reduction, pool or lookup, else its largest op."""

        def rank(place: int) -> tuple[bool, bool, int]:
            op = self.template.base[place]
            is_plain = _is_pointwise(op) or (self.walk.inference and op.kind == Norm("batch"))
            largest = max((t.bytes for t in (*op.inputs, *op.outputs)), default=0)
            return not is_plain, isinstance(op.kind, Elementwise), largest

        return max(group.members, key=rank)

    def _spared(self) -> Numbers:
        """Coefficients of the bytes that a kernel neither reads nor writes though its ops do, through n = 1, 2, 3. A
        pass of the update moves all its bytes: tensors that are updated in turn share the storage of a temporary.
        """
        values = np.zeros((3, len(self.groups), 2))
        unwritten = self.unwritten | self.again.storages
        for number, group in enumerate(self.groups):
            if self.template.base[group.members[0]].phase is Phase.UPDATE:
                continue
            values[:, number, 0] -= self._source_bytes(group)
            seen: set[str] = set()
            written: set[str] = set()
            for place in sorted(group.members):
                op, growth = self.template.base[place], self.template.growths[place]
                into, out, weights = growth or ((), (), ())
                for tensors, growths in ((op.inputs, into), (op.weights, weights)):
                    for i, tensor in enumerate(tensors):
                        name = self.walk.storage(tensor)
                        if name in unwritten or name in written or tensor.name in seen:
                            values[:, number, 0] += _bytes(tensor, growths[i] if growths else None)
                        seen.add(tensor.name)
                for i, tensor in enumerate(op.outputs):
                    name = self.walk.storage(tensor)
                    if name in unwritten or name in written:
                        values[:, number, 1] += _bytes(tensor, out[i] if out else None)
                    written.add(name)
        return quadratic(*values)

    def _source_bytes(self, group: _Group) -> NDArray[np.float64]:
        """What a kernel reads to compute again what forward did not save."""
        total = np.zeros(3)
        for place, index in self.again.sources.get(group.number, ()):
            op, growth = self.template.base[place], self.template.growths[place]
            tensors = (*op.inputs, *op.weights)
            growths = (*growth[0], *growth[2]) if growth else (None,) * len(tensors)
            total += _bytes(tensors[index], growths[index])
        return total


def _again(walk: _FusionWalk, unwritten: frozenset[str]) -> Recomputation:
    """Of the kernels of a walk; storages by their number."""
    kernels = {place: group.number for place, group in walk.group_of.items()}
    fusible = frozenset(group.number for group in walk.groups if group.can_grow)
    return recomputation(KernelGraph(walk.ops, kernels, walk.root, walk.writes, fusible), unwritten)


def _bytes(tensor: Tensor, growth: Growth) -> NDArray[np.float64]:
    """At the batches 1, 2 and 3."""
    if growth is None:
        return np.full(3, float(tensor.bytes))
    return np.array([prod(a + b * n for a, b in growth) * tensor.dtype.bytes for n in (1, 2, 3)], dtype=float)
