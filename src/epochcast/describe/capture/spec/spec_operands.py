"""The inputs of a layer of a spec file: one tensor, an image, tokens; an error says what it got instead."""

from collections.abc import Callable

from epochcast.describe.capture.spec.spec_options import Options
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.tensor import Tensor
from epochcast.errors import BadInput

Rule = Callable[[Builder, list[Tensor], Options, str], Tensor]
"""From the builder, what the layer reads, its keys and its name to what it makes."""


def shown(shape: tuple[int, ...]) -> str:
    """One sample's shape: 3×224×224."""
    return "×".join(str(n) for n in shape[1:]) or "a scalar"


def only(inputs: list[Tensor]) -> Tensor:
    """The one input of a layer that takes one."""
    if len(inputs) != 1:
        raise BadInput(f"it takes one input, 'from' names {len(inputs)}")
    return inputs[0]


def image(inputs: list[Tensor]) -> Tensor:
    """An input with channels and at least one more dimension."""
    x = only(inputs)
    if len(x.shape) < 3:
        raise BadInput(f"it needs channels and positions, like 3×32×32; got {shown(x.shape)}")
    return x


def tokens(inputs: list[Tensor]) -> Tensor:
    """A (length, width) input."""
    x = only(inputs)
    if len(x.shape) != 3:
        raise BadInput(f"it needs (length, width), like 128×768; got {shown(x.shape)}")
    return x
