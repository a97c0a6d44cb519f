"""torchvision beside a torch it was not built for: its Python half works if two of its operators are declared first.

torchvision registers shape functions for `nms` and `qnms` on import and fails where its compiled half cannot be loaded
("operator torchvision::nms does not exist"). Declaring them is enough: no captured model calls them.
"""

import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from epochcast.describe.capture.torch.capture_lock import ALONE
from epochcast.errors import MissingExtra

_declared: list[Any] = []


def import_torchvision() -> ModuleType:
    """torchvision, with its missing operators declared where a plain import fails."""
    return _imported("torchvision")


def import_timm() -> ModuleType:
    """timm, which imports torchvision."""
    _imported("torchvision")
    return _imported("timm")


def _imported(package: str) -> ModuleType:
    from importlib import import_module

    prepare_torchvision()
    try:
        return _quietly(import_module, package)
    except ModuleNotFoundError as absent:
        if absent.name != package:
            raise
        raise MissingExtra("timm", package) from None
    except RuntimeError as problem:
        if "torchvision::" not in str(problem):
            raise
    _declare()
    return _quietly(import_module, package)


def prepare_torchvision() -> None:
    """Declare the missing operators without importing torchvision, so that whoever imports it does not fail halfway and
    import everything again.
    """
    spec = find_spec("torchvision") if "torchvision" not in sys.modules else None
    if spec is None or spec.origin is None:
        return
    compiled = [path for ending in ("so", "pyd") for path in Path(spec.origin).parent.glob(f"_C*.{ending}")]
    try:
        for path in compiled:
            torch.ops.load_library(str(path))  # type: ignore[no-untyped-call]
    except OSError:  # built for another torch
        compiled = []
    if not compiled:
        _declare()


def _declare() -> None:
    if not _declared:
        package: Any = torch.library
        library = package.Library("torchvision", "DEF")
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _declared.append(library)


def _quietly(import_module: object, package: str) -> ModuleType:
    """Imported without the warning that the compiled image readers are absent: nothing is read."""
    with ALONE, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module: ModuleType = import_module(package)  # type: ignore[operator]
        except RuntimeError:
            for name in [n for n in sys.modules if n == package or n.startswith(f"{package}.")]:
                del sys.modules[name]
            raise
    return module
