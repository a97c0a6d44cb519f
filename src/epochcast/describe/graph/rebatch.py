"""A step at any batch size, from the same step at two: comparing them shows which dimensions grow with the batch.

Every dimension of a training step is affine in the batch, d(n) = a + b·n (positions and channels have b = 0). Flops,
bytes and matrix shapes are products of two such dimensions at most, so each is a quadratic in n, fixed by three points.
A template is exact from batch 2 on. At batch 1 it still has the sums over samples that a single sample does not need.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from epochcast.base.caching import Cache, Derived, derived_property
from epochcast.base.garbage import without_collecting
from epochcast.describe.graph.op import Op
from epochcast.describe.graph.op_kinds import OptimizerUpdate
from epochcast.describe.graph.op_work import OpWork
from epochcast.describe.graph.tensor import Tensor
from epochcast.errors import BadInput

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

# Larger than any real batch, so that every bend below it shows.
FAR_BATCH = 2**14

Growth = tuple[tuple[int, int], ...] | None
"""(a, b) per dimension of a tensor, or None where nothing grows."""

Sides = tuple[tuple[Growth, ...], tuple[Growth, ...], tuple[Growth, ...]]
"""The growths of an op's inputs, outputs and weights."""


@dataclass(frozen=True)
class Template:
    """The ops of a step as a function of the batch size: `base` are the ops at the smaller of the two sizes.

    `derived` caches what is computed from the ops and is the same at every batch.
    """

    base: tuple[Op, ...]
    growths: tuple[Sides | None, ...]
    derived: Derived = field(init=False, compare=False, repr=False, default_factory=partial(Cache, 64))

    @derived_property
    def names(self) -> tuple[str, ...]:
        """Of all ops."""
        return tuple([op.name for op in self.base])

    @without_collecting()
    def mapped(self, change: Callable[[Op, Sides | None], tuple[Op, Sides | None]]) -> "Template":
        """The template with every op changed by `change`."""
        pairs = [change(op, growth) for op, growth in zip(self.base, self.growths, strict=True)]
        return Template(tuple([op for op, _ in pairs]), tuple([growth for _, growth in pairs]))

    @classmethod
    def fixed(cls, ops: Sequence[Op]) -> "Template":
        """A template that does not grow."""
        return cls(tuple(ops), (None,) * len(ops))

    @classmethod
    def learn(cls, small: Sequence[Op], small_batch: int, large: Sequence[Op], large_batch: int) -> "Template":
        """Compare the ops at two batch sizes; they must be the same ops with the same attributes."""
        if len(small) != len(large):
            raise BadInput(
                f"the model runs {len(small)} ops at batch {small_batch} and {len(large)} at batch {large_batch}: "
                "its control flow depends on the batch"
            )
        growths: list[Sides | None] = []
        growth_of_shapes: dict[tuple[tuple[int, ...], tuple[int, ...]], Growth] = {}  # the shapes repeat in every layer

        def growth(small_tensor: Tensor, large_tensor: Tensor) -> Growth:
            key = (small_tensor.shape, large_tensor.shape)
            if key not in growth_of_shapes:
                growth_of_shapes[key] = _growth(small_tensor, small_batch, large_tensor, large_batch)
            return growth_of_shapes[key]

        for small_op, large_op in zip(small, large, strict=True):
            if small_op is large_op:
                growths.append(None)
                continue
            if small_op.kind != large_op.kind:
                raise BadInput(
                    f"op {small_op.name!r} changes: {small_op.kind} at batch {small_batch}, "
                    f"{large_op.kind} at batch {large_batch}"
                )
            sides = []
            for small_side, large_side in zip(_sides(small_op), _sides(large_op), strict=True):
                if len(small_side) != len(large_side):
                    raise BadInput(
                        f"op {small_op.name!r} has {len(small_side)} operands at batch {small_batch} "
                        f"and {len(large_side)} at batch {large_batch}"
                    )
                sides.append(tuple(map(growth, small_side, large_side)))
            growths.append((sides[0], sides[1], sides[2]) if any(any(side) for side in sides) else None)
        return cls(tuple(small), tuple(growths))

    def ops(self, batch: int) -> tuple[Op, ...]:
        """The ops at a batch size."""
        return tuple([resized(*pair, batch) for pair in zip(self.base, self.growths, strict=True)])

    def op(self, place: int, batch: int) -> Op:
        """One op at a batch size."""
        return resized(self.base[place], self.growths[place], batch)

    def work(self, batch: int) -> Numbers:
        """The `OpWork` of every op at a batch size, one row per op, in the order of its fields."""
        (constant, first, second), bent = self._quadratics
        numbers: Numbers = constant + batch * (first + batch * second)
        if len(bent):
            samples, sample_of = self.distinct
            bent_ops = [samples[number] for number in sample_of[bent].tolist()]
            numbers[bent] = [resized(op, growth, batch).work for op, growth in bent_ops]
        return numbers

    @derived_property
    def _quadratics(self) -> tuple[Numbers, Places]:
        """Coefficients (3, ops, quantities) of n⁰, n¹, n² through the work at n = 1, 2, 3, and the ops they do not fit.

        A few numbers have a bend, such as the larger of a table and of what is looked up in it. A maximum or minimum of
        two straight lines differs from the fitted curve at a large batch.
        """
        samples, sample_of = self.distinct
        sizes = (1, 2, 3, FAR_BATCH)
        works = [
            [resized(op, growth, n).work for n in sizes] if growth else [op.work] * len(sizes) for op, growth in samples
        ]
        *near, far = np.array(works, dtype=np.float64).reshape(-1, len(sizes), len(OpWork._fields)).transpose(1, 0, 2)
        coefficients = quadratic(*near)
        constant, first, second = coefficients
        extended = constant + FAR_BATCH * (first + FAR_BATCH * second)
        is_bent = ~np.all(np.isclose(extended, far, rtol=1e-9, atol=0), axis=1, keepdims=True)[:, 0]
        return coefficients[:, sample_of], np.flatnonzero(is_bent[sample_of])

    @derived_property
    def distinct(self) -> tuple[list[tuple[Op, Sides | None]], Places]:
        """Ops that differ in more than names and layers, with their growths, and for every op the index of its sample.

        The layers of a network repeat, so work per op is computed for few of them. Only updates depend on names.
        """
        sample_by_key: dict[Hashable, int] = {}
        samples: list[tuple[Op, Sides | None]] = []
        sample_of: list[int] = []
        for place, (op, growth) in enumerate(zip(self.base, self.growths, strict=True)):
            key = place if isinstance(op.kind, OptimizerUpdate) else (_without_names(op), growth)
            if key not in sample_by_key:
                sample_by_key[key] = len(samples)
                samples.append((op, growth))
            sample_of.append(sample_by_key[key])
        return samples, np.array(sample_of, dtype=np.int64)


