"""Arithmetic on elements, reductions, copies and views. They are one family: their gradients are made of each other."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from epochcast.describe.graph.op import Gradient, Kind, Op, Wanted
from epochcast.describe.graph.op_registry import register_op
from epochcast.describe.graph.op_work import Matrix, OpClass
from epochcast.describe.graph.receptive_field import ReceptiveField
from epochcast.describe.graph.tensor import Relation, Tensor, grad, gradient_name

# Arithmetic per element; transcendental functions as the handful of instructions a GPU spends on them.
_FLOPS_PER_ELEMENT = {
    "copy": 0,
    "gelu": 10,
    "silu": 6,
    "sigmoid": 5,
    "tanh": 6,
    "exp": 4,
    "log": 4,
    "sqrt": 2,
    "hardswish": 4,
    "hardsigmoid": 3,
    "softplus": 8,
    "mish": 14,
    "elu": 5,
    "erf": 8,
    "pow": 8,
    "div": 2,
}
# What an elementwise function keeps for its backward pass: its output, its inputs, a mask, or nothing.
_FROM_OUTPUT = frozenset({"relu", "sigmoid", "tanh", "exp", "sqrt", "rsqrt"})
_PASS_THROUGH = frozenset({"add", "sub"})
_CROSSWISE = frozenset({"mul", "div"})
_BY_A_CONSTANT = frozenset({"scale", "neg", "mask"})
_BY_THE_OTHERS = frozenset({"rotary"})  # linear in the first input: its gradient is turned back by the same angles


@register_op
@dataclass(frozen=True, slots=True)
class Elementwise(Kind):
    """One output element from one element of each input: relu, add, gelu, dropout, …"""

    label: ClassVar[str] = "elementwise"
    runs_as: ClassVar[OpClass] = OpClass.ELEMENTWISE
    function: str = "add"

    def flops(self, op: Op) -> int:
        """Those of the function, for every result."""
        return _FLOPS_PER_ELEMENT.get(self.function, 1) * op.output.elements

    def gradients(self, op: Op, wanted: Wanted) -> Iterator[Op]:
        """relu′ from its output, gelu′ from its input, a product from the other factor; a sum passes its gradient on.

        An input that was broadcast gets the sum of its gradient over what it was broadcast to.
        """
        arriving = grad(op.output)
        if self.function in _CROSSWISE:
            yield from _factor_gradients(op, wanted)
            return
        targets = [t for t in (*op.inputs, *op.weights) if t.name in wanted]
        for target in targets:
            others = tuple(t for t in (*op.inputs, *op.weights) if t.name != target.name)
            is_broadcast = target.elements < op.output.elements
            if self.function in _PASS_THROUGH:
                if is_broadcast:
                    yield op.backward_op(Reduce("sum"), (arriving,), (grad(target),), suffix="sum")
                elif self.function == "sub" and target is not op.inputs[0]:
                    yield op.backward_op(Elementwise("neg"), (arriving,), (grad(target),))
                else:
                    yield op.backward_op(View("pass"), (arriving,), (grad(target),), suffix="pass")
            else:
                saved = (op.output,) if self.function in _FROM_OUTPUT else op.outputs[1:] or op.inputs
                if self.function in _BY_A_CONSTANT:
                    saved = ()
                elif self.function in _BY_THE_OTHERS:
                    saved = others
                yield op.backward_op(self, (arriving, *saved), (grad(target),))


def _factor_gradients(op: Op, wanted: Wanted) -> Iterator[Op]:
    """Of a product: each factor's gradient from the other factors, the last factor first, weights behind them."""
    operands, sums = (*op.inputs, *op.weights), []
    for target in (*reversed(op.inputs), *op.weights):
        if target.name not in wanted:
            continue
        others = tuple(t for t in operands if t.name != target.name)
        is_broadcast = target.elements < op.output.elements
        product = unsummed_gradient(op, target, op.output.shape) if is_broadcast else grad(target)
        yield op.backward_op(Elementwise("mul"), (grad(op.output), *(others or op.inputs)), (product,))
        if is_broadcast:
            sums.append(op.backward_op(Reduce("sum"), (product,), (grad(target),), suffix="sum"))
    yield from sums


