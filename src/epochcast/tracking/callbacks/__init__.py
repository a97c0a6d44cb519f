"""Callbacks that record what a framework trains; each is loaded with its framework, on first use.

    from epochcast.tracking.callbacks import KerasTracking, LightningTracking, TrainerTracking

All take the same: `job`, `to`, `show`, `rank` and `attempt`, as `ec.track` does. Totals and the step at which a resumed
training begins are the framework's.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epochcast.tracking.callbacks.huggingface import TrainerTracking as TrainerTracking
    from epochcast.tracking.callbacks.keras import KerasTracking as KerasTracking
    from epochcast.tracking.callbacks.lightning import LightningTracking as LightningTracking

__all__ = ["KerasTracking", "LightningTracking", "TrainerTracking"]

_HOMES = {"KerasTracking": "keras", "LightningTracking": "lightning", "TrainerTracking": "huggingface"}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
