"""What one training step executes, at a batch size that can be changed at once.

A Trace keeps its ops as a template (affine in the batch) and its numbers as columns, so that a sweep over batch sizes
never builds the ops again. `ops` are the same as typed values.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochcast.base.caching import Cache, Derived, derived_property
from epochcast.base.garbage import without_collecting
from epochcast.describe.graph.compilers import COMPILERS
from epochcast.describe.graph.fusion import Fusion, fused
from epochcast.describe.graph.kernels import part_of
from epochcast.describe.graph.math_modes import op_math_index
from epochcast.describe.graph.op import Gradient, Graph, Op, Parameter, Phase
from epochcast.describe.graph.op_kinds import Norm, View
from epochcast.describe.graph.op_registry import opaque_names
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.rebatch import Template
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import Tensor, grad
from epochcast.describe.graph.training import LOSS_LAYER, adapted, as_recipe_runs, float_ops

CLASSES = tuple(OpClass)
PHASES = tuple(Phase)

# The two batch sizes a model is built at: neither is 1 (frameworks squeeze that away) nor a multiple of the other.
SMALL_BATCH, LARGE_BATCH = 4, 6


@dataclass(frozen=True)
class Columns:
    """The numbers of a trace, one entry per op that runs a kernel. Classes and phases index the tables above, maths
    `maths.OP_MATHS`. `samples` is the batch that an op works on. `flops` are those that run: of causal flash attention
    about half of those that publications count.
    """

    flops: NDArray[np.float64]
    read_bytes: NDArray[np.float64]
    written_bytes: NDArray[np.float64]
    m: NDArray[np.float64]
    n: NDArray[np.float64]
    k: NDArray[np.float64]
    count: NDArray[np.float64]
    launches: NDArray[np.float64]
    op_class: NDArray[np.int64]
    phase: NDArray[np.int64]
    math: NDArray[np.int64]
    gradient: NDArray[np.int64]
    element_bytes: NDArray[np.float64]
    kernel: NDArray[np.float64]
    stride: NDArray[np.float64]
    groups: NDArray[np.float64]
    channels_in: NDArray[np.float64]
    channels_out: NDArray[np.float64]
    is_matrix: NDArray[np.bool_]
    samples: NDArray[np.float64]
    derived: Derived = field(init=False, compare=False, repr=False, default_factory=partial(Cache, 2))

    def __len__(self) -> int:
        return len(self.flops)

    def at(self, places: Any) -> "Columns":
        """Some of the entries, by a mask, places or a slice."""
        return Columns(*(getattr(self, name)[places] for name in COLUMN_NAMES))

    @derived_property
    def digest(self) -> bytes:
        """A key for caches: the same for the same numbers."""
        arrays = (getattr(self, name) for name in COLUMN_NAMES)
        return blake2b(b"".join(array.tobytes() for array in arrays), digest_size=16).digest()

    @property
    def bytes(self) -> NDArray[np.float64]:
        """Read and written together."""
        return self.read_bytes + self.written_bytes


COLUMN_NAMES = tuple(item.name for item in fields(Columns) if item.init)


@dataclass(frozen=True)
class Trace:
    """One step of a model by a recipe; `inputs` are what it is fed for one sample, constants (masks) as they are.

    `contents` says what is in a sample besides text, such as images and their tokens.
    """

    name: str
    recipe: Recipe
    template: Template
    parameters: tuple[Parameter, ...]
    inputs: tuple[Tensor, ...]
    unit: str = "samples"
    units_per_sample: int = 1
    notes: tuple[str, ...] = ()
    contents: str = ""
    derived: Derived = field(init=False, compare=False, repr=False, default_factory=partial(Cache, 16))

    @property
    def batch(self) -> int:
        """Samples in the step."""
        return self.recipe.batch

    @derived_property
    def ops(self) -> tuple[Op, ...]:
        """The ops at this batch, views included."""
        return self.template.ops(self.batch)

    def rebatch(self, batch: int) -> "Trace":
        """The same step at another batch size, without building anything."""
        return replace(self, recipe=self.recipe.at(batch))

    @derived_property
    def layers(self) -> tuple[str, ...]:
        """The layer of every entry of the columns."""
        return tuple([self.template.base[place].layer for place in self.places.tolist()])

    @property
    def opaque(self) -> tuple[str, ...]:
        """Names of ops without a formula."""
        names: tuple[str, ...] = self.template.derived.get("opaque", lambda: opaque_names(self.template.base))
        return names

    @property
    def fusion(self) -> Fusion | None:
        """The kernels that the recipe's compiler makes of the ops; None where they run one by one."""
        if not self.recipe.is_compiled:
            return self._of_kernels() if self.recipe.has_kernels else None
        compiler = COMPILERS[self.recipe.compile]
        inference = self.recipe.mode == "forward"
        fusion: Fusion = self.template.derived.get(
            ("fusion", compiler.fuses_epilogues, inference, self.recipe.eager_loss),
            lambda: fused(
                self.template,
                (p.name for p in self.parameters),
                inference=inference,
                epilogues=compiler.fuses_epilogues,
                eager=(LOSS_LAYER,) if self.recipe.eager_loss else (),
            ),
        )
        return fusion

    def _of_kernels(self) -> Fusion:
        """What a library's kernels make of the ops."""
        inference = self.recipe.mode == "forward"
        names = [parameter.name for parameter in self.parameters]
        fusion: Fusion = self.template.derived.get(
            ("kernels", inference),
            lambda: fused(self.template, names, inference=inference, epilogues=False, part_of=part_of),
        )
        return fusion

    def under(self, recipe: Recipe) -> "Trace":
        """The same ops by a recipe that differs in its compiler or its batch alone. Every compiler has a template of
        its own: what others read off a step depends on its kernels. The precision stays: a model whose weights are in
        half runs in half, whatever was asked.
        """
        if recipe.precision != self.recipe.precision:
            recipe = replace(recipe, precision=self.recipe.precision)
        if (recipe.compile, recipe.eager_loss) == (self.recipe.compile, self.recipe.eager_loss):
            return replace(self, recipe=recipe)
        template: Template = self.template.derived.get(
            ("compiled by", recipe.compile, recipe.eager_loss),
            lambda: Template(self.template.base, self.template.growths),
        )
        return replace(self, recipe=recipe, template=template)

    @property
    def _static(self) -> "Static":
        fusion = self.fusion
        if fusion is None:
            static: Static = self.template.derived.get("static columns", partial(_static, self.template))
            return static
        key = ("static columns", self.recipe.compile, self.recipe.has_kernels, self.recipe.mode, self.recipe.eager_loss)
        static = self.template.derived.get(key, lambda: _fused_static(self.template, fusion, self.recipe.mode))
        return static

    @property
    def places(self) -> NDArray[np.int64]:
        """The index in `ops` of each entry of the columns."""
        return self._static[0]

    @derived_property
    def entries(self) -> NDArray[np.int64]:
        """For every op, its entry in the columns; a view has that of the kernel before it, -1 where there is none."""
        if self.fusion is not None:
            return self.fusion.kernel_of
        entries: NDArray[np.int64] = np.searchsorted(self.places, np.arange(self.op_count), side="right") - 1
        return entries

    @property
    def op_count(self) -> int:
        """How many ops there are, views included."""
        return len(self.template.base)

    @derived_property
    def columns(self) -> Columns:
        """The numbers of all ops that run a kernel."""
        places, static, fractions = self._static
        work = (
            self.template.work(self.batch)[places]
            if self.fusion is None
            else self.fusion.work(self.template, self.batch)
        )
        work[:, 0] *= fractions
        return Columns(*[*work.T, *static, np.full(len(places), float(self.batch))])

    @derived_property
    def awaited(self) -> NDArray[np.bool_]:
        """Which entries of the columns the host waits for."""
        base = self.template.base
        return np.array([base[place].kind.is_awaited for place in self.places.tolist()], dtype=np.bool_)

    def in_phase(self, phase: int) -> NDArray[np.bool_]:
        """Which entries of the columns belong to a phase, by its index in PHASES."""
        mask: NDArray[np.bool_] = self.derived.get(("in phase", phase), lambda: self.columns.phase == phase)
        return mask

    def gradient_entries(self, parameters: Iterable[Parameter]) -> list[tuple[int, int]]:
        """For the gradient of every trained parameter: the entry of the columns that makes it last, and its bytes. A
        view is made with the kernel before it.
        """
        trained = {grad(p.tensor).name for p in parameters if p.trainable}
        ready: dict[str, tuple[int, int]] = {}
        for entry, op in zip(self.entries.tolist(), self.template.base, strict=True):
            if op.phase is Phase.BACKWARD:
                ready.update({t.name: (max(entry, 0), t.bytes) for t in op.outputs if t.name in trained})
        return sorted(ready.values(), key=lambda pair: pair[0])

    @derived_property
    def parameter_counts(self) -> tuple[int, int]:
        """Values in all parameters, and in those that are trained."""
        return sum(p.elements for p in self.parameters), sum(p.elements for p in self.parameters if p.trainable)

    @property
    def counted_flops(self) -> NDArray[np.float64]:
        """Flops of every entry of the columns as publications count them: what a causal mask leaves out is counted."""
        counted: NDArray[np.float64] = self.columns.flops / self._static[2]
        return counted

    @derived_property
    def flops(self) -> dict[str, float]:
        """Matrix flops by phase, of forward and backward together, and element flops of the step, as publications count
        them: what an optimizer multiplies is not the model's.
        """
        c, counted = self.columns, self.counted_flops
        totals = {phase.value: float(counted[c.is_matrix & (c.phase == i)].sum()) for i, phase in enumerate(PHASES)}
        matrix = sum(totals.values()) - totals[Phase.UPDATE.value]
        return {**totals, "matrix": matrix, "elementwise": float(counted[~c.is_matrix].sum())}


