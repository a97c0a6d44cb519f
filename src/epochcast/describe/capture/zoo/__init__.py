"""The built-in zoo: readable builders of published networks, no framework needed.

`ZOO` lists every name with the module and function that builds it, so that only the wanted module is imported.
"""

from collections.abc import Mapping
from functools import partial

from epochcast.base.caching import remembered
from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.capture.zoo.convnets import CONVNETS
from epochcast.describe.capture.zoo.detectors import DETECTORS
from epochcast.describe.capture.zoo.entry import ZooEntry
from epochcast.describe.capture.zoo.language_models import LANGUAGE
from epochcast.describe.capture.zoo.sequences import SEQUENCES
from epochcast.errors import BadInput, UnknownModel

__all__ = ["ZOO", "ZooEntry", "zoo_model"]

ZOO: Mapping[str, ZooEntry] = {**CONVNETS, **DETECTORS, **SEQUENCES, **LANGUAGE}


@remembered(4)  # who asks again finds the steps that were built
def zoo_model(name: str, input_shape: tuple[int, ...] | None = None, *, aux: bool = True) -> BuiltModel:
    """A network of the zoo, at its published input size unless `input_shape` is given."""
    entry = ZOO.get(name)
    if entry is None:
        raise UnknownModel(name, ZOO)
    if not aux and not entry.has_aux:
        raise BadInput(f"{name} has no auxiliary heads to drop")
    build = partial(entry.build, name, input_shape=input_shape, aux=aux)
    return BuiltModel(name, build, host_class=entry.host_class)
