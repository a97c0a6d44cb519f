"""When every storage of a training step is allocated and freed, with its bytes, affine in the batch.

    bytes(n) = fixed + n·per_sample        of a storage at batch n (every dimension is affine in the batch)

A storage is allocated ("born") by the first op that writes it and freed after the last op that reads or writes it,
which for a saved activation is in the backward pass. What exists before the step (parameters, optimizer state, buffers)
stays to the end, and so do gradients and inputs. Views share the storage of their source. Kernels also save small
tensors in addition to their results (`saved`): statistics of a norm, the log-sum-exp of attention, a recurrent layer's
gates.

What a compiled step never writes (`describe.graph.fusion`) has no storage. All others live as long as in eager mode,
whose order the ops are in.

Limit: a Python variable that holds a tensor after its last use is not seen.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import partial

import numpy as np
from numpy.typing import NDArray

from epochcast.base.bounds import check_step_bytes
from epochcast.base.caching import Cache, Derived, derived_property
from epochcast.base.garbage import without_collecting
from epochcast.describe.graph.op import Op, Phase
from epochcast.describe.graph.op_kinds import Elementwise, Norm, Pool, View
from epochcast.describe.graph.rebatch import Growth
from epochcast.describe.graph.tensor import UNRELATED, Relation, Tensor
from epochcast.describe.graph.trace import LARGE_BATCH, SMALL_BATCH, Trace

Integers = NDArray[np.int64]


class Role(IntEnum):
    """What a storage holds."""

    PARAMETERS = 0
    GRADIENTS = 1
    OPTIMIZER_STATE = 2
    ACTIVATIONS = 3
    TEMPORARIES = 4
    INPUTS = 5
    AUTOCAST_COPIES = 6
    BUFFERS = 7
    WORKSPACE = 8
    BUCKETS = 9
    GATHERED = 10

    @property
    def label(self) -> str:
        """The key of a breakdown."""
        return self.name.lower()


BEFORE = -1
"""The place of storages that exist before the first op."""


@dataclass(frozen=True)
class Lifetimes:
    """One entry per storage: bytes at batch n, the places of the ops that write it first and use it last, what it
    holds.

    A place is the index of an op; BEFORE is before the first op; `ops` (their number) means that it is never freed.
    Births are those of a job's first step, in which gradients and optimizer state are allocated. `keeps_gradients`:
    later steps begin with the gradients of the one before. `update` is the place of the first op that updates
    parameters. `rank_own` are the storages that a rank holds in addition to its share of the others; `gradient_copies`
    those that hold a gradient in another format, with the parameter it is of.
    """

    names: tuple[str, ...]
    roles: Integers
    fixed_bytes: Integers
    sample_bytes: Integers
    born: Integers
    last: Integers
    ops: int
    keeps_gradients: bool
    update: int
    rank_own: frozenset[str] = frozenset()
    gradient_copies: Mapping[str, str] = field(default_factory=dict)
    derived: Derived = field(init=False, compare=False, repr=False, default_factory=partial(Cache, 64))
    replays: Derived = field(init=False, compare=False, repr=False, default_factory=partial(Cache, 256))
    """Results of replays, by sizes and limit: devices of one generation have the same."""
    peaks: Derived = field(init=False, compare=False, repr=False, default_factory=partial(Cache, 256))
    """What is alive at the peak, by batch and share."""

    def __len__(self) -> int:
        return len(self.names)

    def joined(
        self,
        names: tuple[str, ...],
        roles: Integers,
        fixed_bytes: Integers,
        sample_bytes: Integers,
        born: Integers,
        last: Integers,
    ) -> "Lifetimes":
        """The lifetimes with more storages appended."""
        return replace(
            self,
            names=(*self.names, *names),
            roles=np.concatenate([self.roles, roles]),
            fixed_bytes=np.concatenate([self.fixed_bytes, fixed_bytes]),
            sample_bytes=np.concatenate([self.sample_bytes, sample_bytes]),
            born=np.concatenate([self.born, born]),
            last=np.concatenate([self.last, last]),
        )

    def bytes_at(self, batch: int) -> Integers:
        """Bytes of every storage at a batch size."""
        fixed, per_sample = self._totals
        check_step_bytes(fixed + batch * per_sample, "the step")
        size_bytes: Integers = np.maximum(0, self.fixed_bytes + batch * self.sample_bytes)
        return size_bytes

    @derived_property
    def _totals(self) -> tuple[int, int]:
        """Bytes of all storages: fixed ones, and those of a sample."""
        return int(self.fixed_bytes.sum()), int(self.sample_bytes.sum())

    def total_bytes(self, role: Role, batch: int = 1) -> int:
        """Bytes of all storages of a role, whether or not they live at one time."""
        return int(self.bytes_at(batch)[self.roles == role].sum())

    @derived_property
    def kept(self) -> NDArray[np.bool_]:
        """Which storages of the first step still exist when the next step begins. Gradients that are added to from the
        first on (Megatron-LM's main gradients) are one buffer for the whole job.
        """
        is_gradient = self.roles == Role.GRADIENTS
        stays = is_gradient if self.keeps_gradients else is_gradient & (self.born == BEFORE)
        mask: NDArray[np.bool_] = (self.roles == Role.OPTIMIZER_STATE) | stays
        return mask

    @derived_property
    def of_update(self) -> NDArray[np.bool_]:
        """Which storages are temporaries of the update: as large as the parameters it updates."""
        mask: NDArray[np.bool_] = (self.roles == Role.TEMPORARIES) & (self.born >= self.update)
        return mask

    @derived_property
    def own_gradients(self) -> NDArray[np.bool_]:
        """Which storages are gradients as the backward pass makes them, kept until the update beside their sums."""
        is_copy = np.array([name in self.gradient_copies for name in self.names], dtype=np.bool_)
        mask: NDArray[np.bool_] = is_copy & (self.born < self.update) & (self.last >= self.update)
        return mask

    def live_bytes(self, size_bytes: Integers) -> Integers:
        """(roles, ops + 1): bytes alive before the first op of a later step and during each, by role, where the
        storages have these sizes.
        """
        changes = np.zeros((len(Role), self.ops + 2), dtype=np.int64)
        np.add.at(changes, (self.roles, np.where(self.kept, BEFORE, self.born) + 1), size_bytes)
        np.add.at(changes, (self.roles, np.minimum(self.last + 2, self.ops + 1)), -size_bytes)
        live: Integers = np.cumsum(changes[:, : self.ops + 1], axis=1)
        return live

    @derived_property
    def history(self) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
        """The first two steps of a job as an allocator sees them: the storages before the first step, and for each step
        births (i) and deaths (~i). Within an op, results are allocated before its last inputs are freed.
        """
        is_input = self.roles == Role.INPUTS
        before = np.flatnonzero((self.born == BEFORE) & ~is_input)
        inputs, mortal = np.flatnonzero(is_input), np.flatnonzero(self.last < self.ops)

        def step(born_storages: Integers) -> list[int]:
            places = np.concatenate([2 * self.born[born_storages], 2 * self.last[mortal] + 1])
            codes: list[int] = np.concatenate([born_storages, ~mortal])[np.argsort(places, kind="stable")].tolist()
            return codes

        first = step(np.flatnonzero((self.born > BEFORE) | is_input))
        is_stale = (self.roles == Role.GRADIENTS) & ~self.kept & (self.last >= self.ops)
        stale = np.concatenate([inputs, np.flatnonzero(is_stale)])
        second = [*(~stale).tolist(), *step(np.flatnonzero(((self.born > BEFORE) & ~self.kept) | is_input))]
        return tuple(before.tolist()), (tuple(first), tuple(second))


@without_collecting()
def lifetimes(trace: Trace, *, set_to_none: bool = True, sums_in_place: bool = True) -> Lifetimes:
    """The lifetimes of a trace's storages, at any batch; cached on the template. Gradients that are zeroed instead of
    freed (`set_to_none` false), or summed over several passes, exist from the beginning of later steps.

    Autograd adds a second gradient of a value into the first (torch/csrc/autograd/input_buffer.cpp). It makes a new
    sum instead (`sums_in_place` false) before PyTorch 2.0, and still does under a dispatch mode such as MemTracker's.
    """
    keeps_gradients = not set_to_none or trace.recipe.accumulate > 1
    lives: Lifetimes = trace.template.derived.get(
        ("lifetimes", keeps_gradients, sums_in_place),
        lambda: _LifetimeWalk(trace, keeps_gradients, sums_in_place).result(),
    )
    return lives


def _first_update(trace: Trace) -> int:
    """The place of the first op of the update; after the last op if there is none."""
    base = trace.template.base
    return next((place for place, op in enumerate(base) if op.phase is Phase.UPDATE), len(base))


class _LifetimeWalk:
    """One walk over the ops of a template, at its two sizes at once."""

    def __init__(self, trace: Trace, keeps_gradients: bool, sums_in_place: bool) -> None:
        self.trace, self.keeps_gradients, self.sums_in_place = trace, keeps_gradients, sums_in_place
        self.parameters = {p.name for p in trace.parameters}
        self.inputs = {t.name for t in trace.inputs}
        self.root: dict[str, str] = {}
        self.sizes: dict[str, tuple[int, int]] = {}
        self.sized_last: dict[str, tuple[Tensor, str]] = {}  # last tensor of a name and its storage: sized
        self.born: dict[str, int] = {}
        self.last: dict[str, int] = {}
        self.born_in: dict[str, Phase] = {}
        self.last_in: dict[str, Phase] = {}
        self.relations: dict[str, Relation] = {}  # the relation of a storage to others, if it has one
        self.pooled: dict[str, list[str]] = {}  # inputs of average pools by layer, the last one last
        self.beside: dict[str, str] = {}  # what a kernel saves → the storage it is read with
        for place, (op, growth) in enumerate(zip(trace.template.base, trace.template.growths, strict=True)):
            self._see(place, op, growth)
        for parameter in trace.parameters:  # parameters that no op uses
            if parameter.name not in self.born:
                self.sizes[parameter.name] = (parameter.tensor.bytes, parameter.tensor.bytes)
                self.born[parameter.name] = BEFORE

    def _see(self, place: int, op: Op, growth: tuple[tuple[Growth, ...], ...] | None) -> None:
        none: tuple[Growth, ...] = ()
        into, out, weights = growth or (none, none, none)
        for tensors, growths in ((op.inputs, into), (op.weights, weights)):
            for index, tensor in enumerate(tensors):
                self._use(place, op, tensor, growths[index] if growths else None, BEFORE)
        if not self.sums_in_place and _is_sum(op) and not self._is_gradient(op.output.relation):
            self.root[op.output.name] = f"{op.output.name}#{op.name}"
        for index, tensor in enumerate(op.outputs):
            if isinstance(op.kind, View) and op.kind.shares_storage and op.inputs:
                first = op.inputs[0].name
                self.root[tensor.name] = self.root.get(first, first)
            self._use(place, op, tensor, out[index] if out else None, place)
        if isinstance(op.kind, Pool) and op.kind.style == "average":
            self._pool(place, op)
        small_saved = 0 if op.is_gradient or op.phase is Phase.UPDATE else op.kind.saved_bytes(op)
        if small_saved:
            name = f"{op.output.name}#saved"
            large_saved = (
                small_saved if growth is None else op.kind.saved_bytes(self.trace.template.op(place, LARGE_BATCH))
            )
            self.sizes[name] = (small_saved, large_saved)
            self.born[name] = place
            self.born_in[name] = op.phase
            if isinstance(op.kind, Norm) and op.kind.style == "batch" and op.phase is Phase.FORWARD:
                running = f"{op.output.name}#running"  # mean and variance over steps, beside those of the batch
                self.sizes[running], self.born[running], self.born_in[running] = (
                    (small_saved, small_saved),
                    BEFORE,
                    op.phase,
                )
            anchor = op.inputs[0] if isinstance(op.kind, Norm) else op.output
            self.beside[name] = self.root.get(anchor.name, anchor.name)

    def _pool(self, place: int, op: Op) -> None:
        """The backward pass of average pooling does not read its input, but autograd keeps it."""
        waiting = self.pooled.setdefault(op.layer, [])
        if not op.is_gradient:
            waiting.append(self.root.get(op.inputs[0].name, op.inputs[0].name))
        elif waiting:
            name = waiting.pop()
            self.last[name], self.last_in[name] = max(place, self.last[name]), op.phase

    def _use(self, place: int, op: Op, tensor: Tensor, growth: Growth, birth: int) -> None:
        name = self.root.get(tensor.name, tensor.name)
        if self.sized_last.get(tensor.name) != (tensor, name):
            self.sized_last[tensor.name] = (tensor, name)
            self._size(name, tensor, growth)
        if name not in self.born:
            self.born[name] = place if _is_state(tensor.relation) else birth  # allocated by the first update
            self.born_in[name], self.relations[name] = op.phase, tensor.relation
        self.last[name], self.last_in[name] = place, op.phase

    def _size(self, name: str, tensor: Tensor, growth: Growth) -> None:
        small_before, large_before = self.sizes.get(name, (0, 0))
        small = tensor.bytes
        large = small if growth is None else _bytes_at(growth, tensor.dtype.bytes, LARGE_BATCH)
        self.sizes[name] = (max(small_before, small), max(large_before, large))
        if name in self.parameters:
            self.sizes[name] = (small, large)  # in the precision of the step

    def _is_gradient(self, relation: Relation) -> bool:
        """Whether it is the whole gradient of a parameter, not a copy of it."""
        return relation.gradient_of in self.parameters and not relation.copy_of

    def _copied_gradient_of(self, name: str) -> str:
        """The parameter whose gradient a storage holds in another format; else empty."""
        relation = self.relations.get(name, UNRELATED)
        return relation.gradient_of if relation.copy_of and relation.gradient_of in self.parameters else ""

    def result(self) -> Lifetimes:
        ops = len(self.trace.template.base)
        unwritten = frozenset() if self.trace.fusion is None else self.trace.fusion.unwritten
        names = tuple(name for name in self.born if name not in unwritten)
        roles = [self._role(name) for name in names]
        stays = {Role.PARAMETERS, Role.OPTIMIZER_STATE, Role.INPUTS, Role.BUFFERS}
        if not self.trace.recipe.update_in_backward:
            stays.add(Role.GRADIENTS)
        born = [self.born[name] for name in names]
        last = [ops if role in stays else self._last(name) for name, role in zip(names, roles, strict=True)]
        check_step_bytes(sum(self.sizes[name][1] for name in names), self.trace.name)
        small = np.array([self.sizes[name][0] for name in names], dtype=np.int64)
        large = np.array([self.sizes[name][1] for name in names], dtype=np.int64)
        slope = (large - small) // (LARGE_BATCH - SMALL_BATCH)
        return Lifetimes(
            names,
            np.array(roles, dtype=np.int64),
            small - SMALL_BATCH * slope,
            slope,
            np.array(born, dtype=np.int64),
            np.array(last, dtype=np.int64),
            ops,
            self.keeps_gradients,
            _first_update(self.trace),
            gradient_copies={name: owner for name in names if (owner := self._copied_gradient_of(name))},
        )

    def _last(self, name: str) -> int:
        return self.last[self.beside.get(name, name)]

    def _role(self, name: str) -> Role:
        """By its relation to a parameter; else by when it is written first and used last."""
        relation = self.relations.get(name, UNRELATED)
        if name in self.parameters:
            return Role.PARAMETERS
        if self._is_gradient(relation):
            return Role.GRADIENTS
        first = self.born_in[name]
        if _is_state(relation):
            return Role.OPTIMIZER_STATE
        if self.born[name] == BEFORE:
            return Role.INPUTS if self.sizes[name][0] != self.sizes[name][1] or name in self.inputs else Role.BUFFERS
        if relation.copy_of in self.parameters:
            return Role.AUTOCAST_COPIES
        if relation.is_recomputed:
            return Role.ACTIVATIONS
        if first is Phase.FORWARD and self.last_in[self.beside.get(name, name)] is Phase.BACKWARD:
            return Role.ACTIVATIONS
        return Role.TEMPORARIES


def _is_state(relation: Relation) -> bool:
    """Whether the optimizer keeps it from step to step."""
    return bool(relation.state_of or relation.master_of)


def _is_sum(op: Op) -> bool:
    """Whether a gradient is added into another of the same value."""
    return (
        op.phase is Phase.BACKWARD
        and op.kind == Elementwise("add")
        and len(op.inputs) == 2
        and op.output.name in (op.inputs[0].name, op.inputs[1].name)
        and not op.is_recomputed
    )


def _bytes_at(growth: tuple[tuple[int, int], ...], element_bytes: int, batch: int) -> int:
    total = element_bytes
    for constant, slope in growth:
        total *= constant + slope * batch
    return total
