"""What an op costs before any device is named: flops, bytes, its shape as a matrix product, its class, its kernels.

A multiply-add is two flops. `matrix_flops` are those of convolution, matmul, attention and recurrent cells, which is
what publications count; everything else is arithmetic on elements and counted apart. Bytes are what an ideal kernel
moves: each operand read once, each result written once.

The matrix shape follows the implicit-GEMM view of cuDNN (Chetlur et al. 2014): a forward convolution is
M = N·H'·W', N = C_out/groups, K = (C_in/groups)·k_h·k_w, repeated `groups` times.
"""

from enum import Enum
from functools import singledispatch
from math import ceil, prod
from typing import NamedTuple

from epochcast.graph.kinds import (
    Attention,
    Conv,
    Copy,
    Elementwise,
    Embedding,
    Gather,
    Kind,
    Loss,
    Matmul,
    Norm,
    Opaque,
    OptimizerUpdate,
    Pool,
    Recurrent,
    Reduce,
    Scatter,
    Softmax,
    View,
)
from epochcast.graph.op import Gradient, Op, Phase
from epochcast.graph.tensor import Tensor


class OpClass(Enum):
    """Groups of ops that run at like efficiency; what profiles and tables are keyed by."""

    LINEAR = "linear"
    BATCHED_MATMUL = "batched_matmul"
    CONV = "conv"
    CONV_POINTWISE = "conv_pointwise"
    CONV_GROUPED = "conv_grouped"
    CONV_DEPTHWISE = "conv_depthwise"
    CONV_TRANSPOSED = "conv_transposed"
    ATTENTION = "attention"
    RECURRENT = "recurrent"
    BATCH_NORM = "batch_norm"
    LAYER_NORM = "layer_norm"
    OTHER_NORM = "other_norm"
    POOL = "pool"
    SOFTMAX = "softmax"
    ELEMENTWISE = "elementwise"
    REDUCE = "reduce"
    EMBEDDING = "embedding"
    GATHER = "gather"
    SCATTER = "scatter"
    COPY = "copy"
    LOSS = "loss"
    UPDATE = "update"
    OPAQUE = "opaque"
    VIEW = "view"

    @property
    def is_matrix(self) -> bool:
        """Whether its flops are matrix work."""
        return self in MATRIX_CLASSES


MATRIX_CLASSES = frozenset(
    {
        OpClass.LINEAR,
        OpClass.BATCHED_MATMUL,
        OpClass.CONV,
        OpClass.CONV_POINTWISE,
        OpClass.CONV_GROUPED,
        OpClass.CONV_DEPTHWISE,
        OpClass.CONV_TRANSPOSED,
        OpClass.ATTENTION,
        OpClass.RECURRENT,
    }
)


class Matrix(NamedTuple):
    """An op as `count` products of (m, k) by (k, n). For row-wise ops: m rows of n elements; else m elements."""

    m: int
    n: int
    k: int
    count: int


class Work(NamedTuple):
    """The numbers of one op that grow with the batch."""

    flops: int
    read_bytes: int
    written_bytes: int
    m: int
    n: int
    k: int
    count: int
    launches: int


def work(op: Op) -> Work:
    """All numbers of an op at once."""
    kind = op.kind
    return Work(flops(kind, op), read_bytes(kind, op), written_bytes(kind, op), *matrix(kind, op), launches(kind, op))


# ---- classes ------------------------------------------------------------------------------------


@singledispatch
def op_class(kind: Kind, op: Op) -> OpClass:
    """The class of an op; a kind without a rule is opaque."""
    return _CLASSES.get(type(kind), OpClass.OPAQUE)


@op_class.register
def _(kind: Matmul, op: Op) -> OpClass:
    return OpClass.BATCHED_MATMUL if matrix(kind, op).count > 1 else OpClass.LINEAR


@op_class.register
def _(kind: Conv, op: Op) -> OpClass:
    shape = conv_shape(op)
    if kind.transposed:
        return OpClass.CONV_TRANSPOSED
    if kind.groups > 1:
        return OpClass.CONV_DEPTHWISE if kind.groups == shape.channels_in else OpClass.CONV_GROUPED
    return OpClass.CONV_POINTWISE if prod(shape.kernel) == 1 else OpClass.CONV


@op_class.register
def _(kind: Norm, op: Op) -> OpClass:
    match kind.style:
        case "batch":
            return OpClass.BATCH_NORM
        case "layer" | "rms":
            return OpClass.LAYER_NORM
        case _:
            return OpClass.OTHER_NORM


