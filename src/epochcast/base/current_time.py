"""What time it is: the machine's, or EPOCHCAST_NOW (2026-11-17T09:00) where an answer must come out the same again."""

import os
from datetime import datetime

from epochcast.errors import BadInput


def now() -> datetime:
    """The time here, with its zone."""
    fixed_time = os.environ.get("EPOCHCAST_NOW")
    if not fixed_time:
        return datetime.now().astimezone()
    try:
        return datetime.fromisoformat(fixed_time).astimezone()
    except ValueError:
        raise BadInput(f"EPOCHCAST_NOW must be a time like 2026-11-17T09:00, got {fixed_time!r}") from None