def resized(op: Op, growth: Sides | None, batch: int) -> Op:
    """An op at a batch size."""
    if growth is None:
        return op
    inputs, outputs, weights = map(partial(_resized, batch=batch), (op.inputs, op.outputs, op.weights), growth)
    return Op(op.name, op.kind, inputs, outputs, weights, op.phase, op.layer, op.gradient, op.tf32)


def _without_names(op: Op) -> Hashable:
    """An op without its names, as a key."""
    sides = tuple([tuple([(t.shape, t.dtype) for t in side]) for side in _sides(op)])
    return op.kind, op.phase, op.gradient, op.tf32, sides


def _sides(op: Op) -> tuple[tuple[Tensor, ...], ...]:
    return op.inputs, op.outputs, op.weights


def _growth(small: Tensor, small_batch: int, large: Tensor, large_batch: int) -> Growth:
    if small.shape == large.shape:
        return None
    if len(small.shape) != len(large.shape):
        raise BadInput(f"tensor {small.name!r} changes its rank with the batch: {small.shape} and {large.shape}")
    pairs = []
    for small_size, large_size in zip(small.shape, large.shape, strict=True):
        slope, remainder = divmod(large_size - small_size, large_batch - small_batch)
        if remainder:
            raise BadInput(
                f"tensor {small.name!r} does not grow evenly with the batch: {small.shape} and {large.shape}"
            )
        pairs.append((small_size - slope * small_batch, slope))
    return tuple(pairs)


def _resized(tensors: tuple[Tensor, ...], growths: tuple[Growth, ...], batch: int) -> tuple[Tensor, ...]:
    return tuple(
        tensor if growth is None else tensor.sized(tuple([a + b * batch for a, b in growth]))
        for tensor, growth in zip(tensors, growths, strict=True)
    )


def quadratic(at_1: Numbers, at_2: Numbers, at_3: Numbers) -> Numbers:
    """Coefficients of n⁰, n¹ and n² through the values at n = 1, 2 and 3."""
    second = (at_3 - 2 * at_2 + at_1) / 2
    first = at_2 - at_1 - 3 * second
    return np.array([at_1 - first - second, first, second])
