"""A row of the zoo: where a network's builder is and what it is called with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from inspect import signature

from epochcast.describe.capture.channel_order import check_channels_first
from epochcast.describe.graph.op import Graph
from epochcast.errors import BadInput


@dataclass(frozen=True, slots=True)
class ZooEntry:
    """One network: where its builder is, what it is called with, what it is.

    A builder takes the batch, then the shape of one sample. Its default is the published one, unless the options have
    an `input_shape`. `host_class` is the kind of host that usually launches its kernels (`hosts.toml`); None: any.
    """

    module: str
    function: str
    title: str
    options: Mapping[str, object] = field(default_factory=dict)
    has_aux: bool = False
    host_class: str | None = None

    def build(self, name: str, batch: int, input_shape: tuple[int, ...] | None = None, *, aux: bool = True) -> Graph:
        """The forward graph; `aux` false drops auxiliary heads."""
        function: Callable[..., Graph] = getattr(
            import_module(f"epochcast.describe.capture.zoo.{self.module}"), self.function
        )
        options = dict(self.options, name=name)
        if self.has_aux:
            options["aux"] = aux
        published = options.pop("input_shape", None) or _default_shape(function)
        if input_shape is not None and isinstance(published, tuple):
            _check(name, input_shape, published)
        shape = published if input_shape is None else input_shape
        return function(batch, **options) if shape is None else function(batch, shape, **options)


def _default_shape(function: Callable[..., Graph]) -> object:
    """The default of a builder's second parameter, None where it has none."""
    default: object = list(signature(function).parameters.values())[1].default
    return default if isinstance(default, tuple) else None


def _check(name: str, input_shape: tuple[int, ...], published: tuple[int, ...]) -> None:
    """An image must stay an image: as many sizes as the published input, all positive."""
    if len(input_shape) != len(published) or any(size < 1 for size in input_shape):
        example, got = ("x".join(map(str, shape)) for shape in (published, input_shape))
        raise BadInput(f"{name} takes an input of {len(published)} positive sizes, such as {example}; got {got}")
    check_channels_first(input_shape, published[0])