_CLASSES: dict[type[Kind], OpClass] = {
    Attention: OpClass.ATTENTION,
    Recurrent: OpClass.RECURRENT,
    Pool: OpClass.POOL,
    Softmax: OpClass.SOFTMAX,
    Elementwise: OpClass.ELEMENTWISE,
    Reduce: OpClass.REDUCE,
    Embedding: OpClass.EMBEDDING,
    Gather: OpClass.GATHER,
    Scatter: OpClass.SCATTER,
    Copy: OpClass.COPY,
    Loss: OpClass.LOSS,
    OptimizerUpdate: OpClass.UPDATE,
    Opaque: OpClass.OPAQUE,
    View: OpClass.VIEW,
}


# ---- shapes -------------------------------------------------------------------------------------


class ConvShape(NamedTuple):
    """The geometry of a convolution, read off whichever tensors its direction has."""

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
    """q, k, v: the first inputs forward; behind the incoming gradient backward."""
    q, k, v = op.inputs[:3] if op.phase is Phase.FORWARD else op.inputs[1:4]
    return q, k, v


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
    if len(second) <= 2:
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
            return Matrix(into, out * taps, inside, groups) if kind.transposed else Matrix(out, into * taps, outside, groups)
        case Gradient.DATA:
            return Matrix(inside, into, out * taps, groups)
        case _:
            return Matrix(inside, out * taps, into, groups) if kind.transposed else Matrix(outside, out, into * taps, groups)


@matrix.register
def _(kind: Attention, op: Op) -> Matrix:
    q, k, _ = attention_operands(op)
    return Matrix(q.shape[-2], k.shape[-2], q.shape[-1], prod(q.shape[:-2]))


