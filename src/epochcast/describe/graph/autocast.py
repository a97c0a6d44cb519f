"""Mixed precision as a rewrite of a step: which ops run in half, and the casts that appear between them.

The rules are PyTorch's autocast lists (torch.amp, "CUDA Op-Specific Behavior"; ATen/autocast_mode.h): products run in
the low precision; softmax, layer normalisation, losses, sums and exponentials in float32; everything else in the widest
of its inputs. Weights are cast once per step and the copy is reused. A gradient ends in the dtype of its tensor: the
backward pass undoes every cast by a cast.

Weights may be stored in half as well (`weights`): then what no rule casts up is in half, such as the residual stream.
What is trained is in `trained`, float32 for adapters beside a base in half. Marks of the model are casts as in
`half_precision`: to the format of another tensor or of the adapters; and, where weights are in half, up to float32 and
down to what it was before. Limit: with weights in float32, norms of what a product makes (Qwen 3's queries and keys)
are taken to answer in float32, though the model casts them back: a capture in float32 does not show that.
"""

from collections.abc import Iterable
from dataclasses import replace
from enum import Enum

from epochcast.describe.graph import half_precision
from epochcast.describe.graph.eight_bit import with_narrow_products
from epochcast.describe.graph.half_precision import stored_as
from epochcast.describe.graph.master_weights import with_masters
from epochcast.describe.graph.op import Op, Parameter, Phase
from epochcast.describe.graph.op_kinds import (
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
from epochcast.describe.graph.precision import Method, Precision
from epochcast.describe.graph.tensor import DType, Tensor

_ALWAYS = (half_precision.LIKE, half_precision.ADAPTED)
_LOW: tuple[type[Kind], ...] = (Matmul, Conv, Attention, Recurrent)
_FULL_NORMS = frozenset({"layer", "rms", "group"})
_FULL_FUNCTIONS = frozenset(
    [
        "acos",
        "asin",
        "cosh",
        "erfinv",
        "exp",
        "expm1",
        "log",
        "log10",
        "log2",
        "log1p",
        "reciprocal",
        "rsqrt",
        "sinh",
        "tan",
        "pow",
        "softplus",
    ]
)
# Kernels with a float32 result of half operands: the cast is inside.
_WIDENING_REDUCTIONS = frozenset({"sum", "prod", "cumsum", "cumprod", "norm", "linalg_vector_norm"})


def with_precision(
    ops: Iterable[Op],
    parameters: Iterable[Parameter],
    precision: Precision,
    *,
    is_stored: bool = False,
    has_adapters: bool = False,
) -> tuple[Op, ...]:
    """The same step in another precision. `ops` are in float32, or (`is_stored`) in the half that it is stored in.
    `has_adapters`: what is trained is in float32 under autocast, however the rest is stored.
    """
    match precision.method:
        case Method.AUTOCAST:
            stored = precision.weights.parameters
            return _Autocast(parameters, precision.products, stored, DType.FLOAT32 if has_adapters else stored).walk(
                ops
            )
        case Method.QUANTISED:
            return with_narrow_products(ops, parameters, precision.products)
        case Method.MASTERED:
            return with_masters(ops, parameters, precision.weights, is_stored=is_stored)
        case Method.STORED:
            return tuple(ops) if is_stored else tuple(stored_as(ops, precision.products))
        case Method.AS_IT_IS:
            rounded = _LOW if precision.on_tensor_cores else (Conv,) if precision.convolutions_on_tensor_cores else ()
            return tuple(
                replace(op, tf32=True) if isinstance(op.kind, rounded) and op.dtype is DType.FLOAT32 else op
                for op in ops
            )


def _is_explicit_cast(op: Op) -> bool:
    """Whether the model itself casts: it says the format of the result."""
    is_cast = isinstance(op.kind, Copy) and not op.is_gradient and bool(op.inputs)
    return is_cast and op.inputs[0].dtype.is_float and op.inputs[0].dtype is not op.output.dtype


def _kept_in(parameter: Parameter, dtype: DType) -> DType:
    return dtype if parameter.tensor.dtype is DType.FLOAT32 else parameter.tensor.dtype


class _Rule(Enum):
    """What autocast does to an op: cast its operands down, cast them up, let the kernel cast up, nothing."""

    LOW = "low"
    FULL = "full"
    WIDEN = "widen"
    PROMOTE = "promote"


def _rule(op: Op, low: DType) -> _Rule:
    """A gradient runs in the dtype of the incoming gradient, unless its kernel belongs to the forward one."""
    forward = not op.is_gradient
    match op.kind:
        case Matmul() | Conv() | Attention() | Recurrent():
            return _Rule.LOW
        case Loss():
            return _Rule.FULL
        case Softmax(masked=True):
            return _Rule.PROMOTE
        case Softmax():
            # Softmax has a kernel that reads float16 and writes float32; bfloat16 is cast first.
            return _Rule.WIDEN if low is DType.FLOAT16 else _Rule.FULL
        case Norm(style=style) if style in _FULL_NORMS:
            return _Rule.FULL
        case Elementwise(function=function) if forward and function in _FULL_FUNCTIONS:
            return _Rule.FULL
        case Reduce(function=function) if forward and function in _WIDENING_REDUCTIONS:
            return _Rule.WIDEN
        case _:
            return _Rule.PROMOTE


class _Autocast:
    """One walk over a step: `stored` is the current dtype of each tensor, `copies` the casts made of each.

    The cast of a trained weight is kept for the whole step; any other tensor is cast again by every layer that reads
    it, and the copy is what that layer saves for its backward pass.
    """

    def __init__(self, parameters: Iterable[Parameter], low: DType, weights: DType, trained: DType) -> None:
        self.low, self.trained = low, trained
        self.parameters = {p.name: p for p in parameters}
        self.stored = {p.name: _kept_in(p, trained if p.trainable else weights) for p in self.parameters.values()}
        self.marks = _ALWAYS if weights is DType.FLOAT32 else (*_ALWAYS, half_precision.WIDEN, half_precision.NARROW)
        self.widened: dict[str, DType] = {}  # by layer: what was cast up there last
        self.copies: dict[str, dict[tuple[DType, str], Tensor]] = {}
        self.products: set[str] = set()
        self.weak: set[str] = set()  # without float inputs (noise, fills): created in the dtype of the data
        self.new_ops: list[Op] = []

    def walk(self, ops: Iterable[Op]) -> tuple[Op, ...]:
        for op in ops:
            if op.phase is Phase.UPDATE:
                self.new_ops.extend([op] if self.trained is DType.FLOAT32 else stored_as([op], self.trained))
            elif isinstance(op.kind, View) and op.kind.function in self.marks and not op.is_gradient:
                self._marked(op, op.kind.function)
            else:
                self._rewrite(op)
        return tuple(self.new_ops)

    def _marked(self, op: Op, mark: str) -> None:
        """A mark of the model: a cast where the format changes, else a view."""
        source = self._current(op.inputs[0])
        match mark:
            case half_precision.WIDEN:
                self.widened[op.layer], target = source.dtype, DType.FLOAT32
            case half_precision.NARROW:
                target = self.widened.get(op.layer, source.dtype)
            case half_precision.LIKE:
                target = self._current(op.inputs[1]).dtype
            case _:
                target = self.trained
        if not source.dtype.is_float or not op.output.dtype.is_float:
            target = source.dtype
        kind = op.kind if source.dtype is target else Copy("cast")
        inputs = (source,) if kind != op.kind else tuple(self._current(t) for t in op.inputs)
        outputs = tuple(self._result(t, target, op, fused=False) for t in op.outputs)
        self.new_ops.append(op.on(inputs, outputs, op.weights, kind))

    def _rewrite(self, op: Op) -> None:
        rule = _Rule.LOW if self._is_bias(op) else _rule(op, self.low)
        if isinstance(op.kind, Matmul):
            self.products.update(t.name for t in op.outputs)
        match rule:
            case _Rule.LOW:
                target = self.low
            case _Rule.FULL | _Rule.WIDEN:
                target = DType.FLOAT32
            case _Rule.PROMOTE:
                target = self._widest(op)
        if _is_explicit_cast(op):
            target = op.output.dtype
        casts = rule in (_Rule.LOW, _Rule.FULL)
        keeps_weights = isinstance(op.kind, Norm)  # scale, shift and statistics stay as they are, whatever the data
        inputs = tuple(self._in_dtype(t, target, op) if casts else self._current(t) for t in op.inputs)
        casts_weights = casts and not keeps_weights
        weights = tuple(self._in_dtype(t, target, op) if casts_weights else self._current(t) for t in op.weights)
        place = len(self.new_ops)
        # A kernel that casts up in forward casts down in backward.
        fused = keeps_weights or rule is _Rule.WIDEN
        outputs = tuple(self._result(t, target, op, fused) for t in op.outputs)
        self.new_ops.insert(place, op.on(inputs, outputs, weights))
        is_weak = all(t.name in self.weak for t in (*op.inputs, *op.weights) if t.dtype.is_float)
        (self.weak.update if is_weak else self.weak.difference_update)(t.name for t in op.outputs)

    def _is_bias(self, op: Op) -> bool:
        """Whether it is a separate kernel that adds the bias of a linear layer: autocast casts the whole layer."""
        if op.kind != Elementwise("add") or op.is_gradient or not op.inputs:
            return False
        first, *others = (*op.inputs, *op.weights)
        return first.name in self.products and all(len(t.shape) == 1 and t.name in self.parameters for t in others)

    def _widest(self, op: Op) -> DType:
        """The widest dtype of the operands, which the kernel promotes to; a norm works in the dtype of its data."""
        operands = op.inputs[:1] if isinstance(op.kind, Norm) else (*op.inputs, *op.weights)
        strong = [t for t in operands if t.dtype.is_float and t.name not in self.weak]
        dtypes = [self._current(t).dtype for t in strong or operands if t.dtype.is_float]
        results = [t.dtype for t in op.outputs if t.dtype.is_float]
        return max(dtypes or results, key=lambda d: d.bytes, default=DType.FLOAT32)

    def _current(self, tensor: Tensor) -> Tensor:
        if not tensor.dtype.is_float:  # a packed weight has the name of the weight, and is bytes
            return tensor
        return tensor.stored_in(self.stored.get(tensor.name, tensor.dtype))

    def _in_dtype(self, tensor: Tensor, dtype: DType, op: Op) -> Tensor:
        """The tensor in that dtype: as it is, an earlier copy, or a new cast in front of this op."""
        current = self._current(tensor)
        if current.dtype is dtype or not current.dtype.is_float:
            return current
        parameter = self.parameters.get(tensor.name)
        user = "" if parameter is not None and parameter.trainable else op.layer
        copies = self.copies.setdefault(tensor.name, {})
        if (dtype, user) not in copies:
            name = f"{tensor.name}@{dtype.value}" + (f":{user}" if user else "")
            copies[dtype, user] = copy = tensor.copy(name, dtype)
            self.new_ops.append(Op(f"{op.name}.cast", Copy("cast"), (current,), (copy,), (), op.phase, op.layer))
        return copies[dtype, user].sized(tensor.shape)

    def _result(self, tensor: Tensor, dtype: DType, op: Op, fused: bool) -> Tensor:
        """An output in `dtype`; a gradient is cast to its tensor's dtype behind the op, or inside it where `fused`."""
        if not tensor.dtype.is_float:
            return tensor
        final_dtype = self.stored.get(tensor.relation.adds_to_gradient_of, dtype)
        self.copies.pop(tensor.name, None)  # the storage is overwritten
        self.stored[tensor.name] = final_dtype
        if final_dtype is dtype or (fused and op.is_gradient):
            return tensor.stored_in(final_dtype)
        uncast = tensor.copy(f"{tensor.name}@{dtype.value}", dtype)
        final = tensor.stored_in(final_dtype)
        self.new_ops.append(Op(f"{op.name}.uncast", Copy("cast"), (uncast,), (final,), (), op.phase, op.layer))
        return uncast
