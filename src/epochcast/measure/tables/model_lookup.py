"""A model by the name that somebody else gave it: ResNet-50, meta-llama/Llama-2-7b, convnext_tiny.

A name is looked for in the zoo as it is, then without its punctuation and the owner in front, then in torchvision and
timm, if they are installed. An unknown name stays as it is; the error for it names the nearest.
"""

import re
from collections.abc import Iterable, Mapping

from epochcast.base.caching import remembered
from epochcast.describe.capture.model_reference import ModelReference
from epochcast.describe.capture.zoo import ZOO
from epochcast.errors import MissingExtra


def squeezed(name: str) -> str:
    """Letters and digits alone, in small letters, without the owner in front: org/ResNet-50 → resnet50."""
    return re.sub(r"[^a-z0-9]", "", name.rpartition("/")[2].casefold())


def by_squeezed(names: Iterable[str]) -> Mapping[str, str]:
    """Names by what is left of them without punctuation; those that are then the same are not there."""
    by_key: dict[str, str] = {}
    for name in names:
        key = squeezed(name)
        by_key[key] = "" if key in by_key else name
    return {key: name for key, name in by_key.items() if name}


def reference_of(name: str) -> str:
    """The reference of a model, for `find_model`."""
    reference = ModelReference.of(name)
    is_file = name.lower().endswith((".toml", ".json", ".onnx", ".keras"))
    if name in ZOO or reference.prefix or reference.is_code or is_file:
        return name
    return _zoo_names().get(squeezed(name)) or _library_reference(name) or name


@remembered(1)
def _zoo_names() -> Mapping[str, str]:
    return by_squeezed(ZOO)


def _library_reference(name: str) -> str | None:
    plain = name.partition(".")[0].casefold().replace("-", "_")
    for library, names in _library_names().items():
        if name in names:
            return f"{library}:{name}"
        if plain in names:
            return f"{library}:{plain}"
    return None


@remembered(1)
def _library_names() -> Mapping[str, frozenset[str]]:
    """What torchvision and timm can build; nothing where they are not installed."""
    try:
        from epochcast.describe.capture.torch.torchvision_shim import import_timm, import_torchvision

        torchvision, timm = import_torchvision(), import_timm()
    except (MissingExtra, ModuleNotFoundError):
        return {}
    deprecated = timm.models.get_deprecated_models()
    return {
        "torchvision": frozenset(torchvision.models.list_models()),
        "timm": frozenset((*timm.list_models(), *deprecated)),
    }
