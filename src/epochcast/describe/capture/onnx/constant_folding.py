"""Shape arithmetic: the small tensors of sizes, axes and indices that exporters write, evaluated with numpy.

It costs a GPU nothing. Arrays stay small: results of more than `MOST_VALUES` values are left unknown.
"""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from epochcast.describe.capture.onnx.onnx_file import MOST_VALUES, Array

Fold = Callable[[list[Array], Mapping[str, Any]], "Array | list[Array]"]


def fold(op: str, arrays: list[Array], attributes: Mapping[str, Any]) -> list[Array] | None:
    """The outputs of a node whose inputs are all known, or None where there is no rule or it would be large."""
    rule = _FOLDS.get(op)
    if rule is None:
        return None
    try:
        result = rule(arrays, attributes)
    except (ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError, _TooLargeToFold):
        return None
    outputs = result if isinstance(result, list) else [result]
    return outputs if all(a.size <= MOST_VALUES for a in outputs) else None


class _TooLargeToFold(Exception):
    pass


def _check_broadcast(arrays: list[Array]) -> None:
    """Some small arrays, each along another axis, come to a huge one."""
    if prod(np.broadcast_shapes(*[a.shape for a in arrays])) > MOST_VALUES:
        raise _TooLargeToFold


def _gather(arrays: list[Array], attributes: Mapping[str, Any]) -> Array:
    data, indices = arrays
    axis = int(attributes.get("axis", 0))
    if data.size // max(1, data.shape[axis]) * indices.size > MOST_VALUES:
        raise _TooLargeToFold
    return np.take(data, indices.astype(np.int64), axis=axis)


def _full(shape: tuple[int, ...], value: Any) -> Array:
    if prod(shape) > MOST_VALUES:
        raise _TooLargeToFold
    return np.full(shape, value)


def axes_of(arrays: list[Array], attributes: Mapping[str, Any], place: int = 1) -> tuple[int, ...] | None:
    """Axes as an attribute (old opsets) or as an input."""
    if "axes" in attributes:
        return tuple(int(a) for a in attributes["axes"])
    return tuple(int(a) for a in arrays[place].reshape(-1)) if len(arrays) > place else None


def _slice(arrays: list[Array], attributes: Mapping[str, Any]) -> Array:
    data = arrays[0]
    if "starts" in attributes:
        starts, ends = attributes["starts"], attributes["ends"]
        axes, steps = attributes.get("axes", range(len(starts))), [1] * len(starts)
    else:
        starts, ends = arrays[1], arrays[2]
        axes = arrays[3] if len(arrays) > 3 else range(len(starts))
        steps = list(arrays[4]) if len(arrays) > 4 else [1] * len(starts)
    index: list[slice] = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        low = None if step < 0 and end < -(2**31) else int(end)
        index[int(axis)] = slice(int(start), low, int(step))
    return data[tuple(index)]


def _squeeze(arrays: list[Array], attributes: Mapping[str, Any]) -> Array:
    axes = axes_of(arrays, attributes)
    return np.squeeze(arrays[0], axis=axes)


def _unsqueeze(arrays: list[Array], attributes: Mapping[str, Any]) -> Array:
    axes = axes_of(arrays, attributes) or ()
    return np.expand_dims(arrays[0], axis=axes)


def _reshape(arrays: list[Array], attributes: Mapping[str, Any]) -> Array:
    shape = [int(n) if n else arrays[0].shape[i] for i, n in enumerate(arrays[1])]
    return arrays[0].reshape(shape)


def _cast(arrays: list[Array], attributes: Mapping[str, Any]) -> Array:
    from onnx import TensorProto

    to = attributes["to"]
    if to in (TensorProto.INT64, TensorProto.INT32, TensorProto.UINT8, TensorProto.INT8, TensorProto.UINT64):
        return arrays[0].astype(np.int64)
    return arrays[0].astype(np.bool_ if to == TensorProto.BOOL else np.float64)


def _divide(arrays: list[Array], attributes: Mapping[str, Any]) -> Array:
    """Integers are divided towards zero."""
    a, b = arrays
    _check_broadcast(arrays)
    if np.issubdtype(a.dtype, np.integer) and np.issubdtype(b.dtype, np.integer):
        return np.trunc(a / b).astype(np.int64)
    return np.asarray(a / b)


