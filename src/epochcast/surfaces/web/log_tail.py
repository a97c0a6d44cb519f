"""The last lines of a run's log, where the run follows a log file that this machine has.

Only `epochcast track` and the scheduler write where a log is, never a request: nobody can ask for another file.
"""

import os
import re
import stat
from pathlib import Path

from epochcast.observe.store.store_rows import RunRow

MOST_BYTES = 256 * 1024
# Colours and movements of the cursor.
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b\x0c\x0e-\x1f]")


def log_tail(run: RunRow, lines: int) -> list[str] | None:
    """The lines, the oldest first; None where there is no such file here. Of a progress bar the last state is shown."""
    path = Path(run.source or "")
    if not path.is_absolute():
        return None
    try:
        with open(path, "rb", opener=_opened) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                return None
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - MOST_BYTES))
            text = stream.read(MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    whole = text.split("\n")[1:] if size > MOST_BYTES else text.split("\n")
    shown = [_ESCAPES.sub("", line.rstrip("\r").rpartition("\r")[2]) for line in whole]
    return shown[-lines - 1 :] if shown and shown[-1] else shown[-lines - 1 : -1]


def _opened(path: str, flags: int) -> int:
    """Without waiting for a writer where the path is a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)
