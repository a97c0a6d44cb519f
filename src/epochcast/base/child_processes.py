"""Worker processes that never outlive whoever started them, however that ended: SIGTERM, SIGKILL, or a power user.

A thread of the worker watches its parent. (Linux could send a signal on the parent's death, but means the death of the
thread that started the worker, which ends earlier in a server.)
"""

import os
import time
from threading import Thread

LOOK_SECONDS = 0.25


def end_with_parent(parent: int | None = None) -> None:
    """Called in a worker: it ends within a fraction of a second of its parent. `parent` is the id that it must have."""
    expected = os.getppid() if parent is None else parent
    Thread(target=_watch, args=(expected,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os._exit(1)
