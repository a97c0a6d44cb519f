"""Any batch size from two: which dimensions grow with the batch, learnt by comparing the same ops at two sizes.

Every dimension of a training step is affine in the batch, d(n) = a + b·n (positions and channels have b = 0). Flops,
bytes and matrix shapes are products of two such dimensions at most, so each is a quadratic in n, fixed by three points.
A template is exact from batch 2 on; at 1 it keeps the sums over samples that broadcasting over a single one spares.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from epochcast.caching import Cache, Derived, derived_property
from epochcast.collecting import without_collecting
from epochcast.errors import BadInput
from epochcast.graph.kinds import OptimizerUpdate
from epochcast.graph.op import Op
from epochcast.graph.tensor import Tensor
from epochcast.graph.work import Work, work

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

# Farther than anybody trains, so that every bend on the way shows.
FAR_BATCH = 2**14

Growth = tuple[tuple[int, int], ...] | None
"""(a, b) per dimension of a tensor, or None where nothing grows."""

Sides = tuple[tuple[Growth, ...], tuple[Growth, ...], tuple[Growth, ...]]
"""The growths of an op's inputs, outputs and weights."""


@dataclass(frozen=True)
class Template:
    """The ops of a step as a function of the batch size: `base` is at the smaller of the sizes it was learnt from.

    `derived` keeps what others read off the ops, which is the same at every batch.
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
        """With every op changed, each for itself."""
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
        known: dict[tuple[tuple[int, ...], tuple[int, ...]], Growth] = {}  # the same few shapes in every layer

        def growth(few: Tensor, many: Tensor) -> Growth:
            key = (few.shape, many.shape)
            if key not in known:
                known[key] = _growth(few, small_batch, many, large_batch)
            return known[key]

        for one, other in zip(small, large, strict=True):
            if one is other:
                growths.append(None)
                continue
            if one.kind != other.kind:
                raise BadInput(
                    f"op {one.name!r} changes: {one.kind} at batch {small_batch}, {other.kind} at batch {large_batch}"
                )
            sides = []
            for few, many in ((one.inputs, other.inputs), (one.outputs, other.outputs), (one.weights, other.weights)):
                if len(few) != len(many):
                    counts = f"{len(few)} operands at batch {small_batch} and {len(many)} at batch {large_batch}"
                    raise BadInput(f"op {one.name!r} has {counts}")
                sides.append(tuple(map(growth, few, many)))
            growths.append((sides[0], sides[1], sides[2]) if any(any(side) for side in sides) else None)
        return cls(tuple(small), tuple(growths))

    def ops(self, batch: int) -> tuple[Op, ...]:
        """The ops at a batch size."""
        return tuple([resized(*pair, batch) for pair in zip(self.base, self.growths, strict=True)])

    def op(self, place: int, batch: int) -> Op:
        """One op at a batch size."""
        return resized(self.base[place], self.growths[place], batch)

    def work(self, batch: int) -> Numbers:
        """The `Work` of every op at a batch size, one row per op, in the order of its fields."""
        (constant, first, second), bent = self._quadratics
        numbers: Numbers = constant + batch * (first + batch * second)
        if len(bent):
            samples, like = self.distinct
            asked = [samples[number] for number in like[bent].tolist()]
            numbers[bent] = [work(resized(op, growth, batch)) for op, growth in asked]
        return numbers

    @derived_property
    def _quadratics(self) -> tuple[Numbers, Places]:
        """Coefficients (3, ops, quantities) of n⁰, n¹, n² through the work at n = 1, 2, 3, and the ops they miss.

        A few numbers have a bend: the larger of a table and of what is looked up in it. Such a maximum or minimum of
        two straight lines lies off the curve at a batch far away.
        """
        samples, like = self.distinct
        sizes = (1, 2, 3, FAR_BATCH)
        works = [
            [work(resized(op, growth, n)) for n in sizes] if growth else [work(op)] * len(sizes)
            for op, growth in samples
        ]
        one, two, three, far = (
            np.array(works, dtype=np.float64).reshape(-1, len(sizes), len(Work._fields)).transpose(1, 0, 2)
        )
        second = (three - 2 * two + one) / 2
        first = two - one - 3 * second
        constant = one - first - second
        extended = constant + FAR_BATCH * (first + FAR_BATCH * second)
        is_bent = ~np.all(np.isclose(extended, far, rtol=1e-9, atol=0), axis=1, keepdims=True)[:, 0]
        return np.array([constant, first, second])[:, like], np.flatnonzero(is_bent[like])

    @derived_property
    def distinct(self) -> tuple[list[tuple[Op, Sides | None]], Places]:
        """Ops that differ in more than names and layers, with their growths, and for every op the one it is like.

        The layers of a network repeat: what is asked of each op is asked of a few. Only an update counts names.
        """
        numbers: dict[Hashable, int] = {}
        samples: list[tuple[Op, Sides | None]] = []
        like: list[int] = []
        for place, (op, growth) in enumerate(zip(self.base, self.growths, strict=True)):
            key = place if isinstance(op.kind, OptimizerUpdate) else (_look(op), growth)
            if key not in numbers:
                numbers[key] = len(samples)
                samples.append((op, growth))
            like.append(numbers[key])
        return samples, np.array(like, dtype=np.int64)


def resized(op: Op, growth: Sides | None, batch: int) -> Op:
    """An op at a batch size."""
    if growth is None:
        return op
    inputs, outputs, weights = map(partial(_resized, batch=batch), (op.inputs, op.outputs, op.weights), growth)
    return Op(op.name, op.kind, inputs, outputs, weights, op.phase, op.layer, op.gradient, op.tf32)


def _look(op: Op) -> Hashable:
    """All of an op but its names."""
    sides = (op.inputs, op.outputs, op.weights)
    return op.kind, op.phase, op.gradient, op.tf32, tuple([tuple([(t.shape, t.dtype) for t in s]) for s in sides])


def _growth(small: Tensor, small_batch: int, large: Tensor, large_batch: int) -> Growth:
    if small.shape == large.shape:
        return None
    if len(small.shape) != len(large.shape):
        raise BadInput(f"tensor {small.name!r} changes its rank with the batch: {small.shape} and {large.shape}")
    pairs = []
    for one, other in zip(small.shape, large.shape, strict=True):
        slope, rest = divmod(other - one, large_batch - small_batch)
        if rest:
            raise BadInput(
                f"tensor {small.name!r} does not grow evenly with the batch: {small.shape} and {large.shape}"
            )
        pairs.append((one - slope * small_batch, slope))
    return tuple(pairs)


def _resized(tensors: tuple[Tensor, ...], growths: tuple[Growth, ...], batch: int) -> tuple[Tensor, ...]:
    return tuple(
        tensor if growth is None else tensor.sized(tuple([a + b * batch for a, b in growth]))
        for tensor, growth in zip(tensors, growths, strict=True)
    )