def _constant_of_shape(arrays: list[Array], attributes: Mapping[str, Any]) -> Array:
    from onnx import numpy_helper

    value = numpy_helper.to_array(attributes["value"]).reshape(-1)[0] if "value" in attributes else np.float32(0)
    return _full(tuple(int(n) for n in arrays[0]), value)


def _expand(arrays: list[Array], attributes: Mapping[str, Any]) -> Array:
    shape = np.broadcast_shapes(arrays[0].shape, tuple(int(n) for n in arrays[1]))
    if prod(shape) > MOST_VALUES:
        raise _TooLargeToFold
    return np.broadcast_to(arrays[0], shape)


def _tile(arrays: list[Array], attributes: Mapping[str, Any]) -> Array:
    if arrays[0].size * prod(int(n) for n in arrays[1]) > MOST_VALUES:
        raise _TooLargeToFold
    return np.tile(arrays[0], tuple(int(n) for n in arrays[1]))


def _range(arrays: list[Array], attributes: Mapping[str, Any]) -> Array:
    start, stop, step = (a.reshape(-1)[0] for a in arrays)
    if not step or abs((stop - start) / step) > MOST_VALUES:
        raise _TooLargeToFold
    return np.arange(start, stop, step)


def _split(arrays: list[Array], attributes: Mapping[str, Any]) -> list[Array]:
    axis = int(attributes.get("axis", 0))
    sizes = attributes.get("split") or (list(arrays[1]) if len(arrays) > 1 else None)
    if sizes is None:
        raise ValueError("parts of equal size need the number of outputs")
    return list(np.split(arrays[0], np.cumsum([int(s) for s in sizes])[:-1], axis))


def _reduce(function: Callable[..., Any]) -> Fold:
    def rule(arrays: list[Array], attributes: Mapping[str, Any]) -> Array:
        axes = axes_of(arrays, attributes)
        return np.asarray(function(arrays[0], axis=axes, keepdims=bool(attributes.get("keepdims", 1))))

    return rule


def _plain(function: Callable[..., Any]) -> Fold:
    def rule(arrays: list[Array], attributes: Mapping[str, Any]) -> Array:
        _check_broadcast(arrays)
        return np.asarray(function(*arrays))

    return rule


def _chained(function: Callable[[Array, Array], Any]) -> Fold:
    def rule(arrays: list[Array], attributes: Mapping[str, Any]) -> Array:
        _check_broadcast(arrays)
        result = arrays[0]
        for other in arrays[1:]:
            result = np.asarray(function(result, other))
        return result

    return rule


_FOLDS: Mapping[str, Fold] = {
    "Identity": lambda a, _: a[0],
    "Gather": _gather,
    "Concat": lambda a, o: np.concatenate(a, axis=int(o["axis"])),
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Reshape": _reshape,
    "Flatten": lambda a, o: a[0].reshape(prod(a[0].shape[: o.get("axis", 1)]), -1),
    "Transpose": lambda a, o: np.transpose(a[0], o.get("perm")),
    "Cast": _cast,
    "Add": _plain(np.add),
    "Sub": _plain(np.subtract),
    "Mul": _plain(np.multiply),
    "Div": _divide,
    "Mod": _plain(np.mod),
    "Pow": _plain(np.power),
    "Neg": _plain(np.negative),
    "Abs": _plain(np.abs),
    "Floor": _plain(np.floor),
    "Ceil": _plain(np.ceil),
    "Round": _plain(np.round),
    "Sqrt": _plain(np.sqrt),
    "Max": _chained(np.maximum),
    "Min": _chained(np.minimum),
    "Equal": _plain(np.equal),
    "Less": _plain(np.less),
    "LessOrEqual": _plain(np.less_equal),
    "Greater": _plain(np.greater),
    "GreaterOrEqual": _plain(np.greater_equal),
    "Not": _plain(np.logical_not),
    "And": _plain(np.logical_and),
    "Or": _plain(np.logical_or),
    "Where": _plain(np.where),
    "Expand": _expand,
    "Tile": _tile,
    "Range": _range,
    "ConstantOfShape": _constant_of_shape,
    "NonZero": lambda a, _: np.array(np.nonzero(a[0]), dtype=np.int64),
    "Split": _split,
    "ReduceProd": _reduce(np.prod),
    "ReduceSum": _reduce(np.sum),
    "ReduceMax": _reduce(np.max),
    "ReduceMin": _reduce(np.min),
}
"""Every operator of shape arithmetic."""
