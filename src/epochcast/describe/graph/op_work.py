"""What an op costs, independent of the device: flops, bytes, its shape as a matrix product, its class, its kernels.

A multiply-add is two flops. Matrix flops are those of convolution, matmul, attention and recurrent cells, which is
what publications count; everything else is arithmetic on elements and counted apart. Bytes are what an ideal kernel
moves: each operand read once, each result written once.

The shape of an op as a matrix product is in `shapes`.
"""

from collections.abc import Callable, Iterable
from enum import Enum
from functools import singledispatch
from math import ceil, prod
from typing import NamedTuple

from epochcast.describe.graph.op import Gradient, Op
from epochcast.describe.graph.op_kinds import (
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
from epochcast.describe.graph.op_shapes import attention_operands, conv_shape, is_batched, matrix, seen_keys, sequence


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


class OpWork(NamedTuple):
    """The numbers of one op that grow with the batch."""

    flops: int
    read_bytes: int
    written_bytes: int
    m: int
    n: int
    k: int
    repeats: int
    launches: int


def work(op: Op) -> OpWork:
    """All numbers of an op at once."""
    kind = op.kind
    return OpWork(flops(kind, op), read_bytes(kind, op), written_bytes(kind, op), *matrix(kind, op), launches(kind, op))


# ---- classes ------------------------------------------------------------------------------------


def op_class(kind: Kind, op: Op) -> OpClass:
    """The class of an op. A kind without a formula for its flops is opaque, whatever its class would be."""
    return class_rule(kind, op) if is_counted(kind) else OpClass.OPAQUE


def is_counted(kind: Kind) -> bool:
    """Whether there is a formula for the flops of a kind (which may be zero)."""
    return not isinstance(kind, Opaque) and flops.dispatch(type(kind)) is not flops.dispatch(object)


def opaque_names(ops: Iterable[Op]) -> tuple[str, ...]:
    """Ops without a formula, each once, in order: targets of opaque ops, labels of kinds."""
    kinds = (op.kind for op in ops)
    uncounted = (kind for kind in kinds if not is_counted(kind))
    return tuple(dict.fromkeys(kind.target if isinstance(kind, Opaque) else kind.label for kind in uncounted))


@singledispatch
def class_rule(kind: Kind, op: Op) -> OpClass:
    """The class of an op whose flops are counted."""
    return OpClass.OPAQUE


@class_rule.register
def _(kind: Matmul, op: Op) -> OpClass:
    return OpClass.BATCHED_MATMUL if is_batched(op) else OpClass.LINEAR


@class_rule.register
def _(kind: Conv, op: Op) -> OpClass:
    shape = conv_shape(op)
    if kind.transposed:
        return OpClass.CONV_TRANSPOSED
    if kind.groups > 1:
        return OpClass.CONV_DEPTHWISE if kind.groups == shape.channels_in else OpClass.CONV_GROUPED
    return OpClass.CONV_POINTWISE if prod(shape.kernel) == 1 else OpClass.CONV


@class_rule.register
def _(kind: Norm, op: Op) -> OpClass:
    match kind.style:
        case "batch":
            return OpClass.BATCH_NORM
        case "layer" | "rms":
            return OpClass.LAYER_NORM
        case _:
            return OpClass.OTHER_NORM


def _always(op_class: OpClass) -> Callable[[Kind, Op], OpClass]:
    return lambda kind, op: op_class


for _kind, _op_class in {
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
}.items():
    class_rule.register(_kind, _always(_op_class))


# ---- flops --------------------------------------------------------------------------------------

# Arithmetic per element; transcendental functions as the handful of instructions a GPU spends on them.
_ELEMENTWISE_FLOPS = {
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
# Forward: add up, centre, square, add up, scale by the deviation, by γ, shift by β. Backward: x̂ again (2), the two sums
# (1 + 2), and dx = γ/σ · (dy − mean − x̂·mean) with its scale and casts (6).
_NORM_FLOPS = {False: 7, True: 11}
# max, subtract, exponent (counted once), sum, divide; backward y·(g − Σ g·y).
_SOFTMAX_FLOPS = {False: 5, True: 4}


@singledispatch
def flops(kind: Kind, op: Op) -> int:
    """A kind without a formula: unknown. Its class is opaque, so that it is costed by its bytes and listed."""
    return 0


@flops.register(Embedding)
@flops.register(Gather)
@flops.register(Scatter)
@flops.register(Copy)
@flops.register(View)
@flops.register(Opaque)
def _(kind: Kind, op: Op) -> int:
    """No arithmetic; for opaque ops, unknown."""
    return 0


@flops.register
def _(kind: Matmul, op: Op) -> int:
    """2·M·N·K per product. A bias is added in the epilogue and not counted: publications do not."""
    m, n, k, repeats = matrix(kind, op)
    return 2 * m * n * k * repeats


@flops.register
def _(kind: Conv, op: Op) -> int:
    """2 · N·H'·W'·C_out · (C_in/groups)·k_h·k_w in every direction; transposed: of its input instead of its output."""
    shape = conv_shape(op)
    spatial = shape.spatial_in if kind.transposed else shape.spatial_out
    return 2 * shape.batch * prod(spatial) * shape.channels_out * shape.channels_in // kind.groups * prod(shape.kernel)


@flops.register
def _(kind: Attention, op: Op) -> int:
    """QKᵀ and PV forward: 2·N·H·L·S·(D + D_v). Backward five products: S again, dV, dP, dQ, dK.

    A causal mask is not subtracted: publications and torch's own counter do not. A window is. What of it runs says
    `shapes.run_fraction`.
    """
    q, k, v = attention_operands(op)
    rows = prod(q.shape[:-1]) * seen_keys(kind, k)
    if not op.is_gradient:
        return 2 * rows * (q.shape[-1] + v.shape[-1])
    return 2 * rows * (3 * q.shape[-1] + 2 * v.shape[-1])


@flops.register
def _(kind: Recurrent, op: Op) -> int:
    """2·N·T per weight: input and hidden products of every gate. Backward as much for the data, in any case (the
    gradient passes through all steps), and as much again for the weights, unless they are frozen.
    """
    batch, steps, _ = sequence(op).shape
    once = 2 * batch * steps * sum(w.elements for w in op.weights if len(w.shape) == 2)
    return once if op.gradient in (Gradient.NONE, Gradient.DATA) else 2 * once


@flops.register
def _(kind: Norm, op: Op) -> int:
    return _NORM_FLOPS[op.is_gradient] * op.inputs[0].elements


@flops.register
def _(kind: Softmax, op: Op) -> int:
    return _SOFTMAX_FLOPS[op.is_gradient] * op.inputs[0].elements


@flops.register
def _(kind: Pool, op: Op) -> int:
    """One operation per element of every window; a global pool sees each input once."""
    if not op.is_gradient and all(kind.window):
        return prod(kind.window) * op.output.elements
    return max(op.inputs[0].elements, op.output.elements)


@flops.register
def _(kind: Elementwise, op: Op) -> int:
    return _ELEMENTWISE_FLOPS.get(kind.function, 1) * op.output.elements


@flops.register
def _(kind: Reduce, op: Op) -> int:
    return sum(t.elements for t in op.inputs)


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
    if not op.is_gradient:
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
    return op.output.bytes + (op.inputs[0].bytes if op.is_gradient else 0)


# ---- kernels ------------------------------------------------------------------------------------

# PyTorch's multi-tensor apply (aten/src/ATen/native/cuda/MultiTensorApply.cuh): tensors per launch by how many lists of
# them a pass touches (depth_to_max_tensors), blocks per launch (depth_to_max_blocks), elements per block (kChunkSize).
_LAUNCH_TENSORS = (110, 64, 48, 36, 30)
_LAUNCH_BLOCKS = 320
_BLOCK_ELEMENTS = 65536


@singledispatch
def launches(kind: Kind, op: Op) -> int:
    """Kernels started: one."""
    return 1


@launches.register
def _(kind: View, op: Op) -> int:
    return 0


# Ops' worth of launches per row of decompositions, whose steps wait for each other. Assumed from their algorithms
# (Golub & Van Loan, Matrix Computations): Householder steps, and sweeps over them where eigenvalues are iterated.
_LAUNCHES_PER_ROW = {
    **dict.fromkeys(("_linalg_svd", "linalg_eig", "_linalg_eigvals"), 4),
    "_linalg_eigh": 2,
    **dict.fromkeys(("linalg_qr", "geqrf", "linalg_lu", "linalg_lu_factor_ex", "linalg_lstsq", "linalg_inv_ex"), 1),
    **dict.fromkeys(("_linalg_solve_ex", "_linalg_det", "_linalg_slogdet", "linalg_cholesky_ex"), 1),
}


@launches.register
def _(kind: Opaque, op: Op) -> int:
    """One, but for a decomposition: its rows are worked on one after the other."""
    per_row = _LAUNCHES_PER_ROW.get(kind.target.removeprefix("aten.").partition(".")[0], 0)
    matrix_shape = op.inputs[0].shape[-2:] if per_row and op.inputs else ()
    return max(1, per_row * min(matrix_shape, default=1))


@launches.register
def _(kind: Recurrent, op: Op) -> int:
    """One product per step and direction, and one over all inputs before them; backward twice that."""
    _, steps, _ = sequence(op).shape
    return (steps * kind.directions + 1) * (2 if op.is_gradient else 1)


@launches.register
def _(kind: Attention, op: Op) -> int:
    """Forward is one kernel; backward prepares row sums, runs, and converts dQ."""
    return 3 if op.is_gradient else 1


@launches.register
def _(kind: OptimizerUpdate, op: Op) -> int:
    """A loop starts one kernel per tensor; a multi-tensor kernel starts when it is full of tensors or of blocks.

    A list that a pass reads twice (g·g) is counted once.
    """
    # A fused kernel writes the parameters and their state; what it only reads is the gradients, one per parameter.
    tensors = op.outputs[: len(op.inputs) - len(op.outputs)] if kind.style == "fused" else op.outputs
    if kind.style == "loop" or not tensors:
        return max(1, len(tensors))
    lists = len({t.name for t in (*op.inputs, *op.outputs)}) // len(tensors)
    max_tensors = _LAUNCH_TENSORS[min(max(lists, 1), len(_LAUNCH_TENSORS)) - 1]
    started, tensors_in_launch, blocks = 0, 0, 0
    for tensor in tensors:
        tensors_in_launch += 1
        blocks += ceil(tensor.elements / _BLOCK_ELEMENTS)
        if blocks >= _LAUNCH_BLOCKS:
            started, blocks = started + blocks // _LAUNCH_BLOCKS, blocks % _LAUNCH_BLOCKS
            tensors_in_launch = int(blocks > 0)
        if tensors_in_launch == max_tensors and blocks:
            started, tensors_in_launch, blocks = started + 1, 0, 0
    return max(1, started + (blocks > 0))
