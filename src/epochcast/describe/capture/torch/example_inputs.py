"""Example inputs for a module: from the user's example, from a shape, or from the module itself."""

import inspect
from collections.abc import Mapping
from typing import Any

import torch

from epochcast.describe.capture.torch.example_arguments import Example, as_example, image, mapped
from epochcast.describe.capture.torch.small_values import Values
from epochcast.describe.capture.torch.user_errors import wants_integers
from epochcast.errors import BadInput

Shape = tuple[int, ...]

_IMAGE_DIMENSIONS, _LEAST_SIDE = 3, 16
_LOOKUPS = (torch.nn.Embedding, torch.nn.EmbeddingBag)


def example_for(
    module: torch.nn.Module, inputs: Any, name: str, values: Values | None = None, dimension: int = 0
) -> Example:
    """`inputs` are example inputs, the shape of one sample, or None: then they are taken from the module.

    Small integers and masks among them keep their values.
    """
    if any(kind.__module__.startswith("torchvision.models.detection") for kind in type(module).__mro__):
        raise BadInput(
            f"{name} is a detector of torchvision, whose work depends on what it finds: forecast it by its name, "
            "such as fasterrcnn_resnet50_fpn (`epochcast models` lists the detectors)"
        )
    for attribute in ("example_inputs", "example_input_array"):  # the second is Lightning's
        if inputs is None:
            inputs = getattr(module, attribute, None)
    if callable(inputs):
        inputs = inputs()
    if isinstance(inputs, tuple | torch.Size) and inputs and all(isinstance(n, int) for n in inputs):
        return _typed(module, tuple(inputs))
    if inputs is not None:
        _refuse_samples(inputs)
        example = as_example(inputs)
        if isinstance(inputs, Mapping) and _takes_dictionary(module, inputs):
            example = Example((dict(inputs),))
        return on_meta(example, values or Values(), dimension)
    published = _published_size(module)
    if published is not None:
        return image(published)
    first = _first_layer(module)
    if not isinstance(first, torch.nn.Linear):  # only a linear layer determines its input size
        raise unknown_size(name)
    return image((first.in_features,))


def _refuse_samples(value: Any) -> None:
    """An error for a list with one element per sample: it would be read as inputs whose first size is the batch."""
    if _holds_a_sample_each(value):
        raise BadInput(
            f"an input is a list of {len(value)} with one element per sample, as detectors take images and targets; "
            "the batch must be the first dimension of tensors: give all images as one tensor (`inputs=`) and, where "
            "the model wants lists, a `step=` that runs its layers on that tensor (detectors of torchvision are known "
            "by name: `epochcast models`)"
        )


def _holds_a_sample_each(value: Any) -> bool:
    """Whether a list holds a dictionary or an image (channels first, without a batch) for each sample."""
    if not isinstance(value, list) or not value:
        return False
    if all(isinstance(item, Mapping) for item in value):
        return True
    return all(isinstance(item, torch.Tensor) and _is_image(item) for item in value)


def _is_image(tensor: torch.Tensor) -> bool:
    """One or three channels, and sides that are longer than a batch of an example."""
    return tensor.dim() == _IMAGE_DIMENSIONS and tensor.shape[0] in (1, 3) and min(tensor.shape[1:]) >= _LEAST_SIDE


def on_meta(example: Example, values: Values, dimension: int = 0) -> Example:
    """The same inputs without their data, but with the values that are worth knowing."""
    for value in (*example.args, *example.kwargs.values()):
        _refuse_samples(value)

    def moved(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.device.type == "meta":
            return tensor
        # floats are data, and zeros in an example stand for anything
        return torch.empty_like(tensor, device="meta") if tensor.is_floating_point() else values.moved(tensor)

    return Example(mapped(example.args, moved), mapped(dict(example.kwargs), moved), dimension)


def _takes_dictionary(module: torch.nn.Module, inputs: Mapping[str, Any]) -> bool:
    """Whether `forward` takes one dictionary rather than keyword arguments of these names."""
    try:
        parameters = inspect.signature(module.forward).parameters.values()
    except (TypeError, ValueError):
        return False
    if any(p.kind is p.VAR_KEYWORD for p in parameters) or {p.name for p in parameters} & set(inputs):
        return False
    return sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in parameters) == 1


def _published_size(module: torch.nn.Module) -> tuple[int, ...] | None:
    """The input size that a network of timm carries with it, with the channels it was built for."""
    config = getattr(module, "pretrained_cfg", None) or getattr(module, "default_cfg", None)
    size = config.get("input_size") if isinstance(config, Mapping) else None
    if not isinstance(size, tuple | list) or len(size) != 3 or not all(isinstance(n, int) for n in size):
        return None
    first = _first_layer(module)
    channels = first.in_channels if isinstance(first, torch.nn.Conv2d) else size[0]
    return (channels, *size[1:])


def unknown_size(name: str) -> BadInput:
    """The error for a model whose input size must be given."""
    return BadInput(
        f"the input size of {name} is not known; give `input_shape`, for example 3x224x224 for images or 512 for tokens"
    )


def _first_layer(module: torch.nn.Module) -> torch.nn.Module | None:
    return next((m for m in module.modules() if next(m.parameters(recurse=False), None) is not None), None)


def _typed(module: torch.nn.Module, shape: Shape) -> Example:
    """Floats, or token ids where the model starts with an embedding."""
    floats, tokens = image(shape), image(shape, torch.int64)
    if not any(isinstance(m, _LOOKUPS) for m in module.modules()):
        return floats
    if isinstance(_first_layer(module), _LOOKUPS):
        return tokens
    try:
        with torch.device("meta"), torch.no_grad():
            module(*floats.args)
    except Exception as problem:  # other problems are reported when the model is captured
        return tokens if wants_integers(problem) else floats
    return floats
