"""Messages about runs that somebody is to get: written down first, sent later, each once however often it is found.

A notice is identified by its key (the run, the event, the receiver). A sender that is killed after sending and
before writing that down sends once more: a webhook may get a message twice, and never misses one.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select, update

from epochcast.observe.store.database_tables import notices
from epochcast.observe.store.insert_rows import or_nothing
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_rows import bounded

# Seconds until the next try, doubled each time.
FIRST_WAIT_SECONDS, MOST_TRIES = 5.0, 8


@dataclass(frozen=True, slots=True)
class Notice:
    """One message to one place."""

    key: str
    to: str
    message: Mapping[str, Any] = field(hash=False)
    tries: int


def note(store: Store, key: str, to: str, message: Mapping[str, Any]) -> bool:
    """Write a message down; false where it is there already."""
    now = time.time()
    values = {
        "key": bounded(key, 400),
        "to": bounded(to),
        "message": dict(message),
        "state": "waiting",
        "tries": 0,
        "next_at_seconds": now,
        "added_at_seconds": now,
    }
    with store.writing() as connection:
        added = connection.execute(
            or_nothing(connection, notices).values(**values), execution_options={"preserve_rowcount": True}
        )
        return added.rowcount > 0


def due(store: Store, now_seconds: float, most: int = 20) -> list[Notice]:
    """Those that wait to be sent now, the oldest first."""
    query = (
        select(notices.c.key, notices.c.to, notices.c.message, notices.c.tries)
        .where(notices.c.state == "waiting", notices.c.next_at_seconds <= now_seconds)
        .order_by(notices.c.added_at_seconds)
        .limit(most)
    )
    with store.reading() as connection:
        return [Notice(row.key, row.to, row.message, row.tries) for row in connection.execute(query)]


def sent(store: Store, notice: Notice) -> None:
    """It arrived."""
    _write(store, notice, state="sent", tries=notice.tries + 1)


def failed(store: Store, notice: Notice, now_seconds: float) -> None:
    """It did not: later again, and after some tries no more."""
    tries = notice.tries + 1
    if tries >= MOST_TRIES:
        _write(store, notice, state="given up", tries=tries)
    else:
        _write(store, notice, tries=tries, next_at_seconds=now_seconds + FIRST_WAIT_SECONDS * 2**notice.tries)


def _write(store: Store, notice: Notice, **values: Any) -> None:
    with store.writing() as connection:
        connection.execute(update(notices).where(notices.c.key == notice.key).values(**values))