Static = tuple[NDArray[np.int64], tuple[NDArray[Any], ...], NDArray[np.float64]]


def _static(template: Template) -> Static:
    """What does not grow: which ops run kernels, their classes, dtypes and window sizes, which part of flops runs."""
    samples, sample_of = template.distinct
    rows = [_row(op) for op, _ in samples]
    runs = np.array([not isinstance(op.kind, View) for op, _ in samples], dtype=np.bool_)
    places = np.flatnonzero(runs[sample_of])
    fractions = np.array([op.kind.run_fraction(op) for op, _ in samples], dtype=np.float64)
    return places, tuple(column[sample_of[places]] for column in _arrays(rows)), fractions[sample_of[places]]


def _fused_static(template: Template, fusion: Fusion, mode: str) -> Static:
    """The same of a compiled step: a kernel has the class of its leader. A batch normalisation by stored statistics is
    elementwise.
    """
    places, static, fractions = _static(template)
    entry = np.searchsorted(places, fusion.leaders)
    columns = [column[entry] for column in static]
    if mode == "forward":
        is_norm = [template.base[place].kind == Norm("batch") for place in fusion.leaders.tolist()]
        columns[0] = np.where(is_norm, _CLASS_INDEX[OpClass.ELEMENTWISE], columns[0])
    return fusion.places, tuple(columns), fractions[entry]


