"""Which version the tables of a database have, and how they come to the newest.

Versions are the revisions of `migrations/versions`, numbered; Alembic runs them and writes down the last in a table of
its own. A migration is one transaction: a process that is killed leaves the version of before. It takes its lock before
it looks at the version, so that of several processes one migrates and the others wait for it.
"""

import sqlite3
import time
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, inspect, text

from epochcast.observe.store.database_engine import writer
from epochcast.observe.store.store_errors import NoTables, WrongSchema, plain_errors
from epochcast.observe.store.store_location import shown_url, sqlite_file

NEWEST = "0006"
OTHER_TABLES = "the database has other tables than this epochcast"
VERSION_TABLE = "epochcast_schema"
MIGRATIONS = Path(__file__).parent / "migrations"
# Any number, as long as every migration takes the same (PostgreSQL's advisory locks).
_LOCK = 7_302_981
_RETRY_SECONDS = 0.02


def version_of(connection: Connection) -> str | None:
    """The version of the tables; None where there are none of ours."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    version = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    return None if version is None else str(version)


def check_version(engine: Engine, url: str) -> None:
    """Refuse tables that are not of this version, saying what to do."""
    with plain_errors(url), engine.connect() as connection:
        version = version_of(connection)
    if version is None:
        raise NoTables(f"the database {shown_url(url)} has no tables yet; {_do(url)}", OTHER_TABLES)
    if version < NEWEST:
        text = f"the database {shown_url(url)} has tables of version {version}, not {NEWEST}; {_do(url)}"
        raise WrongSchema(text, OTHER_TABLES)
    _refuse_newer(version, url)


def migrate(engine: Engine, url: str) -> tuple[str | None, str]:
    """Bring the tables to the newest version; gives the versions before and after."""
    file = sqlite_file(url)
    with plain_errors(url):
        if file is not None:
            with engine.connect() as connection:
                _refuse_others(connection, url)
                connection.rollback()
                _write_ahead(connection.connection.cursor())  # outside of any transaction
        with writer(engine).begin() as connection:
            if file is None:
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            before = version_of(connection)
            if before is not None and before >= NEWEST:
                _refuse_newer(before, url)
                return before, before
            _refuse_others(connection, url)
            _upgrade(connection)
    return before, NEWEST


def _refuse_others(connection: Connection, url: str) -> None:
    if version_of(connection) is None and (others := inspect(connection).get_table_names()):
        raise WrongSchema(
            f"the database {shown_url(url)} has tables of another program "
            f"({', '.join(sorted(others)[:3])}, …); give epochcast one of its own",
            OTHER_TABLES,
        )


def _write_ahead(cursor: Any) -> None:
    """Switch SQLite to its write-ahead log. SQLite does not wait for other processes here, so we retry."""
    (wait_milliseconds,) = cursor.execute("PRAGMA busy_timeout").fetchone()
    end = time.monotonic() + wait_milliseconds / 1000
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            return


def _upgrade(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["version_table"] = VERSION_TABLE
    command.upgrade(config, "head")


def _refuse_newer(version: str, url: str) -> None:
    if version > NEWEST:
        raise WrongSchema(
            f"the database {shown_url(url)} has tables of version {version}, made by a newer epochcast; "
            f"this one knows {NEWEST}: install the newer one",
            OTHER_TABLES,
        )


def _do(url: str) -> str:
    return f"run: epochcast store migrate --database {shown_url(url)}"
