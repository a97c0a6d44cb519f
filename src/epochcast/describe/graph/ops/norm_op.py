"""Normalisations and softmax: rows of elements that are normalised together."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from epochcast.describe.graph.op import Gradient, Kind, Op, Wanted
from epochcast.describe.graph.op_registry import register_op
from epochcast.describe.graph.op_work import Matrix, OpClass
from epochcast.describe.graph.tensor import Tensor, grad

_STATISTIC_BYTES = 4  # statistics are float32, whatever the data (aten/src/ATen/native/cuda/Normalization.cu)


@register_op
@dataclass(frozen=True, slots=True)
class Norm(Kind):
    """Normalisation over `style`: batch, layer, group, instance, rms, local_response (or any other framework name)."""

    label: ClassVar[str] = "norm"
    style: str = "batch"

    def op_class(self, op: Op) -> OpClass:
        """Batch and layer norms have kernels of their own."""
        match self.style:
            case "batch":
                return OpClass.BATCH_NORM
            case "layer" | "rms":
                return OpClass.LAYER_NORM
            case _:
                return OpClass.OTHER_NORM

    def flops(self, op: Op) -> int:
        """Forward 7: add up, centre, square, add up, scale by the deviation, by γ, shift by β. Backward 11: x̂ again
        (2), the two sums (1 + 2), and dx = γ/σ · (dy − mean − x̂·mean) with its scale and casts (6).
        """
        return (11 if op.is_gradient else 7) * op.inputs[0].elements

    def saved_bytes(self, op: Op) -> int:
        """Mean and inverse deviation: per channel of a batch norm, per row of a layer norm (rms: the latter only)."""
        data = op.inputs[0]
        match self.style:
            case "batch" if len(data.shape) > 1:
                return 2 * _STATISTIC_BYTES * data.shape[1]
            case "layer" | "rms" if op.weights and op.weights[0].elements:
                statistics = 2 if self.style == "layer" else 1
                return statistics * _STATISTIC_BYTES * data.elements // op.weights[0].elements
            case _:
                return 0

    def matrix(self, op: Op) -> Matrix:
        """The rows of a batch norm are its channels."""
        tensor = op.inputs[0]
        if self.style in ("batch", "instance", "group", "local_response") and len(tensor.shape) > 1:
            return _rows(tensor, tensor.shape[1])
        return _rows_by_last_dimension(tensor)

    def gradients(self, op: Op, wanted: Wanted) -> Iterator[Op]:
        """dx, dγ and dβ from dy and the saved input."""
        results = tuple(grad(t) for t in (op.inputs[0], *op.weights) if t.name in wanted)
        if results:
            operands = (grad(op.output), op.inputs[0])
            yield op.backward_op(self, operands, results, weights=op.weights[:1], gradient=Gradient.BOTH)


@register_op
@dataclass(frozen=True, slots=True)
class Softmax(Kind):
    """Softmax over the last dimension (`log`: its logarithm). `masked`: the kernel scales and masks what it reads, and
    writes in the dtype that it reads (Megatron-LM's fused kernels, which autocast does not know).
    """

    label: ClassVar[str] = "softmax"
    runs_as: ClassVar[OpClass] = OpClass.SOFTMAX
    log: bool = False
    masked: bool = False

    def flops(self, op: Op) -> int:
        """Forward 5: max, subtract, exponent (counted once), sum, divide. Backward 4: y·(g − Σ g·y)."""
        return (4 if op.is_gradient else 5) * op.inputs[0].elements

    def matrix(self, op: Op) -> Matrix:
        """A row per distribution."""
        return _rows_by_last_dimension(op.inputs[0])

    def gradients(self, op: Op, wanted: Wanted) -> Iterator[Op]:
        """From dy and the saved output."""
        if op.inputs[0].name in wanted:
            yield op.backward_op(self, (grad(op.output), op.output), (grad(op.inputs[0]),))


def _rows_by_last_dimension(tensor: Tensor) -> Matrix:
    return _rows(tensor, tensor.elements // max(1, tensor.shape[-1])) if tensor.shape else Matrix(1, 1, 1, 1)


def _rows(tensor: Tensor, rows: int) -> Matrix:
    return Matrix(rows, tensor.elements // max(1, rows), 1, 1)
