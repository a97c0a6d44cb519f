"""Example inputs of a model: positional and keyword arguments that hold tensors, at any batch size, all on `meta`."""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import torch

from epochcast.describe.capture.torch.small_values import Unknown, Values
from epochcast.errors import BadInput


@dataclass(frozen=True)
class Example:
    """Inputs of one call. The batch is a dimension of the first tensor, `dimension`; every tensor that shares its size
    there grows with it.
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    dimension: int = 0

    @property
    def batch(self) -> int:
        """Samples in the example."""
        for _, tensor in tensors_in((self.args, self.kwargs)):
            if tensor.dim() > self.dimension:
                return int(tensor.shape[self.dimension])
        raise BadInput("the example inputs hold no tensor with a batch dimension")

    @property
    def as_batch(self) -> Any:
        """The inputs as a loss gets them: a tensor, a tuple, or a dict."""
        if self.kwargs and not self.args:
            return dict(self.kwargs)
        return self.args[0] if len(self.args) == 1 and not self.kwargs else self.args

    def at(self, batch: int, values: Values | None = None) -> "Example":
        """The same inputs for another number of samples; known values are repeated for further samples."""
        current_batch, dimension = self.batch, self.dimension

        def resized(tensor: torch.Tensor) -> torch.Tensor:
            shape = list(tensor.shape)
            grows = len(shape) > dimension and shape[dimension] == current_batch
            if grows:
                shape[dimension] = batch
            empty = torch.empty(shape, dtype=tensor.dtype, device="meta")
            if values is not None:
                with suppress(Unknown):
                    value = values.of(tensor)
                    rows = torch.arange(batch, device="cpu") % current_batch
                    values.keep(empty, value.index_select(dimension, rows) if grows else value)
            return empty

        return Example(mapped(self.args, resized), mapped(dict(self.kwargs), resized), dimension)

    def named(self, module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
        """Every tensor with the name of its argument and the path inside it."""
        try:
            names = [p.name for p in inspect.signature(module.forward).parameters.values()]
        except (TypeError, ValueError):
            names = []
        for place, value in enumerate(self.args):
            label = names[place] if place < len(names) else f"input{place}"
            for path, tensor in tensors_in(value):
                yield label + path, tensor
        for name, value in self.kwargs.items():
            for path, tensor in tensors_in(value):
                yield name + path, tensor


def image(shape: tuple[int, ...], dtype: torch.dtype = torch.float32, batch: int = 2) -> Example:
    """One input of `shape` per sample."""
    return Example((torch.empty((batch, *shape), dtype=dtype, device="meta"),))


def tensors_in(value: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Every tensor inside nested tuples, lists, mappings and dataclasses, with the path to it."""
    if isinstance(value, torch.Tensor):
        yield "", value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from ((f".{key}{path}", tensor) for path, tensor in tensors_in(item))
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from ((f".{place}{path}", tensor) for path, tensor in tensors_in(item))
    elif is_dataclass(value) and not isinstance(value, type):
        for part in fields(value):
            yield from ((f".{part.name}{path}", tensor) for path, tensor in tensors_in(getattr(value, part.name)))


def mapped(value: Any, change: Any) -> Any:
    """The same nested value with every tensor changed; other values stay."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, Mapping):
        return {key: mapped(item, change) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(item, change) for item in value))
    if isinstance(value, list | tuple):
        return type(value)(mapped(item, change) for item in value)
    return value


def as_example(inputs: Any) -> Example:
    """From example inputs: a tensor, a tuple of arguments, a mapping of keyword arguments, or an Example."""
    if isinstance(inputs, Example):
        return inputs
    if isinstance(inputs, torch.Tensor):
        return Example((inputs,))
    if isinstance(inputs, Mapping):
        return Example((), dict(inputs))
    if isinstance(inputs, list | tuple):
        return Example(tuple(inputs))
    raise BadInput(f"example inputs must be a tensor, a tuple or a mapping of tensors, got {type(inputs).__name__}")
