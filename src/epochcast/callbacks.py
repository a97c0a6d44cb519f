"""Callbacks that record what a framework trains; a framework is loaded when its callback is first used.

    from epochcast.callbacks import KerasTracking, LightningTracking, TrainerTracking

All take the same: `job`, `to`, `show`, `rank` and `attempt`, as `ec.track` does. Totals and the step at which a resumed
training begins are the framework's. What they do is in a module for each, as a class without a base; the framework's
own base class is put under it here.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from epochcast.errors import MissingExtra

if TYPE_CHECKING:
    KerasTracking: Any
    LightningTracking: Any
    TrainerTracking: Any

__all__ = ["KerasTracking", "LightningTracking", "TrainerTracking"]

_HOMES = {
    "KerasTracking": "keras_callback",
    "LightningTracking": "lightning_callback",
    "TrainerTracking": "trainer_callback",
}


def _based(name: str) -> type:
    """The class with the framework's base; of several packages the one that the program has loaded, else the first."""
    home = import_module(f"epochcast.observe.recording.callbacks.{_HOMES[name]}")
    hooks = home.HOOKS
    places = [place.partition(":") for place in home.BASES]
    for package, _, base in sorted(places, key=lambda place: place[0] not in sys.modules):
        if find_spec(package.partition(".")[0]) is not None:
            members = {"__module__": __name__, "__doc__": hooks.__doc__}
            return type(name, (hooks, getattr(import_module(package), base)), members)
    raise MissingExtra(home.EXTRA, places[0][0].partition(".")[0])


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = callback = _based(name)
        return callback
