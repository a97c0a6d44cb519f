"""The numbers of an op, independent of the device: its class, flops, bytes, its shape as a matrix product, its kernels.

A multiply-add is two flops. Matrix flops are those of convolution, matmul, attention and recurrent cells, which is
what publications count; everything else is arithmetic on elements and counted apart. Bytes are what an ideal kernel
moves: each operand read once, each result written once. The formulas are those of the op's `Kind`.
"""

from enum import Enum
from typing import NamedTuple


class OpClass(Enum):
    """Groups of ops that run at like efficiency; what profiles and tables are keyed by.

    >>> import epochcast as ec
    >>> ec.OpClass("conv") is ec.OpClass.CONV
    True
    """

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
    """An op as `repeats` products of (m, k) by (k, n). For row-wise ops: m rows of n elements; else m elements."""

    m: int
    n: int
    k: int
    repeats: int


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


class WindowSizes(NamedTuple):
    """The sizes of an op that do not grow with the batch: elements of its window and stride, groups, channels."""

    window: int = 1
    stride: int = 1
    groups: int = 1
    channels_in: int = 0
    channels_out: int = 0
