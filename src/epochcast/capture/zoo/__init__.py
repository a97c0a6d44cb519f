"""The built-in zoo: readable builders of published networks, no framework needed.

`ZOO` lists every name with the module and function that builds it, so that only the wanted module is imported.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module

from epochcast.capture.model import BuiltModel
from epochcast.errors import BadInput, UnknownName
from epochcast.graph.op import Graph


@dataclass(frozen=True, slots=True)
class Entry:
    """One network: where its builder is, what it is called with, what it is."""

    module: str
    function: str
    title: str
    options: Mapping[str, object] = field(default_factory=dict)
    has_aux: bool = False

    def build(self, name: str, batch: int, input_shape: tuple[int, ...] | None = None, *, aux: bool = True) -> Graph:
        """The forward graph; `aux` false drops auxiliary heads."""
        function = getattr(import_module(f"epochcast.capture.zoo.{self.module}"), self.function)
        options = dict(self.options, name=name)
        if self.has_aux:
            options["aux"] = aux
        graph: Graph = function(batch, **options) if input_shape is None else function(batch, input_shape, **options)
        return graph


def _resnet(title: str, blocks: tuple[int, ...], bottleneck: bool, **more: object) -> Entry:
    return Entry("resnet", "resnet", title, {"blocks": blocks, "bottleneck": bottleneck, **more})


def _cifar(depth: int) -> Entry:
    return Entry("resnet", "cifar_resnet", f"CIFAR ResNet-{depth}, He et al. 2016", {"depth": depth})


ZOO: Mapping[str, Entry] = {
    "resnet18": _resnet("ResNet-18, He et al. 2016", (2, 2, 2, 2), False),
    "resnet34": _resnet("ResNet-34, He et al. 2016", (3, 4, 6, 3), False),
    "resnet50": _resnet("ResNet-50, He et al. 2016", (3, 4, 6, 3), True),
    "resnet101": _resnet("ResNet-101, He et al. 2016", (3, 4, 23, 3), True),
    "resnet152": _resnet("ResNet-152, He et al. 2016", (3, 8, 36, 3), True),
    "resnext50_32x4d": _resnet("ResNeXt-50 32x4d, Xie et al. 2017", (3, 4, 6, 3), True, groups=32, width_per_group=4),
    "wide_resnet50_2": _resnet("Wide ResNet-50-2", (3, 4, 6, 3), True, width_per_group=128),
    **{f"resnet{depth}": _cifar(depth) for depth in (20, 32, 44, 56, 110)},
}


def zoo_model(name: str, input_shape: tuple[int, ...] | None = None, *, aux: bool = True) -> BuiltModel:
    """A network of the zoo, at its published input size unless told otherwise."""
    entry = ZOO.get(name)
    if entry is None:
        raise UnknownName("model", name, ZOO)
    if not aux and not entry.has_aux:
        raise BadInput(f"{name} has no auxiliary heads to drop")
    return BuiltModel(name, partial(_build, entry, name, input_shape, aux))


def _build(entry: Entry, name: str, input_shape: tuple[int, ...] | None, aux: bool, batch: int) -> Graph:
    return entry.build(name, batch, input_shape, aux=aux)
