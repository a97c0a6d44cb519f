"""epochcast: how long a training job will take, what it needs and what it costs, before it runs.

The verbs are loaded on first use, so that importing the package is free.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epochcast.api import forecast as forecast
    from epochcast.api import inspect as inspect

__version__ = "0.1.0"
__all__ = ["__version__", "forecast", "inspect"]

_VERBS = {"forecast": "epochcast.api", "inspect": "epochcast.api"}


def __getattr__(name: str) -> object:
    if name not in _VERBS:
        raise AttributeError(f"module 'epochcast' has no attribute {name!r}")
    return getattr(import_module(_VERBS[name]), name)
