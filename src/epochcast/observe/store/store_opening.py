"""Opening a store: the database found, its tables checked, those of a new SQLite file made."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from epochcast.errors import BadInput, EpochcastError, MissingExtra
from epochcast.observe.store.store_location import VARIABLE, database_url, shown_url, sqlite_file

if TYPE_CHECKING:
    from epochcast.observe.store.store import Store

WAIT_SECONDS = 10.0
"""For another writer, or for a server to answer."""


def open_store(database: str | None = None, *, wait_seconds: float | None = None) -> "Store":
    """The store at `database`, a path or a URL; else where EPOCHCAST_STORE says; else in the user's data folder.

    A new SQLite file gets its tables at once, from one of the processes that open it; other databases by `migrated`.
    Only its user may read a new file: it says who trains what, and has the digests of tokens.
    """
    url = database_url(database)
    store = _store(url, wait_seconds)
    file = sqlite_file(url)
    from epochcast.observe.store.store_errors import NoTables
    from epochcast.observe.store.store_schema import check_version, migrate

    try:
        if file is not None and not _exists(file, url):
            _make_file(url)
        try:
            check_version(store.engine, url)
        except NoTables:
            if file is None:
                raise
            migrate(store.engine, url)
    except BaseException:
        store.close()
        raise
    return store


def existing_store(database: str | None = None, *, wait_seconds: float | None = None) -> "Store | None":
    """The same for whoever only reads: None where there is no SQLite file yet."""
    url = database_url(database)
    file = sqlite_file(url)
    return None if file is not None and not _exists(file, url) else open_store(database, wait_seconds=wait_seconds)


def migrated(database: str | None = None, *, wait_seconds: float | None = None) -> tuple[str | None, str]:
    """Bring the tables of a database to the newest version; gives the versions before and after."""
    url = database_url(database)
    with _store(url, wait_seconds) as store:
        from epochcast.observe.store.store_schema import migrate

        if sqlite_file(url) is not None:
            _make_file(url)
        return migrate(store.engine, url)


@dataclass(frozen=True, slots=True)
class Look:
    """A database as it is found: `version` of its tables, None where there are none; what is wrong with it."""

    database: str
    exists: bool
    size_bytes: int | None = None
    version: str | None = None
    problem: str | None = None


def look(database: str | None = None, *, wait_seconds: float = 2.0) -> Look:
    """Look at a database without changing or making anything."""
    try:
        url = database_url(database)
    except BadInput as error:
        return Look(str(database or os.environ.get(VARIABLE)), False, problem=str(error))
    where, file = shown_url(url), sqlite_file(url)
    size_bytes = version = None
    try:
        if file is not None and not _exists(file, url):
            return Look(where, False)
        with _store(url, wait_seconds) as store:
            from epochcast.observe.store.store_schema import check_version, version_of

            with store.reading() as connection:
                version = version_of(connection)
            size_bytes = store.size_bytes() if version is not None or file is not None else None
            check_version(store.engine, url)
    except EpochcastError as error:
        return Look(where, True, size_bytes, version, str(error))
    return Look(where, True, size_bytes, version)


def _store(url: str, wait_seconds: float | None) -> "Store":
    try:
        from epochcast.observe.store.database_engine import make_engine
        from epochcast.observe.store.store import Store

        return Store(make_engine(url, WAIT_SECONDS if wait_seconds is None else wait_seconds), url)
    except ModuleNotFoundError as error:
        if error.name not in ("sqlalchemy", "alembic", "psycopg"):
            raise
        raise MissingExtra("store", error.name) from None


def _exists(file: Path, url: str) -> bool:
    try:
        return file.exists()
    except OSError as error:  # a folder above it that we may not enter, a name too long
        from epochcast.observe.store.store_errors import StoreError

        text = f"the database {shown_url(url)} cannot be opened: {error.strerror}"
        raise StoreError(text, "the database cannot be opened") from None


def _make_file(url: str) -> None:
    """An empty file that SQLite fills; what SQLite puts beside it has the same rights."""
    from epochcast.observe.store.store_errors import StoreError

    file = sqlite_file(url)
    assert file is not None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        text = f"the folder of the database {shown_url(url)} cannot be made: {error.strerror}"
        raise StoreError(text, "the folder of the database cannot be made") from None
    with suppress(OSError):  # it is there, or SQLite says what is wrong
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
