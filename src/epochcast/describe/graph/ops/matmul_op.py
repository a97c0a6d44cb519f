"""Matrix products: linear layers, products of two computed tensors, stacks of experts."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

from epochcast.describe.graph.op import Gradient, Kind, Op, Wanted
from epochcast.describe.graph.op_registry import register_op
from epochcast.describe.graph.op_work import Matrix, OpClass
from epochcast.describe.graph.ops.elements_op import Reduce, bias_gradients, unsummed_gradient
from epochcast.describe.graph.receptive_field import ReceptiveField
from epochcast.describe.graph.tensor import Tensor, grad


@register_op
@dataclass(frozen=True, slots=True)
class Matmul(Kind):
    """(…, M, K) x (…, K, N); the second operand is a weight where the op has weights.

    A transposed operand is stored the other way round: `transpose_b` is a linear layer's (N, K) weight.
    A second weight is a bias, added in the epilogue. `grouped`: each of the leading dimension's products has a weight
    and as many rows as a linear layer has (experts of a mixture); a grouped kernel runs them tile by tile like one.
    """

    label: ClassVar[str] = "matmul"
    transpose_a: bool = False
    transpose_b: bool = False
    grouped: bool = False

    def op_class(self, op: Op) -> OpClass:
        """Batched: many small products."""
        return OpClass.BATCHED_MATMUL if _is_batched(op) and not self.grouped else OpClass.LINEAR

    def flops(self, op: Op) -> int:
        """2·M·N·K per product. A bias is added in the epilogue and not counted: publications do not."""
        m, n, k, repeats = self.matrix(op)
        return 2 * m * n * k * repeats

    def matrix(self, op: Op) -> Matrix:
        """Leading dimensions are rows, unless the second operand has them, too."""
        first = op.inputs[0].shape
        second = op.weights[0].shape if op.weights else op.inputs[1].shape
        depth = first[-2] if self.transpose_a and len(first) > 1 else first[-1]
        columns = second[-2] if self.transpose_b and len(second) > 1 else second[-1]
        total = op.output.elements
        if not _is_batched(op):
            return Matrix(total // max(1, columns), columns, depth, 1)
        rows = op.output.shape[-2]
        return Matrix(rows, columns, depth, total // max(1, rows * columns))

    def gradients(self, op: Op, wanted: Wanted) -> Iterator[Op]:
        """C = A·B: dA = dC·Bᵀ, dB = Aᵀ·dC; a linear layer's rows are flattened, its bias gradient is a sum over rows.

        A weight of more than two dimensions is a stack of weights, each for its own rows (experts).
        """
        if not op.weights or len(op.weights[0].shape) > 2:
            yield from self._computed_products(op, wanted)
        else:
            yield from self._linear_products(op, wanted)
        yield from bias_gradients(op, wanted)

    def _linear_products(self, op: Op, wanted: Wanted) -> Iterator[Op]:
        first, weight, arriving = op.inputs[0], op.weights[0], grad(op.output)
        flat_in = _flat(first, first.shape[-1])
        flat_out = _flat(arriving, arriving.shape[-1])
        products: list[Op] = []
        if first.name in wanted:
            product = Matmul(transpose_b=not self.transpose_b)
            products.append(op.backward_op(product, (flat_out,), (grad(first),), weights=(weight,), suffix="data"))
        if weight.name in wanted:
            operands = (flat_out, flat_in) if self.transpose_b else (flat_in, flat_out)
            total, product = (grad(weight),), Matmul(transpose_a=True)
            products.append(op.backward_op(product, operands, total, gradient=Gradient.WEIGHTS, suffix="weights"))
        yield from products if len(op.weights) > 1 else reversed(products)

    def _computed_products(self, op: Op, wanted: Wanted) -> Iterator[Op]:
        """Both operands computed, or the second a stack of weights.

        The gradient of an operand that is stored transposed is stored transposed, too: dAᵀ = B·dCᵀ, dBᵀ = dCᵀ·A.
        """
        first, second, arriving = *(*op.inputs, *op.weights)[:2], grad(op.output)
        if len(second.shape) == 2 and not self.transpose_a:  # one matrix for all rows: they are flattened
            arriving = _flat(arriving, arriving.shape[-1])
            rows = _flat(first, first.shape[-1])
        else:
            rows = first
        if second.name in wanted:
            if self.transpose_b:
                product, operands = replace(self, transpose_a=True, transpose_b=self.transpose_a), (arriving, rows)
            else:
                product = replace(self, transpose_a=not self.transpose_a, transpose_b=False)
                operands = (rows, arriving)
            if op.weights:
                yield from _summed(op, product, operands, second, "weights", Gradient.WEIGHTS)
            else:
                yield from _summed(op, product, operands, second, "data2")
        if first.name in wanted:
            if self.transpose_a:
                product = replace(self, transpose_a=self.transpose_b, transpose_b=True)
                operands = (second, arriving)
            else:
                product = replace(self, transpose_a=False, transpose_b=not self.transpose_b)
                operands = (arriving, second)
            yield from _summed(op, product, operands, first, "data")

    def receptive_field(self, op: Op, before: ReceptiveField, spatial: tuple[int, ...]) -> ReceptiveField:
        """A weight applied to each token keeps the field. Flattened features or two computed tensors see all."""
        return before if op.weights and len(op.inputs[0].shape) > 2 else before.mixed(spatial)


def _is_batched(op: Op) -> bool:
    """Whether its second operand has dimensions in front of the matrix's two."""
    second = op.weights[0] if op.weights else op.inputs[1]
    return len(second.shape) > 2


def _flat(tensor: Tensor, columns: int) -> Tensor:
    return tensor.sized((tensor.elements // max(1, columns), columns))


def _summed(
    op: Op,
    kind: Matmul,
    operands: tuple[Tensor, ...],
    target: Tensor,
    suffix: str,
    gradient: Gradient = Gradient.DATA,
) -> Iterator[Op]:
    """One product; an operand that was broadcast over leading dimensions gets the sum of its gradient over them."""
    result = grad(target)
    lead = op.output.shape[:-2]
    if len(operands[1].shape) == 2 or prod(target.shape[:-2]) == prod(lead):
        yield op.backward_op(kind, operands, (result,), gradient=gradient, suffix=suffix)
        return
    unsummed = unsummed_gradient(op, target, (*lead, *target.shape[-2:]))
    yield op.backward_op(kind, operands, (unsummed,), gradient=gradient, suffix=suffix)
    yield op.backward_op(Reduce("sum"), (unsummed,), (result,), gradient=gradient, suffix=f"{suffix}.sum")
