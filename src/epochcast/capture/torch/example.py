"""Example inputs of a model: positional and keyword arguments that hold tensors, at any batch size, all on `meta`."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import torch

from epochcast.errors import BadInput


@dataclass(frozen=True)
class Example:
    """Inputs of one call. The batch is the first dimension of the first tensor; every tensor that shares it grows
    with it.
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def batch(self) -> int:
        """Samples in the example."""
        for _, tensor in tensors_in((self.args, self.kwargs)):
            if tensor.dim():
                return int(tensor.shape[0])
        raise BadInput("the example inputs hold no tensor with a batch dimension")

    def at(self, batch: int) -> "Example":
        """The same inputs for another number of samples."""
        current_batch = self.batch

        def resized(tensor: torch.Tensor) -> torch.Tensor:
            shape = tuple(tensor.shape)
            if shape and shape[0] == current_batch:
                shape = (batch, *shape[1:])
            return torch.empty(shape, dtype=tensor.dtype, device="meta")

        return Example(mapped(self.args, resized), mapped(dict(self.kwargs), resized))

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
    if isinstance(value, dict):
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
