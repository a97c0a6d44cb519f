"""Python's search for cyclic garbage, left out while frozen values are built by the hundred thousand.

They have no cycles, but every new one brings the next search of all of them nearer: half of the time that building an
80-layer network takes. What waits meanwhile is found as soon as building is done.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collecting() -> Iterator[None]:
    """No search for cycles inside. Also a decorator. Of several threads inside, the first to enter resumes it."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
