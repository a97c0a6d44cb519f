"""Opening a store: the database found, its tables checked, those of a new SQLite file made."""

from typing import TYPE_CHECKING

from epochcast.errors import MissingExtra
from epochcast.store.place import database_url, shown_url, sqlite_file

if TYPE_CHECKING:
    from epochcast.store.store import Store

WAIT_SECONDS = 10.0
"""For another writer, or for a server to answer."""


def open_store(database: str | None = None, *, wait_seconds: float = WAIT_SECONDS) -> "Store":
    """The store at `database`, a path or a URL; else where EPOCHCAST_STORE says; else in the user's data folder.

    A new SQLite file gets its tables at once; other databases by `migrated`.
    """
    url = database_url(database)
    store = _store(url, wait_seconds)
    file = sqlite_file(url)
    from epochcast.store.schema import check_version, migrate

    try:
        if file is not None and not (file.exists() and file.stat().st_size):
            _make_folder(url)
            migrate(store.engine, url)
        else:
            check_version(store.engine, url)
    except BaseException:
        store.close()
        raise
    return store


def existing_store(database: str | None = None, *, wait_seconds: float = WAIT_SECONDS) -> "Store | None":
    """The same for whoever only reads: None where there is no SQLite file yet."""
    file = sqlite_file(database_url(database))
    return None if file is not None and not file.exists() else open_store(database, wait_seconds=wait_seconds)


def migrated(database: str | None = None, *, wait_seconds: float = WAIT_SECONDS) -> tuple[str | None, str]:
    """Bring the tables of a database to the newest version; gives the versions before and after."""
    url = database_url(database)
    with _store(url, wait_seconds) as store:
        from epochcast.store.schema import migrate

        if sqlite_file(url) is not None:
            _make_folder(url)
        return migrate(store.engine, url)


def _store(url: str, wait_seconds: float) -> "Store":
    try:
        from epochcast.store.engine import make_engine
        from epochcast.store.store import Store

        return Store(make_engine(url, wait_seconds), url)
    except ModuleNotFoundError as error:
        if error.name not in ("sqlalchemy", "alembic", "psycopg"):
            raise
        raise MissingExtra("store", error.name) from None


def _make_folder(url: str) -> None:
    from epochcast.store.errors import StoreError

    file = sqlite_file(url)
    assert file is not None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"the folder of the database {shown_url(url)} cannot be made: {error.strerror}") from None
