"""Pooling."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from epochcast.describe.graph.op import Kind, Op, Wanted
from epochcast.describe.graph.op_registry import register_op
from epochcast.describe.graph.op_work import OpClass, WindowSizes
from epochcast.describe.graph.ops.conv_op import check_window
from epochcast.describe.graph.ops.elements_op import Elementwise
from epochcast.describe.graph.receptive_field import ReceptiveField
from epochcast.describe.graph.tensor import Tensor, grad


@register_op
@dataclass(frozen=True, slots=True)
class Pool(Kind):
    """Pooling by `style` (max, average); `window` (0,) is a global or adaptive pool over everything it can see."""

    label: ClassVar[str] = "pool"
    runs_as: ClassVar[OpClass] = OpClass.POOL
    style: str = "max"
    window: tuple[int, ...] = (2, 2)
    stride: tuple[int, ...] = (2, 2)
    padding: tuple[int, ...] = (0, 0)

    def check(self, weights: Sequence[Tensor]) -> None:
        """Stride and padding have the dimensions of the window."""
        if all(self.window):
            check_window(self.label, self.window, {"stride": self.stride}, self.padding)

    def flops(self, op: Op) -> int:
        """One operation per element of every window; a global pool sees each input once."""
        if not op.is_gradient and all(self.window):
            return prod(self.window) * op.output.elements
        return max(op.inputs[0].elements, op.output.elements)

    def window_sizes(self, op: Op) -> WindowSizes:
        """Those of its window; a global pool has none."""
        return WindowSizes(prod(self.window), prod(self.stride)) if all(self.window) else WindowSizes()

    def gradients(self, op: Op, wanted: Wanted) -> Iterator[Op]:
        """Max pooling reads its input and the indices of the maxima; average pooling reads neither.

        A global average spreads its gradient by a broadcast and a division.
        """
        first = op.inputs[0]
        if first.name not in wanted:
            return
        if not all(self.window) and self.style == "average":
            yield op.backward_op(Elementwise("div"), (grad(op.output),), (grad(first),))
            return
        saved = (first, *op.outputs[1:]) if self.style == "max" else ()
        yield op.backward_op(self, (grad(op.output), *saved), (grad(first),))

    def receptive_field(self, op: Op, before: ReceptiveField, spatial: tuple[int, ...]) -> ReceptiveField:
        """Widened by the window; a global pool sees everything."""
        if not all(self.window):
            return before.mixed(spatial)
        if len(self.window) != len(spatial):
            return before
        return before.windowed(self.window, self.stride, (1,) * len(spatial))