@matrix.register
def _(kind: Recurrent, op: Op) -> Matrix:
    batch, steps, width = _sequence(op).shape
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
    rows = max(1, op.output.elements) if op.outputs else 1
    total = op.inputs[0].elements if op.inputs else rows
    return Matrix(rows, max(1, total // rows), 1, 1)


def _sequence(op: Op) -> Tensor:
    """The (N, T, I) input of a recurrent op: behind the incoming gradient backward."""
    return op.inputs[0] if op.phase is Phase.FORWARD else op.inputs[1]


# ---- flops --------------------------------------------------------------------------------------

# Arithmetic per element; transcendental functions as the handful of instructions a GPU spends on them.
_ELEMENTWISE_FLOPS = {"copy": 0, "gelu": 10, "silu": 6, "sigmoid": 5, "tanh": 6, "exp": 4, "log": 4, "sqrt": 2}
_ELEMENTWISE_FLOPS |= {"hardswish": 4, "hardsigmoid": 3, "softplus": 8, "mish": 14, "elu": 5, "erf": 8, "pow": 8, "div": 2}
# Forward: mean, centre, square, sum, scale, shift (two each for statistics and application); backward: two sums and the update.
_NORM_FLOPS = {Phase.FORWARD: 7, Phase.BACKWARD: 11}
# max, subtract, exponent (counted once), sum, divide; backward y·(g − Σ g·y).
_SOFTMAX_FLOPS = {Phase.FORWARD: 5, Phase.BACKWARD: 4}


@singledispatch
def flops(kind: Kind, op: Op) -> int:
    """No arithmetic by default: copies, gathers, views, and the opaque, whose flops nobody knows."""
    return 0


@flops.register
def _(kind: Matmul, op: Op) -> int:
    """2·M·N·K per product, and the bias added once per output."""
    m, n, k, count = matrix(kind, op)
    return 2 * m * n * k * count


@flops.register
def _(kind: Conv, op: Op) -> int:
    """2 · N·H'·W'·C_out · (C_in/groups)·k_h·k_w in every direction; transposed: of its input instead of its output."""
    shape = conv_shape(op)
    spatial = shape.spatial_in if kind.transposed else shape.spatial_out
    return 2 * shape.batch * prod(spatial) * shape.channels_out * shape.channels_in // kind.groups * prod(shape.kernel)


@flops.register
def _(kind: Attention, op: Op) -> int:
    """QKᵀ and PV forward: 2·N·H·L·S·(D + D_v). Backward five products: S again, dV, dP, dQ, dK.

    A causal mask is not subtracted: publications and torch's own counter do not.
    """
    q, k, v = attention_operands(op)
    rows = prod(q.shape[:-1]) * k.shape[-2]
    if op.phase is Phase.FORWARD:
        return 2 * rows * (q.shape[-1] + v.shape[-1])
    return 2 * rows * (3 * q.shape[-1] + 2 * v.shape[-1])


@flops.register
def _(kind: Recurrent, op: Op) -> int:
    """2·N·T per weight: input and hidden products of every gate; backward twice that (data and weights at once)."""
    batch, steps, _ = _sequence(op).shape
    forward = 2 * batch * steps * sum(w.elements for w in op.weights if len(w.shape) == 2)
    return forward if op.phase is Phase.FORWARD else 2 * forward


@flops.register
def _(kind: Norm, op: Op) -> int:
    return _NORM_FLOPS[op.phase] * op.inputs[0].elements


@flops.register
def _(kind: Softmax, op: Op) -> int:
    return _SOFTMAX_FLOPS[op.phase] * op.inputs[0].elements


@flops.register
def _(kind: Pool, op: Op) -> int:
    """One operation per element of every window; a global pool sees each input once."""
    if op.phase is Phase.FORWARD and all(kind.window):
        return prod(kind.window) * op.output.elements
    return max(op.inputs[0].elements, op.output.elements)


@flops.register
def _(kind: Elementwise, op: Op) -> int:
    return _ELEMENTWISE_FLOPS.get(kind.function, 1) * op.output.elements


@flops.register
def _(kind: Reduce, op: Op) -> int:
    return op.inputs[0].elements if op.inputs else 0


@flops.register
def _(kind: Loss, op: Op) -> int:
    return 2 * op.inputs[0].elements if kind.function != "nll" else max(1, op.inputs[-1].elements)


@flops.register
def _(kind: OptimizerUpdate, op: Op) -> int:
    return kind.flops_per_element * sum(t.elements for t in op.outputs)


# ---- bytes --------------------------------------------------------------------------------------


@singledispatch
def read_bytes(kind: Kind, op: Op) -> int:
    """Every operand once."""
    return sum(t.bytes for t in op.inputs) + sum(t.bytes for t in op.weights)


@read_bytes.register
def _(kind: View, op: Op) -> int:
    return 0


@read_bytes.register
def _(kind: Embedding, op: Op) -> int:
    """The indices and one row per index; the gradient reads its rows twice, to add to what is there."""
    if op.phase is Phase.FORWARD:
        return sum(t.bytes for t in op.inputs) + op.output.bytes
    return sum(t.bytes for t in op.inputs) + op.inputs[0].bytes


@read_bytes.register
def _(kind: Gather, op: Op) -> int:
    """What is gathered, and the indices: never more than the operands hold."""
    gathered = sum(t.bytes for t in op.outputs) + sum(t.bytes for t in op.inputs[1:])
    return min(gathered, sum(t.bytes for t in op.inputs) + sum(t.bytes for t in op.weights))


@singledispatch
def written_bytes(kind: Kind, op: Op) -> int:
    """Every result once."""
    return sum(t.bytes for t in op.outputs)


@written_bytes.register
def _(kind: View, op: Op) -> int:
    return 0


@written_bytes.register
def _(kind: Embedding, op: Op) -> int:
    """The gradient of a table is filled with zeros, then the rows are added."""
    return op.output.bytes + (op.inputs[0].bytes if op.phase is Phase.BACKWARD else 0)


# ---- kernels ------------------------------------------------------------------------------------

# PyTorch's multi-tensor apply: tensors per launch by how many lists a pass touches, elements per block, blocks per launch
# (aten/src/ATen/native/cuda/ForeachFunctors and MultiTensorApply.cuh: depth_to_max_tensors, kChunkSize, depth_to_max_blocks).
_FOREACH_TENSORS = (110, 64, 48, 36, 30)
_FOREACH_ELEMENTS = 65536 * 320


@singledispatch
def launches(kind: Kind, op: Op) -> int:
    """Kernels started: one."""
    return 1


@launches.register
def _(kind: View, op: Op) -> int:
    return 0


@launches.register
def _(kind: Recurrent, op: Op) -> int:
    """One product per step and direction, and one over all inputs before them."""
    _, steps, _ = _sequence(op).shape
    return (steps * kind.directions + 1) * (1 if op.phase is Phase.FORWARD else 2)


@launches.register
def _(kind: Attention, op: Op) -> int:
    """Forward is one kernel; backward prepares row sums, runs, and converts dQ."""
    return 1 if op.phase is Phase.FORWARD else 3


@launches.register
def _(kind: OptimizerUpdate, op: Op) -> int:
    tensors = max(1, len(op.outputs))
    if kind.style == "loop":
        return tensors
    lists = max(1, round((len(op.inputs) + len(op.weights)) / tensors))
    elements = sum(t.elements for t in op.outputs)
    return max(ceil(tensors / _FOREACH_TENSORS[min(lists, 5) - 1]), ceil(elements / _FOREACH_ELEMENTS))