_CLASS_INDEX = {c: i for i, c in enumerate(CLASSES)}
_PHASE_INDEX = {p: i for i, p in enumerate(PHASES)}
_GRADIENT_INDEX = {g: i for i, g in enumerate(Gradient)}
# Four indices, six sizes, one boolean: the order of `_row`.
_STATIC_TYPES: tuple[type, ...] = (*[np.int64] * 4, *[np.float64] * 6, np.bool_)


def _row(op: Op) -> tuple[float, ...]:
    op_class = op.op_class
    return (
        _CLASS_INDEX[op_class],
        _PHASE_INDEX[op.phase],
        op_math_index(op.math),
        _GRADIENT_INDEX[op.gradient],
        op.dtype.bits / 8,
        *op.kind.window_sizes(op),
        op_class.is_matrix,
    )


def columns_of(ops: Sequence[Op]) -> Columns:
    """The numbers of ops without a trace, views left out."""
    run = [op for op in ops if not isinstance(op.kind, View)]
    grown = np.array([op.work for op in run], dtype=np.float64).reshape(len(run), -1)
    if run:
        grown[:, 0] *= [op.kind.run_fraction(op) for op in run]
    samples = np.array([op.inputs[0].shape[0] if op.inputs and op.inputs[0].shape else 1 for op in run], dtype=float)
    return Columns(*[*(grown.T if run else np.zeros((8, 0))), *_arrays([_row(op) for op in run]), samples])


def _arrays(rows: Sequence[tuple[float, ...]]) -> list[NDArray[Any]]:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(_STATIC_TYPES)
    return [np.array(column, dtype=kind) for column, kind in zip(columns, _STATIC_TYPES, strict=True)]


def _outline(op: Op) -> tuple[str, int, int, int]:
    return op.name, len(op.inputs), len(op.outputs), len(op.weights)


@dataclass(frozen=True)
class BatchPair:
    """A model built at two batch sizes: its graphs, and the ops of its step in float32."""

    small: Graph
    large: Graph
    small_ops: tuple[Op, ...]
    large_ops: tuple[Op, ...]

    @classmethod
    @without_collecting()
    def at(cls, build: Callable[[int], Graph], recipe: Recipe) -> "BatchPair":
        """Build the model twice. Precision and checkpointing of the recipe are applied later, by `trace`."""
        small, large = build(SMALL_BATCH), build(LARGE_BATCH)
        small_ops = float_ops(small, recipe.at(SMALL_BATCH))
        mode = "forward_backward" if recipe.mode == "training" else recipe.mode
        large_ops = float_ops(large, replace(recipe, batch=LARGE_BATCH, mode=mode))
        updates = (op for op in small_ops if op.phase is Phase.UPDATE)  # the same at every batch
        return cls(small, large, small_ops, (*large_ops, *updates))

    @without_collecting()
    def trace(self, recipe: Recipe) -> Trace:
        """The step in the recipe's precision, with checkpointing where it asks for that."""
        small, large, small_ops, large_ops = self.small, self.large, self.small_ops, self.large_ops
        base = as_recipe_runs(small_ops, small, recipe)
        if list(map(_outline, base)) == list(map(_outline, small_ops)):  # only dtypes changed: one size is enough
            template = Template(base, Template.learn(small_ops, SMALL_BATCH, large_ops, LARGE_BATCH).growths)
        else:
            template = Template.learn(base, SMALL_BATCH, as_recipe_runs(large_ops, large, recipe), LARGE_BATCH)
        parameters = adapted(small, recipe).parameters
        sample = tuple(
            small_input
            if small_input.shape == large_input.shape
            else replace(small_input, shape=(1, *small_input.shape[1:]))
            for small_input, large_input in zip(small.inputs, large.inputs, strict=True)
        )
        return Trace(small.name, recipe, template, parameters, sample, small.unit, small.units_per_sample, small.notes)


def trace_from(build: Callable[[int], Graph], recipe: Recipe) -> Trace:
    """The step of a model, from a function that builds it at any batch size."""
    return BatchPair.at(build, recipe).trace(recipe)
