"""Tensors as a forecaster sees them: a shape, a dtype, the name of the storage behind them, and what they are to other
tensors (a gradient, a copy). No values. A name identifies a storage and means nothing else: no code parses it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest
from math import prod
from typing import NamedTuple

from epochcast.base.bounds import check_tensor


class DType(Enum):
    """How an element is stored. The value is the name every framework understands."""

    FLOAT64 = "float64"
    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT8 = "float8"
    FLOAT4 = "float4"
    COMPLEX64 = "complex64"
    COMPLEX128 = "complex128"
    INT64 = "int64"
    INT32 = "int32"
    INT16 = "int16"
    INT8 = "int8"
    UINT8 = "uint8"
    BOOL = "bool"

    # Enum hashes by name, which is slow; dtypes are looked up for every tensor, and each member exists once.
    __hash__ = object.__hash__

    @property
    def bytes(self) -> int:
        """Bytes of one element; four bits are counted as a whole byte, their scales included."""
        return _BYTES[self]

    @property
    def bits(self) -> int:
        """Bits of one element as arithmetic sees it."""
        return 4 if self is DType.FLOAT4 else 8 * _BYTES[self]

    @property
    def is_float(self) -> bool:
        """Whether gradients and autocast apply to it."""
        return self in _MATH

    @property
    def math(self) -> str:
        """The row of `maths.MATHS` for arithmetic on this dtype; integers run at the fp32 rate."""
        return _MATH.get(self, "fp32")


_BYTES = {
    DType.FLOAT64: 8,
    DType.FLOAT32: 4,
    DType.FLOAT16: 2,
    DType.BFLOAT16: 2,
    DType.FLOAT8: 1,
    DType.FLOAT4: 1,
    DType.COMPLEX64: 8,
    DType.COMPLEX128: 16,
    DType.INT64: 8,
    DType.INT32: 4,
    DType.INT16: 2,
    DType.INT8: 1,
    DType.UINT8: 1,
    DType.BOOL: 1,
}
_MATH = {
    DType.FLOAT64: "fp64",
    DType.FLOAT32: "fp32",
    DType.FLOAT16: "fp16",
    DType.BFLOAT16: "bf16",
    DType.FLOAT8: "fp8",
    DType.FLOAT4: "fp4",
    DType.COMPLEX64: "fp32",
    DType.COMPLEX128: "fp64",
}


class Relation(NamedTuple):
    """How a tensor relates to others, by their names; a field is empty where it does not apply.

    A gradient has exactly one of the first three: it is the whole `gradient_of` a tensor, one of several that are added
    up (`summand_of`), or the gradient of a broadcast tensor before its sum (`unsummed_of`).
    `copy_of` is the original that was cast, quantised or dequantised; a copy of a copy names the first original, and a
    copy of a gradient is still a gradient. `master_of`: the optimizer's own copy of a parameter. `state_of`: what the
    optimizer keeps for a parameter from step to step. `is_recomputed`: computed a second time, by checkpointing.
    """

    gradient_of: str = ""
    summand_of: str = ""
    unsummed_of: str = ""
    copy_of: str = ""
    master_of: str = ""
    state_of: str = ""
    is_recomputed: bool = False

    @property
    def adds_to_gradient_of(self) -> str:
        """The tensor that this is the gradient of, or one of several gradients of; else empty."""
        return self.gradient_of or self.summand_of


UNRELATED = Relation()
"""Parameters, inputs, and what the forward pass computes for the first time."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A view of a storage: two tensors with one name share memory."""

    shape: tuple[int, ...]
    dtype: DType = DType.FLOAT32
    name: str = ""
    relation: Relation = UNRELATED

    def __post_init__(self) -> None:
        if self.shape and min(self.shape) < 0:
            raise ValueError(f"tensor {self.name!r} has a negative dimension: {self.shape}")

    @property
    def elements(self) -> int:
        """Product of the dimensions; 1 for a scalar."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """Elements times bytes per element."""
        return prod(self.shape) * _BYTES[self.dtype]

    def sized(self, shape: tuple[int, ...]) -> "Tensor":
        """The same storage in another shape."""
        return Tensor(shape, self.dtype, self.name, self.relation)

    def stored_in(self, dtype: DType) -> "Tensor":
        """The same storage in another format."""
        return self if dtype is self.dtype else Tensor(self.shape, dtype, self.name, self.relation)

    def copy(self, name: str, dtype: DType) -> "Tensor":
        """A copy in its own storage."""
        original = self.relation.copy_of or self.name
        return Tensor(self.shape, dtype, name, self.relation._replace(copy_of=original))


def grad(tensor: Tensor) -> Tensor:
    """The gradient of a tensor: same shape and dtype."""
    return Tensor(tensor.shape, tensor.dtype, gradient_name(tensor.name), Relation(gradient_of=tensor.name))


def gradient_name(name: str) -> str:
    """The name of the storage of a tensor's gradient."""
    return f"grad:{name}"


def bounded(tensor: Tensor) -> Tensor:
    """The tensor, unless it is larger than any real one: sizes come from files."""
    check_tensor(tensor.bytes, len(tensor.shape), tensor.name)
    return tensor


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Numpy's rule: aligned at the end, sizes are equal or 1; None where they are not."""
    aligned = list(zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1))
    if any(len(set(sizes) - {1}) > 1 for sizes in aligned):
        return None
    return tuple(max(sizes) for sizes in reversed(aligned))
