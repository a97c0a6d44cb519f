"""Convolution.

Its matrix shape follows the implicit-GEMM view of cuDNN (Chetlur et al. 2014): a forward convolution is M = N·H'·W',
N = C_out/groups, K = (C_in/groups)·k_h·k_w, repeated `groups` times. Its gradients are the two other products of the
same three sizes. For a strided data gradient M is the size of its result (N·H·W), and most of its taps read no output:
there 2·M·N·K·repeats exceeds its flops.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar, NamedTuple

from epochcast.describe.graph.op import Gradient, Kind, Op, Wanted
from epochcast.describe.graph.op_registry import register_op
from epochcast.describe.graph.op_work import Matrix, OpClass, WindowSizes
from epochcast.describe.graph.ops.elements_op import bias_gradients
from epochcast.describe.graph.receptive_field import ReceptiveField
from epochcast.describe.graph.tensor import Tensor, grad
from epochcast.errors import BadInput


@register_op
@dataclass(frozen=True, slots=True)
class Conv(Kind):
    """Convolution in one to three dimensions; weight (C_out, C_in/groups, …k), transposed (C_in, C_out/groups, …k)."""

    label: ClassVar[str] = "conv"
    stride: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0)
    dilation: tuple[int, ...] = (1, 1)
    groups: int = 1
    transposed: bool = False

    def check(self, weights: Sequence[Tensor]) -> None:
        """Stride, dilation and padding have the dimensions of the kernel."""
        if weights:
            steps = {"stride": self.stride, "dilation": self.dilation}
            check_window(self.label, weights[0].shape[2:], steps, self.padding)

    def op_class(self, op: Op) -> OpClass:
        """Depthwise: a group per channel; pointwise: a kernel of one element."""
        shape = conv_shape(op)
        if self.transposed:
            return OpClass.CONV_TRANSPOSED
        if self.groups > 1:
            return OpClass.CONV_DEPTHWISE if self.groups == shape.channels_in else OpClass.CONV_GROUPED
        return OpClass.CONV_POINTWISE if prod(shape.kernel) == 1 else OpClass.CONV

    def flops(self, op: Op) -> int:
        """2 · N·H'·W'·C_out · (C_in/groups)·k_h·k_w in every direction; transposed: of its input, not its output."""
        shape = conv_shape(op)
        spatial = shape.spatial_in if self.transposed else shape.spatial_out
        results = shape.batch * prod(spatial) * shape.channels_out
        return 2 * results * shape.channels_in // self.groups * prod(shape.kernel)

    def matrix(self, op: Op) -> Matrix:
        """As an implicit matrix product."""
        shape = conv_shape(op)
        groups, taps = self.groups, prod(shape.kernel)
        into, out = shape.channels_in // groups, shape.channels_out // groups
        inside, outside = shape.batch * prod(shape.spatial_in), shape.batch * prod(shape.spatial_out)
        match op.gradient:
            case Gradient.WEIGHTS:
                if self.transposed:
                    return Matrix(into, out * taps, inside, groups)
                return Matrix(out, into * taps, outside, groups)
            case Gradient.DATA:
                return Matrix(inside, into, out * taps, groups)
            case _:
                if self.transposed:
                    return Matrix(inside, out * taps, into, groups)
                return Matrix(outside, out, into * taps, groups)

    def window_sizes(self, op: Op) -> WindowSizes:
        """Those of its kernel."""
        shape = conv_shape(op)
        return WindowSizes(prod(shape.kernel), prod(self.stride), self.groups, shape.channels_in, shape.channels_out)

    def gradients(self, op: Op, wanted: Wanted) -> Iterator[Op]:
        """dx from (dy; w), dw from (dy, x): each as many flops as forward."""
        arriving, first, weight = grad(op.output), op.inputs[0], op.weights[0]
        if first.name in wanted:
            yield op.backward_op(self, (arriving,), (grad(first),), weights=(weight,), suffix="data")
        if weight.name in wanted:
            operands, results = (arriving, first), (grad(weight),)
            yield op.backward_op(self, operands, results, gradient=Gradient.WEIGHTS, suffix="weights")
        yield from bias_gradients(op, wanted)

    def receptive_field(self, op: Op, before: ReceptiveField, spatial: tuple[int, ...]) -> ReceptiveField:
        """Widened by the kernel."""
        window = op.weights[0].shape[2:]
        if len(window) != len(spatial):
            return before
        if self.transposed:
            return before.transposed(window, self.stride)
        return before.windowed(window, self.stride, self.dilation)


class ConvShape(NamedTuple):
    """The geometry of a convolution, read from the tensors that its direction has."""

    batch: int
    channels_in: int
    channels_out: int
    spatial_in: tuple[int, ...]
    spatial_out: tuple[int, ...]
    kernel: tuple[int, ...]


def conv_shape(op: Op) -> ConvShape:
    """Forward reads (x; w) → y; the data gradient (dy; w) → dx; the weight gradient (dy, x) → dw."""
    match op.gradient:
        case Gradient.DATA:
            large, small, weight = op.outputs[0].shape, op.inputs[0].shape, op.weights[0].shape
        case Gradient.WEIGHTS:
            small, large, weight = op.inputs[0].shape, op.inputs[1].shape, op.outputs[0].shape
        case _:
            large, small, weight = op.inputs[0].shape, op.outputs[0].shape, op.weights[0].shape
    return ConvShape(large[0], large[1], small[1], large[2:], small[2:], weight[2:])


def check_window(label: str, window: Sequence[int], steps: Mapping[str, Sequence[int]], padding: Sequence[int]) -> None:
    """Refuse a sliding window whose stride, padding or dilation has another number of dimensions, or stands still."""
    for name, sizes in {**steps, "padding": padding}.items():
        if len(sizes) != len(window):
            raise BadInput(f"a {label} in {len(window)} dimensions needs a {name} in {len(window)}, got {list(sizes)}")
    for name, sizes in steps.items():
        if any(size < 1 for size in sizes):
            raise BadInput(f"the {name} of a {label} must be at least 1, got {list(sizes)}")
