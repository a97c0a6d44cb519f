"""Layers and operations that join tensors, and reductions of one."""

from collections.abc import Sequence
from dataclasses import replace

from numpy import broadcast_shapes

from epochcast.describe.capture.keras.keras_call import KerasCall, KerasTensor, Shape, moved, plain
from epochcast.describe.capture.keras.layers_core import Rule
from epochcast.describe.graph.op_kinds import Copy, Elementwise, Matmul, Reduce
from epochcast.describe.graph.tensor import Tensor
from epochcast.errors import BadInput


def _layout(values: Sequence[KerasTensor], shape: Shape) -> tuple[list[Tensor], Shape, bool]:
    """Tensors and result in one layout: channels in front where every image has them there."""
    is_image = all(v.is_image for v in values) and len(shape) == len(values[0].shape)
    return [v.tensor if is_image else v.plain for v in values], moved(shape) if is_image else shape, is_image


def joined(function: str) -> Rule:
    """Add, Multiply, …: pair by pair, broadcast. With a number instead of a second tensor it is a function of one."""

    def rule(call: KerasCall) -> KerasTensor:
        result = call.x
        if len(call.values) == 1:
            return call.each(function)
        for other in call.values[1:]:
            try:
                shape = tuple(broadcast_shapes(result.shape, other.shape))
            except ValueError:
                raise BadInput(f"{result.shape[1:]} and {other.shape[1:]} do not fit") from None
            inputs, tensor_shape, is_image = _layout([result, other], shape)
            result = KerasTensor(call.op(Elementwise(function), inputs, [tensor_shape])[0], shape, is_image)
        return result

    return rule


def average(call: KerasCall) -> KerasTensor:
    """A sum and a division."""
    return call.each("div", call.like(total := _value(joined("add")(call)), total.tensor))


def _value(result: "KerasTensor | Sequence[KerasTensor]") -> KerasTensor:
    return result if isinstance(result, KerasTensor) else result[0]


def concatenate(call: KerasCall) -> KerasTensor:
    """Along `axis`; everything is copied."""
    first = call.x
    axis = int(call.option("axis", call.arguments.get("1", -1))) % len(first.shape)
    for other in call.values[1:]:
        if len(other.shape) != len(first.shape) or any(
            a != b for i, (a, b) in enumerate(zip(first.shape, other.shape, strict=True)) if i != axis
        ):
            shapes = " and ".join(str(v.shape[1:]) for v in call.values)
            raise BadInput(f"it joins {shapes}, which do not fit")
    shape = tuple(sum(v.shape[axis] for v in call.values) if i == axis else n for i, n in enumerate(first.shape))
    inputs, tensor_shape, is_image = _layout(call.values, shape)
    return KerasTensor(
        call.op(Copy("concatenate"), inputs, [tensor_shape], (), [first.tensor.dtype])[0], shape, is_image
    )


def dot(call: KerasCall) -> KerasTensor:
    """A batched product over one axis of each."""
    a, b = (v.plain for v in call.values[:2])
    axes_option = call.option("axes", -1)
    axes = tuple(axes_option) if isinstance(axes_option, list | tuple) else (axes_option, axes_option)
    left, right = axes[0] % len(a.shape), axes[1] % len(b.shape)
    if a.shape[left] != b.shape[right]:
        raise BadInput(f"{a.shape[1:]} and {b.shape[1:]} do not fit along axes {axes}")
    rest_a = [n for i, n in enumerate(a.shape) if i not in (0, left)]
    rest_b = [n for i, n in enumerate(b.shape) if i not in (0, right)]
    shape = (a.shape[0], *rest_a, *rest_b) if rest_a or rest_b else (a.shape[0], 1)
    rows, columns = _size(rest_a), _size(rest_b)
    first = replace(a, shape=(a.shape[0], rows, a.shape[left]))
    second = replace(b, shape=(b.shape[0], b.shape[right], columns))
    y = call.op(Matmul(), [first, second], [(a.shape[0], rows, columns)])[0]
    return call.reshaped(plain(y), shape)


def _size(sizes: Sequence[int]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result


def matmul(call: KerasCall) -> KerasTensor:
    """The product of two computed tensors."""
    a, b = (v.plain for v in call.values[:2])
    lead = tuple(broadcast_shapes(a.shape[:-2], b.shape[:-2]))
    return plain(call.op(Matmul(), [a, b], [(*lead, a.shape[-2], b.shape[-1])])[0])


def reduce(function: str) -> Rule:
    """Over `axis` (all but the batch where there is none)."""

    def rule(call: KerasCall) -> KerasTensor:
        x = call.x.plain
        axis = call.option("axis", call.arguments.get("1"))
        axes = range(len(x.shape)) if axis is None else [axis] if isinstance(axis, int) else axis
        reduced_axes = {int(a) % len(x.shape) for a in axes}
        keep = call.flag("keepdims", False)
        shape = tuple(1 if i in reduced_axes else n for i, n in enumerate(x.shape) if keep or i not in reduced_axes)
        return plain(call.op(Reduce(function), [x], [shape])[0])

    return rule
