"""Reads and writes by index: embeddings, gathers, scatters."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from epochcast.describe.graph.op import Gradient, Kind, Op, Wanted
from epochcast.describe.graph.op_registry import register_op
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.ops.elements_op import View
from epochcast.describe.graph.tensor import grad


@register_op
@dataclass(frozen=True, slots=True)
class Embedding(Kind):
    """Rows of a table (the weight) by index. Moves the rows looked up, not the table."""

    label: ClassVar[str] = "embedding"
    runs_as: ClassVar[OpClass] = OpClass.EMBEDDING

    def flops(self, op: Op) -> int:
        """None."""
        return 0

    def read_bytes(self, op: Op) -> int:
        """The indices and one row per index; the gradient reads its rows twice, to add to what is there."""
        rows = op.inputs[0] if op.is_gradient else op.output
        return sum(t.bytes for t in op.inputs) + rows.bytes

    def written_bytes(self, op: Op) -> int:
        """The gradient of a table is filled with zeros, then the rows are added."""
        return op.output.bytes + (op.inputs[0].bytes if op.is_gradient else 0)

    def gradients(self, op: Op, wanted: Wanted) -> Iterator[Op]:
        """A dense gradient of the whole table, filled with zeros, then added to by row."""
        if op.weights and op.weights[0].name in wanted:
            operands = (grad(op.output), *op.inputs)
            yield op.backward_op(self, operands, (grad(op.weights[0]),), gradient=Gradient.WEIGHTS)


@register_op
@dataclass(frozen=True, slots=True)
class Gather(Kind):
    """Elements or rows of an input by index, interpolation and other scattered reads."""

    label: ClassVar[str] = "gather"
    runs_as: ClassVar[OpClass] = OpClass.GATHER
    function: str = "index"

    def flops(self, op: Op) -> int:
        """None."""
        return 0

    def read_bytes(self, op: Op) -> int:
        """What is gathered, and the indices: never more than the operands hold."""
        gathered = sum(t.bytes for t in op.outputs) + sum(t.bytes for t in op.inputs[1:])
        return min(gathered, sum(t.bytes for t in op.inputs) + sum(t.bytes for t in op.weights))

    def gradients(self, op: Op, wanted: Wanted) -> Iterator[Op]:
        """What was gathered is scattered."""
        if op.inputs[0].name in wanted:
            yield op.backward_op(Scatter(self.function), (grad(op.output), *op.inputs[1:]), (grad(op.inputs[0]),))


@register_op
@dataclass(frozen=True, slots=True)
class Scatter(Kind):
    """Writes or adds by index: embedding gradients, max-unpooling, mixture-of-experts combine."""

    label: ClassVar[str] = "scatter"
    runs_as: ClassVar[OpClass] = OpClass.SCATTER
    function: str = "add"

    def flops(self, op: Op) -> int:
        """None."""
        return 0

    def gradients(self, op: Op, wanted: Wanted) -> Iterator[Op]:
        """The rows that were written are gathered; a tensor they were added to gets the gradient as it is."""
        first, *rest = op.inputs
        bases = [t for t in rest if t.name in wanted and t.shape == op.output.shape]
        if first.name in wanted:
            indices = (t for t in rest if t not in bases)
            yield op.backward_op(Gather(self.function), (grad(op.output), *indices), (grad(first),))
        for base in bases:
            yield op.backward_op(View("pass"), (grad(op.output),), (grad(base),), suffix="pass")