@register_op
@dataclass(frozen=True, slots=True)
class Reduce(Kind):
    """Many elements to one: sum, mean, max, norm, topk, sort, cumsum …"""

    label: ClassVar[str] = "reduce"
    runs_as: ClassVar[OpClass] = OpClass.REDUCE
    function: str = "sum"

    def flops(self, op: Op) -> int:
        """One for every input element."""
        return sum(t.elements for t in op.inputs)

    def matrix(self, op: Op) -> Matrix:
        """A row per result."""
        rows = max(1, sum(t.elements for t in op.outputs))
        total = sum(t.elements for t in op.inputs)
        return Matrix(rows, max(1, total // rows), 1, 1)

    def gradients(self, op: Op, wanted: Wanted) -> Iterator[Op]:
        """A sum or mean spreads its gradient by a broadcast."""
        if op.inputs[0].name in wanted:
            yield op.backward_op(Elementwise("mul"), (grad(op.output),), (grad(op.inputs[0]),))

    def receptive_field(self, op: Op, before: ReceptiveField, spatial: tuple[int, ...]) -> ReceptiveField:
        """A mean over channels keeps its positions; one over positions sees everything."""
        keeps_positions = op.output.shape[-len(spatial) :] == op.inputs[0].shape[-len(spatial) :]
        return before if keeps_positions else before.mixed(spatial)


def bias_gradients(op: Op, wanted: Wanted) -> Iterator[Op]:
    """The gradient of a bias (every weight behind the first) is a sum over rows."""
    for bias in op.weights[1:]:
        if bias.name in wanted:
            yield op.backward_op(
                Reduce("sum"), (grad(op.output),), (grad(bias),), gradient=Gradient.WEIGHTS, suffix="bias"
            )


def unsummed_gradient(op: Op, target: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The gradient of a tensor that was broadcast, before its sum over what it was broadcast to."""
    return Tensor(shape, op.output.dtype, f"{gradient_name(target.name)}*{op.name}", Relation(unsummed_of=target.name))


@register_op
@dataclass(frozen=True, slots=True)
class Copy(Kind):
    """Moves bytes without arithmetic: contiguous, concatenate, pad, cast, fill, roll."""

    label: ClassVar[str] = "copy"
    runs_as: ClassVar[OpClass] = OpClass.COPY
    function: str = "copy"

    def flops(self, op: Op) -> int:
        """None."""
        return 0

    def gradients(self, op: Op, wanted: Wanted) -> Iterator[Op]:
        """A concatenation hands out slices of its gradient, a repetition adds up; a copy undoes every other copy."""
        arriving = grad(op.output)
        undo: Kind = {"concatenate": View("slice"), "repeat": Reduce("sum")}.get(self.function, self)
        for target in op.inputs:
            if target.name in wanted:
                yield op.backward_op(undo, (arriving,), (grad(target),), suffix=f"backward.{target.name}")


@register_op
@dataclass(frozen=True, slots=True)
class View(Kind):
    """Moves nothing: reshape, transpose, slice, split. `function` names it; it costs no kernel.

    What a collective makes (gathered, scattered), or a copy from the host (fetched), has a storage of its own, though
    no kernel here writes it.
    """

    label: ClassVar[str] = "view"
    runs_as: ClassVar[OpClass] = OpClass.VIEW
    function: str = "reshape"

    @property
    def shares_storage(self) -> bool:
        """Whether the result lies in the storage of its source."""
        return self.function not in (GATHERED, SCATTERED, FETCHED)

    def flops(self, op: Op) -> int:
        """None."""
        return 0

    def read_bytes(self, op: Op) -> int:
        """None."""
        return 0

    def written_bytes(self, op: Op) -> int:
        """None."""
        return 0

    def launches(self, op: Op) -> int:
        """None."""
        return 0

    def gradients(self, op: Op, wanted: Wanted) -> Iterator[Op]:
        """The gradient of a reshape is a reshape, of an expansion a sum; one tensor collects the pieces of a split."""
        first = op.inputs[0]
        if first.name not in wanted or self.function == DETACHED:
            return
        undo: Kind = self
        if first.elements > op.output.elements:
            undo = Copy("concatenate")
        elif first.elements < op.output.elements:
            undo = Reduce("sum")
        yield op.backward_op(undo, tuple(grad(t) for t in op.outputs), (grad(first),))


GATHERED, SCATTERED, FETCHED, DETACHED = "gathered", "scattered", "fetched", "detached"
