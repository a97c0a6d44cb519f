"""ONNX operators on elements: activations, arithmetic, normalisation, pooling, softmax and reductions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from numpy import broadcast_shapes

from epochcast.describe.capture.onnx.onnx_products import window
from epochcast.describe.capture.onnx.onnx_walk import OnnxCall, OnnxValue, Rule
from epochcast.describe.graph.op_kinds import Elementwise, Norm, Pool, Reduce, Softmax
from epochcast.describe.graph.tensor import DType, Tensor
from epochcast.errors import BadInput

_COMPARISONS = frozenset(
    {"equal", "less", "greater", "less_equal", "greater_equal", "and", "or", "xor", "not", "isnan", "isinf"}
)


def unary(function: str) -> Rule:
    """One input, one function."""

    def rule(call: OnnxCall) -> Sequence[Tensor]:
        x = call.data(0)
        dtypes = [DType.BOOL if function in _COMPARISONS else x.dtype]
        return call.b.op(Elementwise(function), [x], [x.shape], dtypes=dtypes, name=call.layer)

    return rule


def clip(call: OnnxCall) -> Sequence[Tensor | OnnxValue]:
    """min and max by attribute or input; 0 and 6 is relu6."""
    low, high = (call.attribute(key, call.array(i)) for key, i in (("min", 1), ("max", 2)))
    is_relu6 = low is not None and high is not None and (float(low), float(high)) == (0.0, 6.0)
    return unary("relu6" if is_relu6 else "clip")(call)


def nary(function: str) -> Rule:
    """Broadcast arithmetic, pair by pair. A scalar is part of the kernel; a larger initialiser is learnt."""

    def rule(call: OnnxCall) -> Sequence[Tensor]:
        values = _without_export_batch(call, [call.value(i) for i in range(len(call.node.inputs)) if call.has(i)])
        shape = _joined(call, values)
        inputs = [call.walk.tensor(v) for v in values if not _is_scalar(v)]
        if len(inputs) < 2:
            only = inputs[0] if inputs else call.walk.tensor(values[0])
            return [_op(call, function, [only], shape)]
        result = inputs[0]
        for i, other in enumerate(inputs[1:], 2):
            last = i == len(inputs)
            between = shape if last else tuple(broadcast_shapes(result.shape, other.shape))
            result = _op(call, function, [result, other], between)
        return [result]

    return rule


def where(call: OnnxCall) -> Sequence[Tensor]:
    """An element of one of two inputs, chosen by a third."""
    values = _without_export_batch(call, [call.value(i) for i in range(3)])
    shape = _joined(call, values)
    inputs = [call.walk.tensor(v) for v in values if not _is_scalar(v)]
    return [_op(call, "where", inputs, shape)]


def _is_scalar(value: OnnxValue) -> bool:
    return value.origin == "constant" and value.array is not None and value.array.size == 1


def _without_export_batch(call: OnnxCall, values: list[OnnxValue]) -> list[OnnxValue]:
    """A constant that the export repeated for each sample (a mask) is broadcast instead, and is not learnt."""
    fixed, rank = call.walk.exported_batch, max(len(v.shape) for v in values)
    if not call.walk.is_rebound or fixed == 1 or all(v.origin != "data" for v in values):
        return values
    return [
        replace(v, shape=(1, *v.shape[1:]), origin="constant", array=None)
        if v.origin != "data" and len(v.shape) == rank and v.shape[0] == fixed
        else v
        for v in values
    ]


def _joined(call: OnnxCall, values: Sequence[OnnxValue]) -> tuple[int, ...]:
    try:
        return tuple(broadcast_shapes(*[v.shape for v in values]))
    except ValueError:
        shapes = " and ".join("×".join(map(str, v.shape)) for v in values)
        raise BadInput(f"it joins {shapes}, which do not fit{fixed_batch_hint(call)}") from None


def fixed_batch_hint(call: OnnxCall) -> str:
    """The end of the error for a file that was exported at one batch and does not work at another."""
    walk = call.walk
    if walk.is_rebound:
        return f": the file fixes the batch to {walk.exported_batch}; export it with a dynamic batch dimension"
    return "; if the batch was fixed by the export, export it with a dynamic batch dimension"


def _op(call: OnnxCall, function: str, inputs: Sequence[Tensor], shape: tuple[int, ...]) -> Tensor:
    main = next((t.dtype for t in inputs if t.dtype is not DType.BOOL), DType.FLOAT32)
    dtype = DType.BOOL if function in _COMPARISONS else main
    return call.b.op(Elementwise(function), inputs, [shape], dtypes=[dtype], name=call.layer)[0]


def prelu(call: OnnxCall) -> Sequence[Tensor]:
    """x where positive, a·x elsewhere; a is learnt."""
    x = call.data(0)
    return call.b.op(Elementwise("prelu"), [x], [x.shape], weights=[call.weight(1)], name=call.layer)


def bias_gelu(call: OnnxCall) -> Sequence[Tensor]:
    """gelu(x + b), fused."""
    x = call.data(0)
    weights = [call.weight(1)] if call.has(1) else []
    return call.b.op(Elementwise("gelu"), [x], [x.shape], weights=weights, name=call.layer)


def dropout(call: OnnxCall) -> Sequence[Tensor | OnnxValue]:
    """Writes the result and a mask; a ratio of zero does nothing."""
    ratio = call.attribute("ratio", call.array(1))
    if ratio is not None and float(ratio) == 0:
        return [call.value(0)]
    x = call.data(0)
    return call.b.op(Elementwise("dropout"), [x], [x.shape, x.shape], dtypes=[x.dtype, DType.BOOL], name=call.layer)


# ---- normalisation ------------------------------------------------------------------------------


def norm(style: str) -> Rule:
    """Scale and shift are learnt; the running mean and variance of batch normalisation are not."""

    def rule(call: OnnxCall) -> Sequence[Tensor]:
        x = call.data(0)
        weights = [call.weight(i) for i in (1, 2) if call.has(i)]
        results = call.b.op(Norm(style), [x], [x.shape], weights=weights, name=call.layer)
        return [results[0], *_statistics(call, style, results[0])]

    return rule


def _statistics(call: OnnxCall, style: str, y: Tensor) -> list[Tensor]:
    """Further outputs (running statistics in training mode, the mean of a row): small, made by the same kernel."""
    names = call.node.outputs[1:]
    lead = (y.shape[1],) if style == "batch" else (*y.shape[:-1], 1)
    return [call.b.view(y, lead, "statistics") for name in names if name and call.walk.uses[name]]


def skip_norm(style: str) -> Rule:
    """The contributed norm(x + skip) (+ bias)."""

    def rule(call: OnnxCall) -> Sequence[Tensor]:
        x = call.b.add(call.data(0), call.data(1), name=call.layer)
        y = call.b.op(
            Norm(style), [x], [x.shape], weights=[call.weight(i) for i in (2, 3) if call.has(i)], name=call.layer
        )[0]
        return [y, *([x] * (len(call.node.outputs) - 1))]

    return rule


def plain_norm(style: str) -> Rule:
    """A normalisation that learns nothing."""
    return lambda call: call.b.op(Norm(style), [call.data(0)], [call.data(0).shape], name=call.layer)


# ---- pooling, softmax, reductions ---------------------------------------------------------------


def pool(style: str) -> Rule:
    """A sliding window; max pooling keeps indices for its backward pass."""

    def rule(call: OnnxCall) -> Sequence[Tensor]:
        x, kernel = call.data(0), tuple(call.attribute("kernel_shape"))
        stride, _, before, _, sizes = window(call, kernel, x.shape[2:])
        shape = (*x.shape[:2], *sizes)
        kind = Pool(style, kernel, stride, before)
        if style == "max":
            return call.b.op(kind, [x], [shape, shape], dtypes=[x.dtype, DType.INT64], name=call.layer)
        return call.b.op(kind, [x], [shape], name=call.layer)

    return rule


def global_pool(style: str) -> Rule:
    """All positions of a channel to one value."""

    def rule(call: OnnxCall) -> Sequence[Tensor]:
        x = call.data(0)
        zero = (0,) * (len(x.shape) - 2)
        return call.b.op(Pool(style, zero, zero, zero), [x], [(*x.shape[:2], *(1 for _ in zero))], name=call.layer)

    return rule


def softmax(call: OnnxCall) -> Sequence[Tensor]:
    """Over one axis."""
    x = call.data(0)
    return call.b.op(Softmax(call.node.op == "LogSoftmax"), [x], [x.shape], name=call.layer)


def reduce(function: str) -> Rule:
    """Over axes by attribute or input, or all. A mean over all positions of an image is a global pool."""

    def rule(call: OnnxCall) -> Sequence[Tensor | OnnxValue]:
        x = call.data(0)
        rank = len(x.shape)
        axes = call.integers("axes", 1)
        if not axes:
            if call.attribute("noop_with_empty_axes", 0):
                return [call.value(0)]
            axes = tuple(range(rank))
        reduced_axes = {a % rank for a in axes}
        keep = bool(call.attribute("keepdims", 1))
        shape = tuple(1 if i in reduced_axes else n for i, n in enumerate(x.shape) if keep or i not in reduced_axes)
        if function == "mean" and rank > 3 and reduced_axes == set(range(2, rank)):
            zero = (0,) * (rank - 2)
            return call.b.op(Pool("average", zero, zero, zero), [x], [shape], name=call.layer)
        return call.b.op(Reduce(function), [x], [shape], name=call.layer)

    return rule


def arg(function: str) -> Rule:
    """The index of the largest or smallest along an axis."""

    def rule(call: OnnxCall) -> Sequence[Tensor]:
        x, axis = call.data(0), call.attribute("axis", 0) % len(call.data(0).shape)
        keep = bool(call.attribute("keepdims", 1))
        shape = tuple(1 if i == axis else n for i, n in enumerate(x.shape) if keep or i != axis)
        return call.b.op(Reduce(function), [x], [shape], dtypes=[DType.INT64], name=call.layer)

    return rule


def topk(call: OnnxCall) -> Sequence[Tensor]:
    """The k largest along an axis, and where they are."""
    x, axis = call.data(0), call.attribute("axis", -1) % len(call.data(0).shape)
    k = call.integers("k", 1)
    shape = tuple(k[0] if k and i == axis else n for i, n in enumerate(x.shape))
    return call.b.op(Reduce("topk"), [x], [shape, shape], dtypes=[x.dtype, DType.INT64], name=call.layer)


def cumsum(call: OnnxCall) -> Sequence[Tensor]:
    """As large as its input."""
    x = call.data(0)
    return call.b.op(Reduce("cumsum"), [x], [x.shape], dtypes=[x.dtype], name=call.layer)


UNARY: Mapping[str, str] = {
    "Relu": "relu", "LeakyRelu": "leaky_relu", "Elu": "elu", "Selu": "selu", "Celu": "celu",
    "ThresholdedRelu": "relu", "Sigmoid": "sigmoid", "HardSigmoid": "hardsigmoid", "HardSwish": "hardswish",
    "Tanh": "tanh", "Softplus": "softplus", "Softsign": "softsign", "Gelu": "gelu", "QuickGelu": "silu",
    "Mish": "mish", "Swish": "silu", "Erf": "erf", "Exp": "exp", "Log": "log", "Sqrt": "sqrt", "Reciprocal": "div",
    "Abs": "abs", "Neg": "neg", "Ceil": "ceil", "Floor": "floor", "Round": "round", "Sign": "sign", "Sin": "sin",
    "Cos": "cos", "Tan": "tan", "Asin": "asin", "Acos": "acos", "Atan": "atan", "Sinh": "sinh", "Cosh": "cosh",
    "Asinh": "asinh", "Acosh": "acosh", "Atanh": "atanh", "Not": "not", "IsNaN": "isnan", "IsInf": "isinf",
    "Shrink": "shrink", "BitwiseNot": "bitwise",
}  # fmt: skip
NARY: Mapping[str, str] = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Pow": "pow", "Max": "maximum", "Min": "minimum",
    "Mean": "add", "Sum": "add", "Mod": "mod", "And": "and", "Or": "or", "Xor": "xor", "Equal": "equal",
    "Less": "less", "LessOrEqual": "less_equal", "Greater": "greater", "GreaterOrEqual": "greater_equal",
    "BitShift": "bitwise", "BitwiseAnd": "bitwise", "BitwiseOr": "bitwise", "BitwiseXor": "bitwise",
}  # fmt: skip
REDUCTIONS: Mapping[str, str] = {
    "ReduceMean": "mean", "ReduceSum": "sum", "ReduceMax": "max", "ReduceMin": "min", "ReduceProd": "prod",
    "ReduceL1": "norm", "ReduceL2": "norm", "ReduceLogSum": "sum", "ReduceLogSumExp": "logsumexp",
    "ReduceSumSquare": "norm",
}  # fmt: skip
