"""Mixed precision as a rewrite of a step: which ops run in half, and the casts that appear between them.

The rules are PyTorch's autocast lists (torch.amp, "CUDA Op-Specific Behavior"): products run in the low precision,
softmax, layer normalisation, losses and exponentials in float32, everything else in the widest of its inputs. Weights
are cast once per step and the copy is reused. A parameter's gradient ends in the parameter's own dtype.

Precisions: fp32 · tf32 (float32 stored, products on tensor cores) · amp_fp16, amp_bf16 (autocast) · fp16, bf16 (everything) · fp64.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from epochcast.errors import UnknownName
from epochcast.graph.backward import grad
from epochcast.graph.kinds import (
    Attention,
    Conv,
    Copy,
    Elementwise,
    Kind,
    Loss,
    Matmul,
    Norm,
    Recurrent,
    Reduce,
    Softmax,
    View,
)
from epochcast.graph.op import Op, Parameter, Phase
from epochcast.graph.tensor import DType, Tensor

PRECISIONS: Mapping[str, DType] = {
    "fp32": DType.FLOAT32,
    "tf32": DType.FLOAT32,
    "amp_fp16": DType.FLOAT16,
    "amp_bf16": DType.BFLOAT16,
    "fp16": DType.FLOAT16,
    "bf16": DType.BFLOAT16,
    "fp64": DType.FLOAT64,
}
ALIASES = {"amp": "amp_fp16", "float32": "fp32", "float16": "fp16", "half": "fp16", "bfloat16": "bf16", "mixed": "amp_fp16"}

_LOW: tuple[type[Kind], ...] = (Matmul, Conv, Attention, Recurrent)
_FULL_FUNCTIONS = frozenset({"exp", "log", "pow", "softplus", "cumsum", "norm", "rsqrt"})


def find_precision(name: str) -> str:
    """The canonical name of a precision."""
    key = name.casefold().replace("-", "_")
    key = ALIASES.get(key, key)
    if key not in PRECISIONS:
        raise UnknownName("precision", name, [*PRECISIONS, *ALIASES])
    return key


def with_precision(ops: Iterable[Op], parameters: Iterable[Parameter], precision: str) -> tuple[Op, ...]:
    """The same step in another precision. `ops` are in float32."""
    key = find_precision(precision)
    match key:
        case "fp32":
            return tuple(ops)
        case "tf32":
            return tuple(replace(op, tf32=True) if isinstance(op.kind, _LOW) else op for op in ops)
        case "amp_fp16" | "amp_bf16":
            return _Autocast(parameters, PRECISIONS[key]).walk(ops)
        case _:
            return tuple(_stored_as(op, PRECISIONS[key]) for op in ops)


def _stored_as(op: Op, dtype: DType) -> Op:
    def change(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(replace(t, dtype=dtype) if t.dtype is DType.FLOAT32 else t for t in tensors)

    return replace(op, inputs=change(op.inputs), outputs=change(op.outputs), weights=change(op.weights))


def _runs_full(op: Op) -> bool:
    """Whether autocast forces float32; gradients follow the dtype of what arrives."""
    match op.kind:
        case Softmax() | Loss():
            return True
        case Norm(style=style):
            return style != "batch"
        case Elementwise(function=function) | Reduce(function=function):
            return op.phase is Phase.FORWARD and function in _FULL_FUNCTIONS
        case _:
            return False


class _Autocast:
    """One walk over a step: `stored` is the dtype each tensor has by now, `copies` the casts already made."""

    def __init__(self, parameters: Iterable[Parameter], low: DType) -> None:
        self.low = low
        self.stored: dict[str, DType] = {}
        self.copies: dict[tuple[str, DType], Tensor] = {}
        self.gradients = {grad(p.tensor).name: p.tensor.dtype for p in parameters}
        self.made: list[Op] = []

    def walk(self, ops: Iterable[Op]) -> tuple[Op, ...]:
        for op in ops:
            if op.phase is Phase.UPDATE:
                self.made.append(op)
            else:
                self._rewrite(op)
        return tuple(self.made)

    def _rewrite(self, op: Op) -> None:
        if isinstance(op.kind, _LOW):
            target = self.low
        elif _runs_full(op):
            target = DType.FLOAT32
        else:
            # TensorIterator promotes inside the kernel: operands stay as they are, the result is the widest.
            operands = [self._current(t).dtype for t in (*op.inputs, *op.weights) if t.dtype.is_float]
            results = [t.dtype for t in op.outputs if t.dtype.is_float]
            target = max(operands or results, key=lambda d: d.bytes, default=DType.FLOAT32)
        casts = isinstance(op.kind, _LOW) or _runs_full(op)
        inputs = tuple(self._as(t, target, op) if casts else self._current(t) for t in op.inputs)
        keeps = isinstance(op.kind, Norm)
        weights = tuple(self._as(t, target, op) if casts and not keeps else self._current(t) for t in op.weights)
        if keeps and op.kind.style == "batch" and inputs:
            target = inputs[0].dtype  # statistics and scale stay float32, data stays as it came
        place = len(self.made)
        outputs = tuple(self._result(t, target, op, keeps) for t in op.outputs)
        self.made.insert(place, replace(op, inputs=inputs, weights=weights, outputs=outputs))

    def _current(self, tensor: Tensor) -> Tensor:
        return replace(tensor, dtype=self.stored.get(tensor.name, tensor.dtype))

    def _as(self, tensor: Tensor, dtype: DType, op: Op) -> Tensor:
        """The tensor in that dtype: as it is, an earlier copy, or a new cast in front of this op."""
        now = self._current(tensor)
        if now.dtype is dtype or not now.dtype.is_float:
            return now
        key = (tensor.name, dtype)
        if key not in self.copies:
            copy = replace(tensor, dtype=dtype, name=f"{tensor.name}@{dtype.value}")
            self.made.append(Op(f"{op.name}.cast", Copy("cast"), (now,), (copy,), (), op.phase, op.layer))
            self.copies[key] = copy
        return replace(self.copies[key], shape=tensor.shape)

    def _result(self, tensor: Tensor, dtype: DType, op: Op, keeps: bool) -> Tensor:
        """An output in `dtype`; a parameter's gradient is cast back behind the op."""
        if not tensor.dtype.is_float:
            return tensor
        own = self.gradients.get(tensor.name)
        if own is not None and keeps:
            dtype = own
        for key in [k for k in ((tensor.name, self.low), (tensor.name, DType.FLOAT32)) if k in self.copies]:
            del self.copies[key]  # the storage is written anew
        self.stored[tensor.name] = own or dtype
        if own is None or own is dtype or isinstance(op.kind, View):
            return replace(tensor, dtype=own or dtype)
        low = replace(tensor, dtype=dtype, name=f"{tensor.name}@{dtype.value}")
        full = replace(tensor, dtype=own)
        self.made.append(Op(f"{op.name}.uncast", Copy("cast"), (low,), (full,), (), op.phase, op.layer))
        return low
