"""The shapes of an op: a convolution's geometry, attention's operands, and every op as a matrix product.

The matrix shape follows the implicit-GEMM view of cuDNN (Chetlur et al. 2014): a forward convolution is
M = N·H'·W', N = C_out/groups, K = (C_in/groups)·k_h·k_w, repeated `groups` times. Its gradients are the two other
products of the same three sizes. For a strided data gradient M is the size of its result (N·H·W), and most of its taps
read no output: there 2·M·N·K·repeats exceeds its flops.
"""

from collections.abc import Sequence
from functools import singledispatch
from itertools import zip_longest
from math import prod
from typing import NamedTuple

from epochcast.describe.graph.op import Gradient, Op
from epochcast.describe.graph.op_kinds import Attention, Conv, Kind, Matmul, Norm, Pool, Recurrent, Reduce, Softmax
from epochcast.describe.graph.tensor import Tensor
from epochcast.errors import BadInput


def check_window(kind: Kind, weights: Sequence[Tensor]) -> None:
    """Refuse a sliding window whose stride, padding or dilation has another number of dimensions, or stands still."""
    match kind:
        case Conv() if weights:
            window = weights[0].shape[2:]
            steps = {"stride": kind.stride, "dilation": kind.dilation}
        case Pool() if all(kind.window):
            window, steps = kind.window, {"stride": kind.stride}
        case _:
            return
    for name, sizes in {**steps, "padding": kind.padding}.items():
        if len(sizes) != len(window):
            raise BadInput(
                f"a {kind.label} in {len(window)} dimensions needs a {name} in {len(window)}, got {list(sizes)}"
            )
    for name, sizes in steps.items():
        if any(size < 1 for size in sizes):
            raise BadInput(f"the {name} of a {kind.label} must be at least 1, got {list(sizes)}")


class Matrix(NamedTuple):
    """An op as `repeats` products of (m, k) by (k, n). For row-wise ops: m rows of n elements; else m elements."""

    m: int
    n: int
    k: int
    repeats: int


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
    kind = op.kind
    assert isinstance(kind, Conv)
    match op.gradient:
        case Gradient.DATA:
            large, small, weight = op.outputs[0].shape, op.inputs[0].shape, op.weights[0].shape
        case Gradient.WEIGHTS:
            small, large, weight = op.inputs[0].shape, op.inputs[1].shape, op.outputs[0].shape
        case _:
            large, small, weight = op.inputs[0].shape, op.outputs[0].shape, op.weights[0].shape
    return ConvShape(large[0], large[1], small[1], large[2:], small[2:], weight[2:])


def attention_operands(op: Op) -> tuple[Tensor, Tensor, Tensor]:
    """q, k, v: the first inputs in forward; after the incoming gradient in backward."""
    q, k, v = op.inputs[1:4] if op.is_gradient else op.inputs[:3]
    return q, k, v


def seen_keys(kind: Attention, k: Tensor) -> int:
    """How many keys a query looks at: all, or a window of them."""
    return min(kind.window or k.shape[-2], k.shape[-2])


def run_fraction(kind: Kind, op: Op) -> float:
    """Which part of its counted flops a kernel runs: flash attention skips what its causal mask hides (Dao 2023).

    Query i of S looks at min(i, w) keys, w the window or S: in all w·(2S − w + 1)/2 of the S·w that are counted.
    Queries of a part of the sequence are taken as spread evenly over it.
    """
    if not (isinstance(kind, Attention) and kind.causal):
        return 1.0
    _, k, _ = attention_operands(op)
    keys = max(1, k.shape[-2])
    return (2 * keys - seen_keys(kind, k) + 1) / (2 * keys)


def is_batched(op: Op) -> bool:
    """Whether a matmul is many small products: its second operand has dimensions in front of the matrix's two."""
    second = op.weights[0] if op.weights else op.inputs[1]
    return len(second.shape) > 2


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Numpy's rule: aligned at the end, sizes are equal or 1; None where they are not."""
    aligned = list(zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1))
    if any(len(set(sizes) - {1}) > 1 for sizes in aligned):
        return None
    return tuple(max(sizes) for sizes in reversed(aligned))


@singledispatch
def matrix(kind: Kind, op: Op) -> Matrix:
    """By default m elements of one column: the size of the larger side."""
    return Matrix(max([t.elements for t in (*op.outputs, *op.inputs)], default=0), 1, 1, 1)


@matrix.register
def _(kind: Matmul, op: Op) -> Matrix:
    first = op.inputs[0].shape
    second = op.weights[0].shape if op.weights else op.inputs[1].shape
    depth = first[-2] if kind.transpose_a and len(first) > 1 else first[-1]
    columns = second[-2] if kind.transpose_b and len(second) > 1 else second[-1]
    total = op.output.elements
    if not is_batched(op):
        return Matrix(total // max(1, columns), columns, depth, 1)
    rows = op.output.shape[-2]
    return Matrix(rows, columns, depth, total // max(1, rows * columns))


@matrix.register
def _(kind: Conv, op: Op) -> Matrix:
    shape = conv_shape(op)
    groups, taps = kind.groups, prod(shape.kernel)
    into, out = shape.channels_in // groups, shape.channels_out // groups
    inside, outside = shape.batch * prod(shape.spatial_in), shape.batch * prod(shape.spatial_out)
    match op.gradient:
        case Gradient.WEIGHTS:
            if kind.transposed:
                return Matrix(into, out * taps, inside, groups)
            return Matrix(out, into * taps, outside, groups)
        case Gradient.DATA:
            return Matrix(inside, into, out * taps, groups)
        case _:
            if kind.transposed:
                return Matrix(inside, out * taps, into, groups)
            return Matrix(outside, out, into * taps, groups)


@matrix.register
def _(kind: Attention, op: Op) -> Matrix:
    q, k, _ = attention_operands(op)
    return Matrix(q.shape[-2], seen_keys(kind, k), q.shape[-1], prod(q.shape[:-2]))


@matrix.register
def _(kind: Recurrent, op: Op) -> Matrix:
    batch, steps, width = sequence(op).shape
    return Matrix(batch, kind.gates * kind.hidden, width + kind.hidden, steps * kind.directions)


@matrix.register(Softmax)
@matrix.register(Norm)
def _(kind: Kind, op: Op) -> Matrix:
    """Rows that are normalised together; batch norm's rows are its channels."""
    tensor = op.inputs[0]
    if not tensor.shape:
        return Matrix(1, 1, 1, 1)
    across_batch = isinstance(kind, Norm) and kind.style in ("batch", "instance", "group", "local_response")
    rows = tensor.shape[1] if across_batch and len(tensor.shape) > 1 else tensor.elements // max(1, tensor.shape[-1])
    return Matrix(rows, tensor.elements // max(1, rows), 1, 1)


@matrix.register
def _(kind: Reduce, op: Op) -> Matrix:
    rows = max(1, sum(t.elements for t in op.outputs))
    total = sum(t.elements for t in op.inputs)
    return Matrix(rows, max(1, total // rows), 1, 1)


def sequence(op: Op) -> Tensor:
    """The (N, T, I) input of a recurrent op; in backward it follows the incoming gradient."""
    return op.inputs[1] if op.is_gradient else op.inputs[0]
