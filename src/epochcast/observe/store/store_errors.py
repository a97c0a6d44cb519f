"""What a database complains about, as one line a user can act on.

`Unavailable` is what may go away by itself (a lock, a server that is being started again): who writes keeps its rows
and tries later. Every other `StoreError` stays until somebody does something.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, TimeoutError

from epochcast.errors import EpochcastError
from epochcast.observe.store.store_location import shown_url


class StoreError(EpochcastError):
    """The database cannot do what was asked. `public_text` says so without where the database is."""

    def __init__(self, text: str, public_text: str | None = None) -> None:
        super().__init__(text)
        self.public_text = text if public_text is None else public_text


class Unavailable(StoreError):
    """Not now: locked, or out of reach."""


class DiskFull(StoreError):
    """There is no room for more."""


class WrongSchema(StoreError):
    """The tables are older or newer than this epochcast, or somebody else's."""


class NoTables(WrongSchema):
    """The database is empty."""


# Primary result codes of SQLite (https://www.sqlite.org/rescode.html) and what they mean to a user.
_SQLITE: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_BUSY: (Unavailable, "is locked by another program; try again, or end that one"),
    sqlite3.SQLITE_LOCKED: (Unavailable, "is locked by another program; try again, or end that one"),
    sqlite3.SQLITE_READONLY: (StoreError, "cannot be written: the file or its folder is read-only"),
    sqlite3.SQLITE_PERM: (StoreError, "cannot be written: the file or its folder is read-only"),
    sqlite3.SQLITE_IOERR: (StoreError, "cannot be written or read: the disk is full or damaged"),
    sqlite3.SQLITE_FULL: (DiskFull, "cannot grow: the disk is full"),
    sqlite3.SQLITE_CANTOPEN: (StoreError, "cannot be opened: there is no such folder, or it is not accessible"),
    sqlite3.SQLITE_NOTADB: (StoreError, "is not an SQLite database"),
    sqlite3.SQLITE_CORRUPT: (StoreError, "is damaged: restore a backup, or export what can still be read"),
    sqlite3.SQLITE_CONSTRAINT: (StoreError, "refuses a row; what it belongs to may have been deleted"),
    sqlite3.SQLITE_TOOBIG: (StoreError, "does not take a value that large"),
}
# What a full disk is reported as where not the database grows, but its log or the memory that its readers share.
_SQLITE_NO_ROOM = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP)
# Classes and codes of SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html), longest match first.
_POSTGRES: tuple[tuple[str, type[StoreError], str], ...] = (
    ("53100", DiskFull, "cannot grow: the disk of the server is full"),
    ("40", Unavailable, "was busy with another writer"),
    ("55", Unavailable, "was busy with another writer"),
    ("53", Unavailable, "has no room for another connection"),
    ("57", Unavailable, "was shut down or is starting"),
    ("08", Unavailable, "cannot be reached"),
    ("22", StoreError, "does not take a value"),
    ("23", StoreError, "refuses a row; what it belongs to may have been deleted"),
    ("28", StoreError, "refuses the login"),
    ("3D", StoreError, "does not exist on its server"),
    ("42501", StoreError, "does not allow this to the user"),
    ("25006", StoreError, "is read-only"),
)


@contextmanager
def plain_errors(url: str) -> Iterator[None]:
    """What the database complains about inside becomes a `StoreError`; other errors pass."""
    try:
        yield
    except StoreError:
        raise
    except Exception as error:  # of SQLAlchemy, or of a driver where it was used by itself
        translated = _translated(url, error)
        if translated is None:
            raise
        raise translated from None


def _translated(url: str, error: Exception) -> StoreError | None:
    cause = error.orig if isinstance(error, DBAPIError) else error
    where = f"the database {shown_url(url)}"
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0)
        kind, complaint = _SQLITE.get(code & 0xFF, (None, ""))
        if code in _SQLITE_NO_ROOM:
            kind = DiskFull
        return None if kind is None else kind(f"{where} {complaint} ({cause})", f"the database {complaint}")
    if isinstance(error, TimeoutError):
        return Unavailable(f"{where} has no free connection", "the database has no free connection")
    if not hasattr(cause, "sqlstate"):
        return None
    state = getattr(cause, "sqlstate", None) or ""
    for begin, kind, complaint in _POSTGRES:
        if state.startswith(begin):
            return kind(f"{where} {complaint}: {_first_line(cause)}", f"the database {complaint}")
    if state:
        return None
    return Unavailable(f"{where} cannot be reached: {_first_line(cause)}", "the database cannot be reached")


def _first_line(cause: object) -> str:
    line = next((line for line in str(cause).splitlines() if line.strip()), "no reason given")
    return re.sub(r"password=\S+", "password=***", line.strip())
