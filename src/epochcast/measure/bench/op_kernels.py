"""Executing an op: from its kind, phase and shapes to a call of the PyTorch kernel that it stands for.

Where ATen has the kernel, it is called directly: `convolution_backward` with only the wanted gradient,
`native_batch_norm_backward`, `_foreach_addcmul_`. Where it does not (attention, recurrent layers, some norms), the
gradient is computed by autograd, which adds about ten microseconds.

A kernel is a function of the op's operands: `kernel(inputs, weights)`, both lists of tensors in the order of the op.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial, singledispatch
from math import gcd, prod
from typing import Any

import torch
import torch.nn.functional as F

from epochcast.base.caching import remembered
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
    OptimizerUpdate,
    Pool,
    Recurrent,
    Reduce,
    Scatter,
    Softmax,
)
from epochcast.errors import BadInput

Tensors = Sequence[torch.Tensor]
Kernel = Callable[[Tensors, Tensors], object]

aten: Any = torch.ops.aten
EPSILON = 1e-5


def is_in_place(op: Op) -> bool:
    """Whether the op writes over its first input."""
    return bool(op.inputs) and bool(op.outputs) and op.inputs[0].name == op.output.name


@singledispatch
def kernel(kind: Kind, op: Op) -> Kernel:
    """The kernel of an op; raises for kinds without one."""
    raise BadInput(f"no kernel to measure for {kind.label} ({op.name})")


@kernel.register
def _(kind: Matmul, op: Op) -> Kernel:
    """Transposed operands are views, as in a framework; a second weight is a bias, added in the epilogue."""

    def call(inputs: Tensors, weights: Tensors) -> object:
        a = inputs[0].mT if kind.transpose_a else inputs[0]
        b = weights[0] if weights else inputs[1]
        if kind.transpose_b:
            b = b.mT
        if len(weights) > 1:
            return torch.addmm(weights[1], a.reshape(-1, a.shape[-1]), b)
        return torch.matmul(a, b)

    return call


@kernel.register
def _(kind: Conv, op: Op) -> Kernel:
    """Forward, or one of the two gradients alone; the operand that a gradient does not read is an empty tensor of its
    shape.
    """
    dims = len(kind.stride)
    if op.gradient is Gradient.NONE:
        extra = [0] * dims
        if kind.transposed:
            sizes = zip(
                op.output.shape[2:], op.inputs[0].shape[2:], kind.stride, kind.padding, op.weights[0].shape[2:],
                strict=True,
            )  # fmt: skip
            extra = [out - ((n - 1) * s - 2 * p + k) for out, n, s, p, k in sizes]
        return lambda x, w: aten.convolution(
            x[0], w[0], w[1] if len(w) > 1 else None, kind.stride, kind.padding, kind.dilation, kind.transposed,
            extra, kind.groups,
        )  # fmt: skip
    rest = (None, kind.stride, kind.padding, kind.dilation, kind.transposed, [0] * dims, kind.groups)
    result = op.output.shape
    if op.gradient is Gradient.DATA:
        return lambda x, w: aten.convolution_backward(x[0], x[0].new_empty(result), w[0], *rest, [True, False, False])
    return lambda x, _: aten.convolution_backward(x[0], x[1], x[0].new_empty(result), *rest, [False, True, False])


@kernel.register
def _(kind: Attention, op: Op) -> Kernel:
    attention: Any = partial(F.scaled_dot_product_attention, is_causal=kind.causal)
    if op.is_gradient:
        return _autograd(lambda x, _: attention(*x[1:4]), slice(1, 4))
    return _with_grad(lambda x, _: attention(*x[:3]))


@kernel.register
def _(kind: Recurrent, op: Op) -> Kernel:
    """One layer from zero states, batch first, by the routine behind `torch.nn.LSTM` and `torch.nn.GRU`."""
    routine: Any = {"lstm": torch.lstm, "gru": torch.gru}.get(kind.cell, torch.rnn_tanh)
    has_bias = len(op.weights) > 2 * kind.directions

    def forward(x: torch.Tensor, weights: Tensors) -> torch.Tensor:
        state = x.new_zeros(kind.directions, x.shape[0], kind.hidden)
        states = (state, state) if kind.cell == "lstm" else state
        output: torch.Tensor = routine(x, states, weights, has_bias, 1, 0.0, True, kind.directions > 1, True)[0]
        return output

    if op.is_gradient:
        return _autograd(lambda x, w: forward(x[1], w), slice(1, 2), with_weights=op.gradient is Gradient.BOTH)
    return _with_grad(lambda x, w: forward(x[0], w))


@kernel.register
def _(kind: Norm, op: Op) -> Kernel:
    match kind.style:
        case "batch" | "instance":
            return _batch_norm(op)
        case "layer":
            return _layer_norm(op)
        case "group":
            channels = op.inputs[0].shape[1]
            forward = partial(F.group_norm, num_groups=gcd(channels, 32))
            normed: Callable[..., torch.Tensor] = lambda x, w: forward(x, weight=w[0], bias=w[1])  # noqa: E731
        case "rms":
            width = op.inputs[0].shape[-1]
            normed = lambda x, w: F.rms_norm(x, (width,), w[0])  # noqa: E731
        case _:
            raise BadInput(f"no kernel to measure for {kind.style} normalisation")
    if op.is_gradient:
        return _autograd(lambda x, w: normed(x[1], [*w, *w]), slice(1, 2), with_weights=True)
    return lambda x, w: normed(x[0], w)


def _batch_norm(op: Op) -> Kernel:
    shape = op.inputs[0].shape[1:2]

    def statistics(like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return filled(0.0, shape, like.device, like.dtype), filled(1.0, shape, like.device, like.dtype)

    if not op.is_gradient:
        return lambda x, w: aten.native_batch_norm(x[0], w[0], w[1], *statistics(w[0]), True, 0.1, EPSILON)
    return lambda x, w: aten.native_batch_norm_backward(
        x[0], x[1], w[0], *statistics(w[0]), *statistics(w[0]), True, EPSILON, [True] * 3
    )


def _layer_norm(op: Op) -> Kernel:
    shape = op.inputs[0].shape
    if not op.is_gradient:
        return lambda x, w: aten.native_layer_norm(x[0], shape[-1:], *_weight_and_bias(w), EPSILON)
    rows = (*shape[:-1], 1)

    def backward(x: Tensors, w: Tensors) -> object:
        mean, deviation = (filled(value, rows, x[0].device, x[0].dtype) for value in (0.0, 1.0))
        return aten.native_layer_norm_backward(x[0], x[1], shape[-1:], mean, deviation, w[0], w[0], [True] * 3)

    return backward


def _weight_and_bias(weights: Tensors) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    return (weights[0] if weights else None, weights[1] if len(weights) > 1 else None)


@kernel.register
def _(kind: Pool, op: Op) -> Kernel:
    dims = len(kind.window)
    if not all(kind.window):
        size = op.output.shape[2:]
        return lambda x, _: getattr(F, f"adaptive_{'avg' if kind.style == 'average' else 'max'}_pool{dims}d")(
            x[0], size
        )
    where = (kind.window, kind.stride, kind.padding)
    if kind.style == "max":
        if op.is_gradient:
            backward = getattr(aten, f"max_pool{dims}d_with_indices_backward")
            return lambda x, _: backward(x[0], x[1], *where, [1] * dims, False, x[2])
        forward = getattr(aten, f"max_pool{dims}d_with_indices")
        return lambda x, _: forward(x[0], *where)
    if op.is_gradient:
        backward = getattr(aten, f"avg_pool{dims}d_backward")
        result = op.output.shape
        return lambda x, _: backward(x[0], x[0].new_empty(result), *where, False, True, None)
    forward = getattr(aten, f"avg_pool{dims}d")
    return lambda x, _: forward(x[0], *where)


@kernel.register
def _(kind: Softmax, op: Op) -> Kernel:
    name = "_log_softmax" if kind.log else "_softmax"
    if op.is_gradient:
        backward = getattr(aten, f"{name}_backward_data")
        return lambda x, _: backward(x[0], x[1], -1, x[0].dtype)
    forward = getattr(aten, name)
    return lambda x, _: forward(x[0], -1, False)


@kernel.register
def _(kind: Elementwise, op: Op) -> Kernel:
    """From the table of functions; in place where the op writes to its first input."""
    if op.is_gradient and kind.function in GRADIENTS:
        return GRADIENTS[kind.function]
    if kind.function not in FUNCTIONS:
        raise BadInput(f"no kernel to measure for elementwise {kind.function}")
    function = FUNCTIONS[kind.function]
    if is_in_place(op):
        return lambda x, _: function(*x, out=x[0])
    if kind.function in ("mul", "div") and len(op.inputs) == 1:
        return _mean_gradient(op)
    return lambda x, w: function(*x, *w)


def _mean_gradient(op: Op) -> Kernel:
    """The gradient of a mean: the gradient of each output element, expanded to the elements it was computed from."""
    shape, gradient_shape = op.output.shape, op.inputs[0].shape
    reduced = set(reduced_axes(shape, gradient_shape)) if len(gradient_shape) < len(shape) else set()
    sizes = iter(gradient_shape)
    aligned_shape = tuple(1 if axis in reduced else next(sizes) for axis in range(len(shape)))
    return lambda x, _: torch.mul(x[0].reshape(aligned_shape).expand(shape), 0.5)


def _relu(x: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    return torch.relu(x) if out is None else torch.relu_(x)


FUNCTIONS: Mapping[str, Callable[..., torch.Tensor]] = {
    "relu": _relu,
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": lambda x, *y, **into: torch.div(x, *(y or (2.0,)), **into),
    "exp": torch.exp,
    "sqrt": torch.sqrt,
    "neg": torch.neg,
    "scale": lambda x: torch.mul(x, 0.5),
    "gelu": F.gelu,
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "hardswish": F.hardswish,
    "relu6": F.relu6,
    "pow": lambda x: torch.pow(x, 3),
    "dropout": lambda x: aten.native_dropout(x, 0.1, True),
}
GRADIENTS: Mapping[str, Kernel] = {
    "relu": lambda x, _: aten.threshold_backward(x[0], x[1], 0),
    "gelu": lambda x, _: aten.gelu_backward(x[0], x[1]),
    "silu": lambda x, _: aten.silu_backward(x[0], x[1]),
    "sigmoid": lambda x, _: aten.sigmoid_backward(x[0], x[1]),
    "tanh": lambda x, _: aten.tanh_backward(x[0], x[1]),
    "hardswish": lambda x, _: aten.hardswish_backward(x[0], x[1]),
    "relu6": lambda x, _: aten.hardtanh_backward(x[0], x[1], 0, 6),
    "dropout": lambda x, _: aten.native_dropout_backward(x[0], x[1], 1.1),
}


@kernel.register
def _(kind: Reduce, op: Op) -> Kernel:
    axes = reduced_axes(op.inputs[0].shape, op.output.shape)
    reduce: Any = {"sum": torch.sum, "mean": torch.mean, "amax": torch.amax, "max": torch.amax}.get(kind.function)
    if reduce is None or len(op.inputs) > 1:
        raise BadInput(f"no kernel to measure for reduction {kind.function}")
    return lambda x, _: reduce(x[0], axes)


def reduced_axes(input_shape: tuple[int, ...], output_shape: tuple[int, ...]) -> list[int]:
    """The dimensions that were reduced. A vector that is left of an image has one element per channel, of rows one per
    column.
    """
    if prod(output_shape) == 1:
        return list(range(len(input_shape)))
    if len(output_shape) == 1:
        matching = [i for i, n in enumerate(input_shape) if n == output_shape[0]]
        kept_axis = 1 if len(input_shape) > 3 and 1 in matching else matching[-1]
        return [i for i in range(len(input_shape)) if i != kept_axis]
    if len(output_shape) == len(input_shape):
        return [i for i, (n, m) in enumerate(zip(input_shape, output_shape, strict=True)) if m == 1 and n != 1]
    remaining, reduced = list(output_shape), []
    for axis, size in enumerate(input_shape):
        if remaining and size == remaining[0]:
            remaining.pop(0)
        else:
            reduced.append(axis)
    return reduced


@kernel.register
def _(kind: Embedding, op: Op) -> Kernel:
    if op.is_gradient:
        rows = op.output.shape[0]
        return lambda x, _: aten.embedding_dense_backward(x[0], x[1], rows, -1, False)
    return lambda x, w: aten.embedding(w[0], x[0])


@kernel.register
def _(kind: Gather, op: Op) -> Kernel:
    return lambda x, _: torch.index_select(x[0], 0, x[1])


@kernel.register
def _(kind: Scatter, op: Op) -> Kernel:
    shape = op.output.shape
    return lambda x, _: x[0].new_zeros(shape).index_add_(0, x[1], x[0])


@kernel.register
def _(kind: Copy, op: Op) -> Kernel:
    shape = op.output.shape
    match kind.function:
        case "concatenate":
            axis = next(i for i, n in enumerate(shape) if n != op.inputs[0].shape[i])
            return lambda x, _: torch.cat(list(x), axis)
        case "contiguous":
            return lambda x, _: x[0].movedim(-1, 1).clone(memory_format=torch.contiguous_format)
        case "pad":
            pads = [n for a, b in zip(reversed(shape), reversed(op.inputs[0].shape), strict=True) for n in (a - b, 0)]
            return lambda x, _: F.pad(x[0], pads)
        case "cast":
            dtype = torch_dtype(op.output.dtype.value)
            return lambda x, _: x[0].to(dtype)
        case "copy" | "clone":
            return lambda x, _: x[0].clone()
        case _:
            raise BadInput(f"no kernel to measure for {kind.function}")


@kernel.register
def _(kind: Loss, op: Op) -> Kernel:
    if kind.function == "nll":
        shape = op.output.shape if op.is_gradient else op.inputs[0].shape
        classes = shape[-1]
        if not op.is_gradient:
            return lambda x, _: F.nll_loss(x[0].reshape(-1, classes), x[1].reshape(-1))
        rows, dtype = prod(shape[:-1]), torch_dtype(op.output.dtype.value)

        def backward(x: Tensors, _: Tensors) -> object:
            unit = filled(1.0, (), x[0].device, dtype)
            scores = filled(0.0, (1,), x[0].device, dtype).expand(rows, classes)  # read for its shape
            return aten.nll_loss_backward(unit, scores, x[0].reshape(-1), None, 1, -100, unit)

        return backward
    if kind.function == "mse":
        if op.is_gradient:
            return lambda x, _: aten.mse_loss_backward(x[0].new_ones(()), x[0], x[1], 1)
        return lambda x, _: F.mse_loss(x[0], x[1])
    raise BadInput(f"no kernel to measure for loss {kind.function}")


@kernel.register
def _(kind: OptimizerUpdate, op: Op) -> Kernel:
    """One pass over lists of tensors, in place where a list is both read and written."""
    step, size = kind.step, len(op.outputs)
    if step not in PASSES:
        raise BadInput(f"no kernel to measure for the pass {step!r} of {kind.algorithm}")

    def tensor_lists(x: Tensors) -> list[list[torch.Tensor]]:
        return [list(x[i : i + size]) for i in range(0, len(x), size)]

    optimizer_pass = PASSES[step]
    return lambda x, _: optimizer_pass(*tensor_lists(x))


# Factors near one, so that values hardly change over many repeats. A pass gets the lists that it reads.
PASSES: Mapping[str, Callable[..., object]] = {
    "add": lambda x, y=None: torch._foreach_add_(x, 1e-8) if y is None else torch._foreach_add_(x, y, alpha=1e-6),
    "mul": lambda x, *_: torch._foreach_mul_(x, 0.9999),
    "decay": lambda x: torch._foreach_mul_(x, 0.9999),
    "lerp": lambda m, g: torch._foreach_lerp_(m, g, 1e-4),
    "addcmul": lambda v, g, *_: torch._foreach_addcmul_(v, g, g, 1e-4),
    "sqrt": torch._foreach_sqrt,
    "div": lambda x, *_: torch._foreach_div_(x, 1.0001),
    "addcdiv": lambda p, m, t: torch._foreach_addcdiv_(p, m, t, -1e-6),
}


# ---- autograd -----------------------------------------------------------------------------------


def _with_grad(forward: Callable[[Tensors, Tensors], torch.Tensor]) -> Kernel:
    """Forward as in training: some kernels are chosen, and save tensors, only where a gradient is needed."""

    def call(inputs: Tensors, weights: Tensors) -> object:
        with torch.enable_grad():
            for tensor in (*inputs, *weights):
                tensor.requires_grad_()
            return forward(inputs, weights).detach()

    return call


def _autograd(
    forward: Callable[[Tensors, Tensors], torch.Tensor], wanted: slice, *, with_weights: bool = False
) -> Kernel:
    """The gradient of `forward`, whose graph is recorded at the first call for the same operands and reused."""
    graphs: dict[torch.Tensor, tuple[torch.Tensor, list[torch.Tensor]]] = {}  # by the first operand

    def call(inputs: Tensors, weights: Tensors) -> object:
        if inputs[0] not in graphs:
            with torch.enable_grad():
                leaves = [*inputs[wanted], *(weights if with_weights else [])]
                for tensor in leaves:
                    tensor.requires_grad_()
                graphs[inputs[0]] = (forward(inputs, weights), leaves)
        output, leaves = graphs[inputs[0]]
        return torch.autograd.grad(output, leaves, inputs[0], retain_graph=True)

    return call


@remembered(64)
def filled(value: float, shape: tuple[int, ...], device: torch.device, dtype: torch.dtype) -> torch.Tensor:
    """A constant tensor that an operator needs, made once."""
    return torch.full(shape, value, device=device, dtype=dtype)


def torch_dtype(name: str) -> torch.dtype:
    """The torch dtype of this name."""
    dtype: torch.dtype = getattr(torch, name)
    return dtype
