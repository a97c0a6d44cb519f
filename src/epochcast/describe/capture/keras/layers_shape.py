"""Layers that move data or reshape it, and preprocessing."""

from collections.abc import Sequence
from math import prod
from typing import Any

from epochcast.describe.capture.keras.keras_call import KerasCall, KerasTensor, Shape, plain
from epochcast.describe.capture.keras.layers_core import Rule
from epochcast.describe.graph.op_kinds import Copy, Gather
from epochcast.describe.graph.tensor import DType
from epochcast.errors import BadInput


def flatten(call: KerasCall) -> KerasTensor:
    """One dimension per sample."""
    return call.reshaped(call.x, (call.x.shape[0], prod(call.x.shape[1:])), "flatten")


def reshape(call: KerasCall) -> KerasTensor:
    """target_shape without the batch (a layer), or newshape with it (an operation); one size may be -1."""
    x = call.x
    target = call.option("target_shape")
    if target is None:
        full_shape = call.option("newshape", call.arguments.get("1"))
        target = full_shape[1:] if isinstance(full_shape, list | tuple) else None
    if target is None:
        raise BadInput("it has no target shape")
    total, shape = prod(x.shape[1:]), [int(n) if n is not None else -1 for n in target]
    if -1 in shape:
        shape[shape.index(-1)] = total // max(1, prod(n for n in shape if n != -1))
    if prod(shape) != total:
        raise BadInput(f"it reshapes {x.shape[1:]}, which has {total} elements, to {tuple(target)}")
    return call.reshaped(x, (x.shape[0], *shape))


def permute(call: KerasCall) -> KerasTensor:
    """Dimensions in another order."""
    x = call.x
    dims = call.option("dims")
    order = (
        (0, *dims)
        if dims is not None
        else tuple(call.option("axes", call.arguments.get("1")) or range(len(x.shape))[::-1])
    )
    return call.reshaped(x, tuple(x.shape[int(i)] for i in order), "permute")


def repeat_vector(call: KerasCall) -> KerasTensor:
    """(N, F) → (N, n, F)"""
    n, features = call.x.shape
    return plain(call.op(Copy("repeat"), [call.x.plain], [(n, call.count("n"), features)])[0])


def _pairs(value: Any, dims: int) -> list[tuple[int, int]]:
    """1, (1, 2) or ((1, 1), (2, 2)) as pairs of before and after."""
    if isinstance(value, int):
        return [(value, value)] * dims
    if dims == 1 and len(value) == 2 and all(isinstance(v, int) for v in value):
        return [(value[0], value[1])]
    pairs = [(v, v) if isinstance(v, int) else (v[0], v[1]) for v in value]
    if len(pairs) != dims:
        raise BadInput(f"expected {dims} pairs, got {value!r}")
    return pairs


def zero_padding(call: KerasCall) -> KerasTensor:
    """More positions before and after."""
    x = call.image()
    pairs = _pairs(call.option("padding", 1), len(x.shape) - 2)
    sizes = [n + a + b for n, (a, b) in zip(x.shape[2:], pairs, strict=True)]
    return call.from_image(call.op(Copy("pad"), [x], [(*x.shape[:2], *sizes)])[0])


def cropping(call: KerasCall) -> KerasTensor:
    """Fewer positions: a slice."""
    x = call.image()
    pairs = _pairs(call.option("cropping", 0), len(x.shape) - 2)
    sizes = [n - a - b for n, (a, b) in zip(x.shape[2:], pairs, strict=True)]
    with call.b.scope(call.layer.name):
        return call.from_image(call.b.view(x, (*x.shape[:2], *sizes), "slice"))


def up_sampling(call: KerasCall) -> KerasTensor:
    """`size` times as many positions."""
    x = call.image()
    times = call.sizes("size", len(x.shape) - 2, 2)
    sizes = [n * t for n, t in zip(x.shape[2:], times, strict=True)]
    return call.from_image(
        call.op(Gather(str(call.option("interpolation", "nearest"))), [x], [(*x.shape[:2], *sizes)])[0]
    )


def resizing(call: KerasCall) -> KerasTensor:
    """To height and width."""
    x = call.image()
    shape = (*x.shape[:2], call.count("height"), call.count("width"))
    return call.from_image(call.op(Gather("interpolate"), [x], [shape])[0])


def crop_to(call: KerasCall) -> KerasTensor:
    """A part of height and width: a slice."""
    x = call.image()
    with call.b.scope(call.layer.name):
        return call.from_image(call.b.view(x, (*x.shape[:2], call.count("height"), call.count("width")), "slice"))


def scattered(call: KerasCall) -> KerasTensor:
    """Random rotations, zooms and the like: every element is read from another position."""
    return call.like(call.x, call.op(Gather("interpolate"), [call.x.tensor], [call.x.tensor.shape])[0])


def lookup(call: KerasCall) -> KerasTensor:
    """Words or numbers to indices (or, by output_mode, to one row of counts per sample)."""
    x = call.x.plain
    mode = str(call.option("output_mode", "int"))
    if mode == "int":
        length = call.option("output_sequence_length")
        shape: Shape = (x.shape[0], int(length)) if length else x.shape
        return plain(call.op(Gather("lookup"), [x], [shape], (), [DType.INT64])[0])
    depth = call.option("num_tokens") or call.option("max_tokens") or call.option("num_bins")
    if not depth:
        raise BadInput(f"with output_mode {mode!r} it needs num_tokens or max_tokens")
    lead = x.shape if mode == "one_hot" and len(x.shape) == 1 else x.shape[:1] if mode != "one_hot" else x.shape[:-1]
    return plain(call.op(Copy("one_hot"), [x], [(*lead, int(depth))], (), [DType.FLOAT32])[0])


def squeeze(call: KerasCall) -> KerasTensor:
    """Without dimensions of size one."""
    axis = call.option("axis", call.arguments.get("1"))
    squeezed_axes = {int(a) % len(call.x.shape) for a in ([axis] if isinstance(axis, int) else axis or [])}
    if not squeezed_axes:
        squeezed_axes = {i for i, n in enumerate(call.x.shape) if n == 1 and i}
    return call.reshaped(call.x, tuple(n for i, n in enumerate(call.x.shape) if i not in squeezed_axes), "squeeze")


def expand_dims(call: KerasCall) -> KerasTensor:
    """One more dimension of size one."""
    axis = int(call.option("axis", call.arguments.get("1", -1))) % (len(call.x.shape) + 1)
    return call.reshaped(call.x, (*call.x.shape[:axis], 1, *call.x.shape[axis:]), "unsqueeze")


def declared(function: str) -> Rule:
    """A view whose shape its consumers recorded (slices, splits, broadcasts)."""

    def rule(call: KerasCall) -> Sequence[KerasTensor]:
        shapes = [shape for shape in call.layer.declared if shape]
        if not shapes:
            raise BadInput("the shape of its result is not in the file")
        sizes = call.x.shape
        closed = [tuple(n or (sizes[i] if i < len(sizes) else 1) for i, n in enumerate(shape)) for shape in shapes]
        return [call.reshaped(call.x, shape, function) for shape in closed]

    return rule
