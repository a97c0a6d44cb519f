"""Functions that are compiled by numba when they are first called.

The result is kept on disk, beside the source or in the user's cache folder (`NUMBA_CACHE_DIR` names another); where
nothing can be written it is made anew in every process. Numba asks the file of a function whether it changed, and not
the files of what it calls: who edits `atc_dispatch` touches `atc_rollout_kernel`. What is on disk names the classes
that functions take: who renames one renames the modules as well, otherwise an upgrade cannot read what it finds.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from epochcast.errors import MissingExtra

try:
    from numba import njit
except ImportError:
    raise MissingExtra("schedule", "numba") from None

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """The function, compiled; division by zero gives infinity, as in numpy."""
    dispatcher: Any
    try:
        dispatcher = njit(cache=True, error_model="numpy")(function)
    except RuntimeError:  # no folder to keep it in
        dispatcher = njit(error_model="numpy")(function)
    ready: F = dispatcher
    return ready


def is_cached(dispatcher: Any) -> bool:
    """Whether a compiled function is ready, in this process or on disk."""
    if dispatcher.signatures:
        return True
    folder = dispatcher.stats.cache_path
    if folder is None:
        return False
    source = Path(dispatcher.py_func.__code__.co_filename)
    index = Path(folder).glob(f"{source.stem}.{dispatcher.py_func.__name__}-*.nbi")
    return any(file.stat().st_mtime >= source.stat().st_mtime for file in index)
