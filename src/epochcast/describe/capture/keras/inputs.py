"""The inputs of a Keras config: their shapes without the batch, and how a given input shape fits them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from epochcast.describe.capture.keras.keras_call import KerasTensor, moved
from epochcast.describe.capture.keras.nodes import input_names
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.tensor import DType
from epochcast.errors import BadInput

Open = tuple[int | None, ...]


@dataclass(frozen=True)
class KerasInput:
    """One input: a sample's shape in Keras' order."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    is_image: bool


def entries(config: Mapping[str, Any], label: str, input_shape: tuple[int, ...] | None) -> tuple[KerasInput, ...]:
    """The inputs in the model's order."""
    open_inputs = _open_inputs(config, label, input_shape)
    channels_first = _is_channels_first(config)
    closed_inputs = []
    for index, (name, shape, dtype) in enumerate(open_inputs):
        closed = _closed(shape, input_shape if index == 0 else None, name, label, channels_first)
        closed_inputs.append(KerasInput(name, closed, dtype, len(closed) > 2 and not channels_first and dtype.is_float))
    return tuple(closed_inputs)


def tensors(b: Builder, starts: tuple[KerasInput, ...]) -> list[KerasTensor]:
    """The input tensors at the builder's batch; images with their channels in front."""
    values = []
    for entry in starts:
        full = (b.batch, *entry.shape)
        shape = moved(full) if entry.is_image else full
        values.append(KerasTensor(b.input(entry.name, shape[1:], entry.dtype), full, entry.is_image))
    return values


def _open_inputs(
    config: Mapping[str, Any], label: str, input_shape: tuple[int, ...] | None
) -> list[tuple[str, Open, DType]]:
    rows = {
        str(row.get("name") or row.get("config", {}).get("name")): row
        for row in config["layers"]
        if isinstance(row, Mapping)
    }
    if "input_layers" in config:
        names = input_names(config)
        if not names or any(name not in rows for name in names):
            raise BadInput(f"{label}: its input layers are not among its layers")
        return [(name, _shape_in(rows[name]["config"]) or (), _dtype(rows[name]["config"])) for name in names]
    first = config["layers"][0]
    inner = first.get("config", {}) if isinstance(first, Mapping) else {}
    nested = inner.get("layers") if isinstance(inner, Mapping) else None
    shape = _shape_in(inner)
    if shape is None and isinstance(nested, list) and nested and isinstance(nested[0], Mapping):
        shape = _shape_in(nested[0].get("config", {}))
    if shape is None:
        for built_shape in (config.get("build_input_shape"), (first.get("build_config") or {}).get("input_shape")):
            if isinstance(built_shape, list) and built_shape and not isinstance(built_shape[0], list):
                shape = tuple(built_shape[1:])
                break
    if shape is None:
        if input_shape is None:
            raise BadInput(f"{label} has no input shape; give `input_shape` of one sample, such as 3x224x224")
        shape = (None,) * len(input_shape)
    dtype = DType.INT64 if first.get("class_name") == "Embedding" else _dtype(inner)
    return [("input", shape, dtype)]


def _shape_in(config: Mapping[str, Any]) -> Open | None:
    """batch_shape (Keras 3) or batch_input_shape (Keras 2), without the batch."""
    for key in ("batch_shape", "batch_input_shape"):
        shape = config.get(key)
        if isinstance(shape, list | tuple) and all(n is None or isinstance(n, int) for n in shape):
            return tuple(shape[1:])
    shape = config.get("input_shape") or config.get("shape")
    return tuple(shape) if isinstance(shape, list | tuple) else None


def _dtype(config: Mapping[str, Any]) -> DType:
    name = config.get("dtype")
    if not isinstance(name, str):
        return DType.FLOAT32
    if name.startswith(("int", "uint")):
        return DType.INT32 if name in ("int32", "uint32") else DType.INT64
    return {"string": DType.INT64, "bool": DType.BOOL}.get(name, DType.FLOAT32)


def _closed(
    shape: Open, input_shape: tuple[int, ...] | None, name: str, label: str, channels_first: bool
) -> tuple[int, ...]:
    """The shape with its open sizes filled; an image may be given as 3x224x224 or 224x224x3."""
    if input_shape is not None:
        if len(input_shape) != len(shape):
            shape_text = "x".join(str(n or "?") for n in shape)
            raise BadInput(
                f"{label}: input {name!r} is {shape_text} for one sample, got {'x'.join(map(str, input_shape))}"
            )
        if len(input_shape) > 2 and not channels_first and _has_channels_first(shape, input_shape):
            input_shape = (*input_shape[1:], input_shape[0])
        return input_shape
    if any(n is None or n < 1 for n in shape):
        shape_text = "x".join(str(n or "?") for n in shape)
        raise BadInput(
            f"{label}: input {name!r} is {shape_text}, partly unknown; give `input_shape`, such as 3x224x224"
        )
    return tuple(n for n in shape if n is not None)


def _has_channels_first(shape: Open, input_shape: tuple[int, ...]) -> bool:
    """Whether an image for a channels-last model was given channels-first, as shapes are elsewhere."""
    channels = shape[-1]
    return input_shape[-1] != channels if channels is not None else input_shape[0] < input_shape[-1]


def _is_channels_first(config: Mapping[str, Any]) -> bool:
    formats = [
        row["config"].get("data_format")
        for row in config["layers"]
        if isinstance(row, Mapping) and isinstance(row.get("config"), Mapping)
    ]
    return "channels_first" in formats and "channels_last" not in formats
