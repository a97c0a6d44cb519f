"""`pkg.module:factory` and `file.py:factory`: import the object that a reference names. This runs the user's code.

This module needs no framework, so the object can be examined before a front end is chosen.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from epochcast.describe.capture.model_reference import ModelReference
from epochcast.describe.capture.no_network import check_not_cached
from epochcast.describe.capture.torch.traceback_notes import first_line, with_traceback
from epochcast.errors import BadInput, EndsProgram, EpochcastError, MissingExtra, UnknownName

EXTRAS = {
    "torch": "torch",
    "torchvision": "timm",
    "timm": "timm",
    "keras": "keras",
    "tensorflow": "tensorflow",
    "transformers": "hf",
    "lightning": "lightning",
}
"""Frameworks that a user's file may import, with the extra of ours that installs each."""


def named_object(reference: str) -> object:
    """The object a reference names. It is not called here."""
    parts = ModelReference.of(reference)
    place, path = parts.module, parts.factory
    if not place or not path:
        raise BadInput(f"{reference!r} is not a factory; write it like file.py:make_model or package.module:make_model")
    with _beside(Path(place).parent if parts.script else Path.cwd()):
        target: object = _module(place, reference)
    for name in path.split("."):
        if not hasattr(target, name):
            factories = [n for n, value in vars(target).items() if callable(value) and not n.startswith("_")]
            raise UnknownName(f"factory in {place}", path, factories)
        target = getattr(target, name)
    return target


def _module(place: str, reference: str) -> ModuleType:
    try:
        if not ModelReference.of(reference).script:
            return import_module(place)
        path = Path(place)
        if not path.is_file():
            raise BadInput(f"there is no file {place!r}")
        spec = spec_from_file_location(f"epochcast_user_{path.stem}", path)
        if spec is None or spec.loader is None:
            raise BadInput(f"{place!r} cannot be loaded as Python")
        module = module_from_spec(spec)
        sys.modules[spec.name] = module  # dataclasses and pickling inside look themselves up
        spec.loader.exec_module(module)
        return module
    except EpochcastError:
        raise
    except ModuleNotFoundError as absent:
        if absent.name and (place == absent.name or place.startswith(f"{absent.name}.")):
            raise BadInput(f"there is no module {absent.name!r}, which {reference!r} asks for") from None
        missing = missing_framework(absent)
        if missing is not None:
            raise missing from None
        raise with_traceback(BadInput(f"{place} cannot be imported: {absent}"), absent) from absent
    except SystemExit as problem:
        raise EndsProgram(f"importing {place}", problem) from problem
    except Exception as problem:  # the user's code may raise anything
        check_not_cached(place, problem)
        raise with_traceback(BadInput(f"{place} cannot be imported: {first_line(problem)}"), problem) from problem


def missing_framework(problem: BaseException) -> MissingExtra | None:
    """What to install where the user's code imports a framework that is absent; None for any other problem."""
    package = (problem.name or "").partition(".")[0] if isinstance(problem, ModuleNotFoundError) else ""
    return MissingExtra(EXTRAS[package], package) if package in EXTRAS else None


@contextmanager
def _beside(folder: Path) -> Iterator[None]:
    """With the folder first on the import path, as `python file.py` has it."""
    sys.path.insert(0, str(folder.resolve()))
    try:
        yield
    finally:
        sys.path.remove(str(folder.resolve()))


def is_keras(model: object) -> bool:
    """Whether an object is a Keras model, without importing Keras."""
    return bool(packages_of(model) & {"keras", "tensorflow", "tf_keras"})


def is_hugging_face(model: object) -> bool:
    """Whether it is a configuration, a model or a class of transformers, or a model that PEFT has wrapped."""
    return bool(packages_of(model) & {"transformers", "peft"})


def packages_of(value: object) -> set[str]:
    """Top-level packages of its class (or of the class that it is) and of the bases."""
    kinds = value.__mro__ if isinstance(value, type) else type(value).__mro__
    return {kind.__module__.partition(".")[0] for kind in kinds}
