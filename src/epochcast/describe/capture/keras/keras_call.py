"""What a rule of a Keras layer works with: the tensors that come in, the layer's config, and where to put the result.

Keras shapes are usually channels-last; ours are channels-first. A `KerasTensor` keeps both: `shape` in Keras' order,
and a tensor whose shape is either that or, for images, with the channels moved to the front. Both are views of one
storage, so converting between them costs nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op_kinds import Elementwise, Kind, Softmax
from epochcast.describe.graph.tensor import DType, Tensor
from epochcast.errors import BadInput

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KerasTensor:
    """A tensor between layers."""

    tensor: Tensor
    shape: Shape  # in Keras' order
    is_image: bool = False  # the tensor's shape has the channels in front though Keras has them last

    @property
    def plain(self) -> Tensor:
        """In Keras' order."""
        return replace(self.tensor, shape=self.shape)

    def image(self, channels_first: bool) -> Tensor:
        """With the channels after the batch."""
        return replace(self.tensor, shape=self.shape if channels_first else moved(self.shape))


def moved(shape: Shape) -> Shape:
    """(N, …spatial, C) → (N, C, …spatial)"""
    return (shape[0], shape[-1], *shape[1:-1]) if len(shape) > 2 else shape


def back(shape: Shape) -> Shape:
    """(N, C, …spatial) → (N, …spatial, C)"""
    return (shape[0], *shape[2:], shape[1]) if len(shape) > 2 else shape


def plain(tensor: Tensor) -> KerasTensor:
    """A value in Keras' order."""
    return KerasTensor(tensor, tensor.shape)


@dataclass(frozen=True)
class KerasLayer:
    """One layer of a config."""

    class_name: str
    name: str
    config: Mapping[str, Any]
    trainable: bool = True
    module: str = ""
    declared: tuple[Shape, ...] = ()  # shapes its consumers saw, by output, batch and unknown sizes as 0


@dataclass
class KerasCall:
    """One use of a layer."""

    b: Builder
    layer: KerasLayer
    values: list[KerasTensor]
    notes: dict[str, None]
    arguments: Mapping[str, Any] = field(default_factory=dict)  # arguments that are not tensors, by name or position

    # ---- options --------------------------------------------------------------------------------

    def option(self, key: str, default: Any = None) -> Any:
        """From the config, or from the arguments of the call."""
        value = self.layer.config.get(key, self.arguments.get(key))
        return default if value is None else value

    def count(self, key: str) -> int:
        """A whole number of at least one that the config must have."""
        value = self.option(key)
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and 1 <= value < inf
        if not is_number or value != int(value):
            raise BadInput(f"{key!r} must be a whole number of at least 1, got {value!r}")
        return int(value)

    def sizes(self, key: str, dims: int, default: int = 1) -> Shape:
        """One size for each dimension."""
        value = self.option(key, default)
        sizes = (value,) * dims if isinstance(value, int) else tuple(value)
        if len(sizes) != dims or not all(isinstance(n, int) and n >= 1 for n in sizes):
            raise BadInput(f"{key!r} must be {dims} sizes, got {value!r}")
        return sizes

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        return bool(self.option(key, default))

    @property
    def channels_first(self) -> bool:
        """Keras' data_format; without one it is channels-last."""
        return bool(self.option("data_format", "channels_last") == "channels_first")

    # ---- tensors --------------------------------------------------------------------------------

    @property
    def x(self) -> KerasTensor:
        """The first tensor."""
        if not self.values:
            raise BadInput("it has no input")
        return self.values[0]

    def image(self) -> Tensor:
        """The first tensor as an image (or a sequence, or a volume) with its channels in front."""
        if len(self.x.shape) < 3:
            raise BadInput(f"it needs positions and channels, got {self.x.shape[1:]}")
        return self.x.image(self.channels_first)

    def from_image(self, tensor: Tensor) -> KerasTensor:
        """The result of an op on channels-first tensors."""
        return (
            KerasTensor(tensor, tensor.shape) if self.channels_first else KerasTensor(tensor, back(tensor.shape), True)
        )

    def like(self, value: KerasTensor, tensor: Tensor) -> KerasTensor:
        """The result of an op that keeps shapes and layout."""
        return replace(value, tensor=tensor)

    # ---- building -------------------------------------------------------------------------------

    def weight(self, name: str, shape: Sequence[int], *, trainable: bool = True) -> Tensor:
        """A parameter of this layer; the same one where the layer is used again."""
        with self.b.scope(self.layer.name):
            return self.b.parameter(name, shape, trainable=trainable and self.layer.trainable)

    def op(
        self,
        kind: Kind,
        inputs: Sequence[Tensor],
        shapes: Sequence[Sequence[int]],
        weights: Sequence[Tensor] = (),
        dtypes: Sequence[DType] | None = None,
    ) -> tuple[Tensor, ...]:
        """An op of this layer."""
        return self.b.op(kind, inputs, shapes, weights=weights, dtypes=dtypes, name=self.layer.name)

    def each(self, function: str, value: KerasTensor | None = None) -> KerasTensor:
        """An elementwise function of one value."""
        x = value or self.x
        return self.like(x, self.op(Elementwise(function), [x.tensor], [x.tensor.shape])[0])

    def reshaped(self, value: KerasTensor, shape: Sequence[int], function: str = "reshape") -> KerasTensor:
        """A view in Keras' order."""
        with self.b.scope(self.layer.name):
            return plain(self.b.view(value.plain, tuple(shape), function))

    def activated(self, value: KerasTensor, key: str = "activation") -> KerasTensor:
        """The value after the activation that the config names."""
        name = activation_name(self.layer.config.get(key))
        if name in ("", "linear"):
            return value
        if name in ("softmax", "log_softmax"):
            x = value.plain
            return plain(self.op(Softmax(name == "log_softmax"), [x], [x.shape])[0])
        return self.each(_FUNCTIONS.get(name, name), value)

    def note(self, text: str) -> None:
        """Add a note to the answer."""
        self.notes[text] = None


_FUNCTIONS = {
    "swish": "silu", "hard_sigmoid": "hardsigmoid", "hard_silu": "hardswish", "hard_swish": "hardswish",
    "exponential": "exp", "leakyrelu": "leaky_relu", "prelu": "leaky_relu",
}  # fmt: skip


def activation_name(activation: object) -> str:
    """The name in "relu", {"class_name": "ReLU"} or {"class_name": "function", "config": "relu"}; None gives an empty
    name.
    """
    if activation is None:
        return ""
    if isinstance(activation, Mapping):
        inner = activation.get("config")
        if activation.get("class_name") == "function" and isinstance(inner, str):
            return activation_name(inner)
        if isinstance(inner, Mapping) and activation.get("class_name") == "Activation":
            return activation_name(inner.get("activation"))
        return str(activation.get("class_name", "unknown")).casefold()
    return str(activation).rpartition(">")[2].casefold()
