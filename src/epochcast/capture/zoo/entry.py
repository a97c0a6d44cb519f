"""A row of the zoo: where a network's builder is and what it is called with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from inspect import signature

from epochcast.errors import BadInput
from epochcast.graph.checkpointing import FEWEST_BLOCKS
from epochcast.graph.op import Graph
from epochcast.graph.order import Period
from epochcast.graph.repeats import Repeats


@dataclass(frozen=True, slots=True)
class Blocks:
    """The list of a network's blocks, as many as its option `layers`: those from `unlike` on repeat by `period`."""

    name: str
    unlike: int = 0
    period: int = 1

    def few(self, layers: int) -> tuple[int, Repeats] | None:
        """The fewest blocks that show how they repeat, and how to draw them out; None where there are no more.

        At both ends one more than is unlike the others: what lies beside something else is used otherwise. And fewer
        than `FEWEST_BLOCKS` are no list of blocks in the eyes of checkpointing.
        """
        fewest = max(FEWEST_BLOCKS, self.unlike + 3 * self.period + 2)
        fewest += (layers - fewest) % self.period
        repeated = Period(self.unlike + 1 + self.period, self.period, (layers - fewest) // self.period)
        return (fewest, Repeats(self.name, repeated)) if repeated.copies > 0 else None


@dataclass(frozen=True, slots=True)
class Entry:
    """One network: where its builder is, what it is called with, what it is.

    A builder takes the batch, then the shape of one sample. Its default is the published one, unless the options have
    an `input_shape`.
    """

    module: str
    function: str
    title: str
    options: Mapping[str, object] = field(default_factory=dict)
    has_aux: bool = False
    blocks: Blocks | None = None

    def few(self) -> tuple["Entry", Repeats] | None:
        """The same with fewer blocks, and how to draw them out; None where its blocks do not repeat."""
        layers = self.options.get("layers")
        found = self.blocks.few(layers) if self.blocks and isinstance(layers, int) else None
        return (replace(self, options={**self.options, "layers": found[0]}), found[1]) if found else None

    def build(self, name: str, batch: int, input_shape: tuple[int, ...] | None = None, *, aux: bool = True) -> Graph:
        """The forward graph; `aux` false drops auxiliary heads."""
        function: Callable[..., Graph] = getattr(import_module(f"epochcast.capture.zoo.{self.module}"), self.function)
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


def _check(name: str, given: tuple[int, ...], published: tuple[int, ...]) -> None:
    """An image must stay an image: as many sizes as the published input, all positive."""
    if len(given) != len(published) or any(size < 1 for size in given):
        example, found = ("x".join(map(str, shape)) for shape in (published, given))
        raise BadInput(f"{name} takes an input of {len(published)} positive sizes, such as {example}; got {found}")
