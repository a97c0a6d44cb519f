"""The results of experts that a loop runs one by one, joined to one tensor."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from epochcast.describe.graph.op import Gradient, Kind, Op, Wanted
from epochcast.describe.graph.op_registry import register_op
from epochcast.describe.graph.op_work import Matrix, OpClass
from epochcast.describe.graph.ops.elements_op import Copy
from epochcast.describe.graph.tensor import DType, Tensor


@register_op
@dataclass(frozen=True, slots=True)
class JoinedSlices(Kind):
    """Concatenates what `experts` products gave, whose weights are slices of one stack; the op's weight is a slice.

    The gradient of a slice in PyTorch (`select_backward`) is a stack of zeros with the slice copied into it, and
    autograd adds the stacks of all slices in place:

        written = 2·E stacks        (zeros, sum)
        read    = 2·E stacks        (both operands of the sum)

    So the bytes are those of E² slices. Frozen weights have none of it.
    """

    label: ClassVar[str] = "joined"
    runs_as: ClassVar[OpClass] = OpClass.ELEMENTWISE
    experts: int = 1

    def flops(self, op: Op) -> int:
        """None that count."""
        return 0

    def read_bytes(self, op: Op) -> int:
        """Every result once; of the stacks both operands of their sum."""
        return self._stacked_bytes(op) if op.is_gradient else sum(t.bytes for t in op.inputs)

    def written_bytes(self, op: Op) -> int:
        """The joined tensor; of the stacks their zeros and their sum."""
        return self._stacked_bytes(op) if op.is_gradient else op.output.bytes

    def launches(self, op: Op) -> int:
        """One; for every slice of a stack zeros, a copy and a sum."""
        return 3 * self.experts if op.is_gradient else 1

    def matrix(self, op: Op) -> Matrix:
        """The values that it writes."""
        slices = self.experts**2 * op.weights[0].elements
        return Matrix(slices if op.is_gradient else op.output.elements, 1, 1, 1)

    def gradients(self, op: Op, wanted: Wanted) -> Iterator[Op]:
        """The pieces' gradients are views; the stack's is written where the weights are trained."""
        yield from Copy("concatenate").gradients(op, wanted)
        if op.weights[0].name in wanted:
            done = Tensor((1,), DType.INT32, f"{op.name}.stacked")
            yield op.backward_op(
                self, (op.weights[0],), (done,), weights=op.weights, gradient=Gradient.WEIGHTS, suffix="stacked"
            )

    def _stacked_bytes(self, op: Op) -> int:
        return 2 * self.experts**2 * op.weights[0].bytes
