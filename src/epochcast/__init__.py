"""epochcast: how long a training job will take, what it needs and what it costs, before it runs.

The verbs are loaded on first use, so that importing the package is free. Some of them have the name of the package they
rest on: `epochcast.forecast` is a package, and calling it forecasts.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspect import Signature

    from epochcast.api import advise as advise
    from epochcast.api import fit as fit
    from epochcast.api import forecast as forecast
    from epochcast.api import inspect as inspect
    from epochcast.api import plan as plan
    from epochcast.api import scaling as scaling

__version__ = "0.1.0"
__all__ = ["__version__", "advise", "fit", "forecast", "inspect", "plan", "scaling"]

_VERBS = frozenset({"advise", "fit", "forecast", "inspect", "plan", "scaling"})


def _verb(name: str) -> Any:
    return getattr(import_module("epochcast.api"), name)


if not TYPE_CHECKING:  # a type checker sees the imports above, and no other names

    def __getattr__(name: str) -> Any:
        if name not in _VERBS:
            raise AttributeError(f"module 'epochcast' has no attribute {name!r}")
        return _verb(name)


class _CallablePackage(ModuleType):
    """A package of the same name as a verb: its modules are reached as ever, a call goes to the verb."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return _verb(self.__name__.rpartition(".")[2])(*arguments, **options)

    @property
    def __signature__(self) -> "Signature":
        from inspect import signature

        return signature(_verb(self.__name__.rpartition(".")[2]))


class _Epochcast(ModuleType):
    """Importing `epochcast.forecast.job` binds the name `forecast` here to the package; it must not hide the verb."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in _VERBS and isinstance(value, ModuleType):
            value.__class__ = _CallablePackage
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Epochcast
