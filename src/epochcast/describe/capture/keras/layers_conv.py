"""Convolutions and pooling in one to three dimensions.

Output sizes are Keras': "valid" ⌈(n − reach + 1)/s⌉, "same" and "causal" ⌈n/s⌉ whatever the kernel (padding may be one
more behind than before); transposed "valid" n·s + max(reach − s, 0), "same" n·s.
"""

from collections.abc import Sequence

from epochcast.describe.capture.keras.keras_call import KerasCall, KerasTensor, Shape, plain
from epochcast.describe.capture.keras.layers_core import Rule
from epochcast.describe.graph.op_kinds import Conv, Pool
from epochcast.describe.graph.tensor import DType, Tensor
from epochcast.errors import BadInput


def _window(call: KerasCall, spatial: Shape, kernel: Shape, stride: Shape, dilation: Shape) -> tuple[Shape, Shape]:
    """(padding before, output sizes)"""
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    match str(call.option("padding", "valid")).casefold():
        case "valid":
            sizes = tuple(-(-(n - r + 1) // s) for n, r, s in zip(spatial, reach, stride, strict=True))
            return (0,) * len(kernel), sizes
        case "same" | "causal" as padding:
            sizes = tuple(-(-n // s) for n, s in zip(spatial, stride, strict=True))
            total = [max(0, (o - 1) * s + r - n) for o, s, r, n in zip(sizes, stride, reach, spatial, strict=True)]
            return tuple(t if padding == "causal" else t // 2 for t in total), sizes
        case other:
            raise BadInput(f"no padding called {other!r}; known: causal, same, valid")


def conv(call: KerasCall) -> KerasTensor:
    """filters, kernel_size, strides, padding, dilation_rate, groups, use_bias, activation."""
    x, filters, groups = call.image(), call.count("filters"), int(call.option("groups", 1))
    dims = len(x.shape) - 2
    if x.shape[1] % groups or filters % groups:
        raise BadInput(f"{groups} groups do not divide {x.shape[1]} → {filters} channels")
    kernel = call.sizes("kernel_size", dims)
    weights = [call.weight("kernel", (filters, x.shape[1] // groups, *kernel))]
    if call.flag("use_bias", True):
        weights.append(call.weight("bias", (filters,)))
    return call.activated(_convolved(call, x, kernel, groups, filters, weights))


def depthwise(call: KerasCall) -> KerasTensor:
    """depth_multiplier filters per channel."""
    return call.activated(_depthwise(call, call.flag("use_bias", True), "kernel"))


def separable(call: KerasCall) -> KerasTensor:
    """Depthwise, then 1x1 to `filters`."""
    middle, filters = _depthwise(call, False, "depthwise_kernel"), call.count("filters")
    x = middle.image(call.channels_first)
    dims = len(x.shape) - 2
    unit = (1,) * dims
    weights = [call.weight("pointwise_kernel", (filters, x.shape[1], *unit))]
    if call.flag("use_bias", True):
        weights.append(call.weight("bias", (filters,)))
    y = call.op(Conv(unit, (0,) * dims, unit), [x], [(x.shape[0], filters, *x.shape[2:])], weights)
    return call.activated(call.from_image(y[0]))


def _depthwise(call: KerasCall, bias: bool, name: str) -> KerasTensor:
    x, multiplier = call.image(), int(call.option("depth_multiplier", 1))
    into, kernel = x.shape[1], call.sizes("kernel_size", len(x.shape) - 2)
    weights = [call.weight(name, (into * multiplier, 1, *kernel))]
    if bias:
        weights.append(call.weight("bias", (into * multiplier,)))
    return _convolved(call, x, kernel, into, into * multiplier, weights)


def _convolved(
    call: KerasCall, x: Tensor, kernel: Shape, groups: int, filters: int, weights: Sequence[Tensor]
) -> KerasTensor:
    dims = len(kernel)
    stride, dilation = call.sizes("strides", dims), call.sizes("dilation_rate", dims)
    before, sizes = _window(call, x.shape[2:], kernel, stride, dilation)
    y = call.op(Conv(stride, before, dilation, groups), [x], [(x.shape[0], filters, *sizes)], weights)
    return call.from_image(y[0])


def transposed(call: KerasCall) -> KerasTensor:
    """Conv1DTranspose to Conv3DTranspose."""
    x, filters = call.image(), call.count("filters")
    dims = len(x.shape) - 2
    kernel, stride = call.sizes("kernel_size", dims), call.sizes("strides", dims)
    dilation = call.sizes("dilation_rate", dims)
    output_padding, same = call.option("output_padding"), call.option("padding", "valid") == "same"
    extra = (output_padding,) * dims if isinstance(output_padding, int) else output_padding
    sizes = []
    for i, n in enumerate(x.shape[2:]):
        reach = dilation[i] * (kernel[i] - 1) + 1
        if extra is not None:
            sizes.append((n - 1) * stride[i] + reach - (2 * (reach // 2) if same else 0) + extra[i])
        else:
            sizes.append(n * stride[i] if same else n * stride[i] + max(reach - stride[i], 0))
    weights = [call.weight("kernel", (x.shape[1], filters, *kernel))]
    if call.flag("use_bias", True):
        weights.append(call.weight("bias", (filters,)))
    before = tuple((k - 1) // 2 if same else 0 for k in kernel)
    kind = Conv(stride, before, dilation, 1, transposed=True)
    return call.activated(call.from_image(call.op(kind, [x], [(x.shape[0], filters, *sizes)], weights)[0]))


def pool(style: str) -> Rule:
    """pool_size, strides (as the pool), padding."""

    def rule(call: KerasCall) -> KerasTensor:
        x = call.image()
        dims = len(x.shape) - 2
        window = call.sizes("pool_size", dims, 2)
        stride = call.sizes("strides", dims) if call.option("strides") is not None else window
        before, sizes = _window(call, x.shape[2:], window, stride, (1,) * dims)
        shape, kind = (*x.shape[:2], *sizes), Pool(style, window, stride, before)
        if style == "max":
            return call.from_image(call.op(kind, [x], [shape, shape], (), [x.dtype, DType.INT64])[0])
        return call.from_image(call.op(kind, [x], [shape])[0])

    return rule


def global_pool(style: str) -> Rule:
    """Everything but the channels; `keepdims` keeps positions of size one."""

    def rule(call: KerasCall) -> KerasTensor:
        x = call.image()
        unit = (1,) * (len(x.shape) - 2)
        zero = (0,) * len(unit)
        y = call.op(Pool(style, zero, zero, zero), [x], [(*x.shape[:2], *unit)])[0]
        return call.from_image(y) if call.flag("keepdims", False) else call.reshaped(plain(y), x.shape[:2], "flatten")

    return rule


def adaptive_pool(style: str) -> Rule:
    """Pooling to a given output size."""

    def rule(call: KerasCall) -> KerasTensor:
        x = call.image()
        size, zero = call.sizes("output_size", len(x.shape) - 2), (0,) * (len(x.shape) - 2)
        return call.from_image(call.op(Pool(style, zero, zero, zero), [x], [(*x.shape[:2], *size)])[0])

    return rule
