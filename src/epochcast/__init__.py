"""epochcast: how long a training job will take, what it needs and what it costs, before it runs.

Public names are loaded on first use, so that importing the package is free.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epochcast.api import advise as advise
    from epochcast.api import fit as fit
    from epochcast.api import forecast as forecast
    from epochcast.api import inspect as inspect
    from epochcast.api import plan as plan
    from epochcast.api import scaling as scaling

__version__ = "0.1.0"
__all__ = ["__version__", "advise", "fit", "forecast", "inspect", "plan", "scaling"]

# Where each public name is defined.
_HOMES = dict.fromkeys(("advise", "fit", "forecast", "inspect", "plan", "scaling"), "epochcast.api")


if not TYPE_CHECKING:  # a type checker sees the imports above, and no other names

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'epochcast' has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *_HOMES})
