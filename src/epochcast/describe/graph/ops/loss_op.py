"""Losses."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from epochcast.describe.graph.op import Kind, Op, Wanted
from epochcast.describe.graph.op_registry import register_op
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.tensor import grad


@register_op
@dataclass(frozen=True, slots=True)
class Loss(Kind):
    """From outputs and targets to one number; `function` nll, mse, bce, …"""

    label: ClassVar[str] = "loss"
    runs_as: ClassVar[OpClass] = OpClass.LOSS
    function: str = "nll"

    def flops(self, op: Op) -> int:
        """Two per output; nll only picks one for every target."""
        return 2 * op.inputs[0].elements if self.function != "nll" else max(1, op.inputs[-1].elements)

    def gradients(self, op: Op, wanted: Wanted) -> Iterator[Op]:
        """With respect to the loss's input, from the targets (and the input, unless nll, which only picks)."""
        first = op.inputs[0]
        if first.name in wanted:
            saved = op.inputs[1:] if self.function == "nll" else op.inputs
            yield op.backward_op(self, saved, (grad(first),))
