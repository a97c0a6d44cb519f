"""Connections to the database, set so that what is committed stays.

SQLite: write-ahead log with full synchronisation (a commit is on the disk before it returns), and transactions that
write take their lock at once, so that two writers wait for each other instead of failing half-way. PostgreSQL: its own
defaults; a connection that the server has closed is replaced before it is used.
"""

from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event

from epochcast.observe.store.store_location import sqlite_file

_WRITES = "epochcast_writes"


def make_engine(url: str, wait_seconds: float) -> Engine:
    """An engine for readers; `writer` makes the one for writers of it. `wait_seconds` is how long both wait."""
    file = sqlite_file(url)
    if file is None:
        seconds = max(2, round(wait_seconds))
        arguments = {"connect_timeout": seconds, "options": f"-c lock_timeout={seconds * 1000}"}
        return create_engine(url, connect_args=arguments, pool_pre_ping=True, pool_timeout=wait_seconds)
    engine = create_engine(url, connect_args={"timeout": wait_seconds}, pool_timeout=wait_seconds)
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


def writer(engine: Engine) -> Engine:
    """The same database for transactions that write."""
    return engine.execution_options(**{_WRITES: True})


def _on_connect(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions begin where we say, not where Python's module guesses
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")


def _on_begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
