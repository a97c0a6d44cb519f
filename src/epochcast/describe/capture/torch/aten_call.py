"""One ATen call as rules read it: its name, its arguments by name, and the storages of its tensors."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch

from epochcast.describe.graph.op import Gradient
from epochcast.describe.graph.op_kinds import Kind
from epochcast.describe.graph.tensor import DType
from epochcast.errors import BadInput

DTYPES: Mapping[torch.dtype, DType] = {
    torch.float64: DType.FLOAT64,
    torch.float32: DType.FLOAT32,
    torch.float16: DType.FLOAT16,
    torch.bfloat16: DType.BFLOAT16,
    torch.float8_e4m3fn: DType.FLOAT8,
    torch.float8_e5m2: DType.FLOAT8,
    torch.complex64: DType.COMPLEX64,
    torch.complex128: DType.COMPLEX128,
    torch.int64: DType.INT64,
    torch.int32: DType.INT32,
    torch.int16: DType.INT16,
    torch.int8: DType.INT8,
    torch.uint8: DType.UINT8,
    torch.bool: DType.BOOL,
}


class TensorView(NamedTuple):
    """A tensor as recorded: the number of its storage, its shape and dtype. It is named when the step is complete."""

    storage: int
    shape: tuple[int, ...]
    dtype: DType


class Piece(NamedTuple):
    """One op of the trace before it has names; a call may become several. `step` tells them apart."""

    kind: Kind
    inputs: tuple[TensorView, ...]
    outputs: tuple[TensorView, ...]
    weights: tuple[TensorView, ...] = ()
    gradient: Gradient = Gradient.NONE
    step: str = ""


See = Callable[[torch.Tensor], TensorView]


class AtenCall:
    """A finished call. `tensors` are its operands on the device, `results` what it wrote (in place or new).

    `batch` is the number of samples in the step.
    """

    __slots__ = ("_arguments", "args", "batch", "func", "is_parameter", "kwargs", "name", "results", "see", "tensors")

    def __init__(
        self,
        func: Any,
        name: str,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        tensors: tuple[TensorView, ...],
        results: tuple[TensorView, ...],
        see: See,
        is_parameter: Callable[[TensorView], bool],
        batch: int = 1,
    ) -> None:
        self.func, self.name, self.args, self.kwargs = func, name, args, kwargs
        self.tensors, self.results, self.see, self.is_parameter = tensors, results, see, is_parameter
        self.batch = batch
        self._arguments: dict[str, Any] | None = None

    def __getitem__(self, name: str) -> Any:
        """An argument by its name in the schema; its default where it was not given."""
        if self._arguments is None:
            schema = self.func._schema.arguments
            self._arguments = {a.name: a.default_value if a.has_default_value() else None for a in schema}
            self._arguments.update(zip((a.name for a in schema), self.args, strict=False))
            self._arguments.update(self.kwargs)
        return self._arguments[name]

    def arguments(self) -> dict[str, Any]:
        """All arguments by their names in the schema."""
        return {argument.name: self[argument.name] for argument in self.func._schema.arguments}

    def views(self, *names: str) -> tuple[TensorView, ...]:
        """The tensor arguments of these names that are given; a list of tensors counts as its members."""
        return tuple(self._views(names))

    def _views(self, names: tuple[str, ...]) -> Iterator[TensorView]:
        for name in names:
            value = self[name]
            for tensor in value if isinstance(value, list | tuple) else (value,):
                if isinstance(tensor, torch.Tensor) and tensor.device.type == "meta":
                    yield self.see(tensor)

    def sizes(self, name: str, dims: int) -> tuple[int, ...]:
        """An argument that is one number or one per dimension, as one per dimension."""
        value = tuple(self[name] or ())
        return value * dims if len(value) == 1 else value


def dtype_of(tensor: torch.Tensor) -> DType:
    """Our name of a tensor's dtype."""
    try:
        return DTYPES[tensor.dtype]
    except KeyError:
        raise BadInput(f"a tensor of {tensor.dtype} appears, which cannot be forecast") from None
