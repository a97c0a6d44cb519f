"""Observations into the table, many at a time, each at most once.

A batch is one transaction: when `insert` has returned and its transaction is committed, all of it is kept; before,
nothing is. Rows go in the order of their key, so that two writers of the same rows wait for each other in the same
order. PostgreSQL takes them by COPY into a table of the connection and from there; SQLite by statements of many rows.
Steps that were thinned before are left out: their reports are in the joined row already.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from math import isnan
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, select

from epochcast.observe.runs.report import LONGEST_NAME, PHASES, Report
from epochcast.observe.store.database_tables import NO_RANK, REPORT_COLUMNS, attempts, observations
from epochcast.observe.store.insert_rows import blocks_of, placeholders
from epochcast.observe.store.store_rows import bounded

_COLUMNS = tuple(column.name for column in observations.columns)
_PHASE_PLACE = {phase: place for place, phase in enumerate(PHASES)}
_NAMES = ", ".join(_COLUMNS)
_SQLITE = f"INSERT INTO observations ({_NAMES}) VALUES {{values}} ON CONFLICT DO NOTHING"
_KEY = itemgetter(0, 1, 2, 3, 4)
_RANK, _PHASE, _LOSS, _WHAT = (_COLUMNS.index(name) for name in ("rank", "phase", "loss", "what"))
# The fields of a report in the order of the columns, and the columns in the order of the fields.
_IN_ORDER = itemgetter(*(Report._fields.index(name) for name in REPORT_COLUMNS))
_AS_REPORT = itemgetter(*(_COLUMNS.index(name) for name in Report._fields))
# Of the connection alone, empty again after every commit.
_ARRIVED = "CREATE TEMPORARY TABLE IF NOT EXISTS arrived (LIKE observations) ON COMMIT DELETE ROWS"
_COPY = f"COPY arrived ({_NAMES}) FROM STDIN"
_MOVE = f"INSERT INTO observations ({_NAMES}) SELECT {_NAMES} FROM arrived ON CONFLICT DO NOTHING"


def insert(
    connection: Connection,
    batches: Mapping[int, Sequence[Report]],
    received_at_seconds: float,
    *,
    even_thinned: bool = False,
) -> int:
    """Add the rows of runs, by their ids, that are not there yet; gives how many these are."""
    values = [values_of(run_id, row, received_at_seconds) for run_id, rows in batches.items() for row in rows]
    return insert_values(connection, values if even_thinned else not_thinned(connection, values))


def not_thinned(connection: Connection, values: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Without rows of steps that were thinned."""
    thinned = _thinned(connection, {value[0] for value in values})
    return [value for value in values if value[2] > thinned.get(value[:2], -1.0)] if thinned else values


def insert_values(connection: Connection, values: list[tuple[Any, ...]]) -> int:
    """The same of rows as `values_of` makes them."""
    if not values:
        return 0
    values.sort(key=_KEY)
    if connection.dialect.name == "sqlite":
        rows = [(*value[:_LOSS], _loss(value[_LOSS]), *value[_LOSS + 1 :]) for value in values]
        return sum(_insert_block(connection, block) for block in blocks_of(rows))
    return _copy(connection, values)


def _insert_block(connection: Connection, block: Sequence[tuple[Any, ...]]) -> int:
    statement = _SQLITE.format(values=placeholders(len(block), len(_COLUMNS)))
    return connection.exec_driver_sql(statement, tuple(chain.from_iterable(block))).rowcount


def values_of(run_id: int, row: Report, received_at_seconds: float) -> tuple[Any, ...]:
    """A report in the order of the columns, checked."""
    row.check()
    values = [run_id, *_IN_ORDER(row), received_at_seconds]
    values[_RANK] = NO_RANK if row.rank is None else row.rank
    values[_PHASE] = _PHASE_PLACE[row.phase]
    values[_WHAT] = bounded(row.what, LONGEST_NAME) or None
    return tuple(values)


def _copy(connection: Connection, values: Iterable[tuple[Any, ...]]) -> int:
    connection.exec_driver_sql("SET LOCAL client_min_messages = warning")  # that the table is there is no news
    connection.exec_driver_sql(_ARRIVED)
    cursor: Any = connection.connection.cursor()
    try:
        with cursor.copy(_COPY) as copy:
            for value in values:
                copy.write_row(value)
    finally:
        cursor.close()
    return connection.exec_driver_sql(_MOVE).rowcount


def _thinned(connection: Connection, run_ids: Iterable[int]) -> dict[tuple[int, int], float]:
    """The step up to which attempts were thinned."""
    rows = connection.execute(
        select(attempts.c.run_id, attempts.c.attempt, attempts.c.thinned_step).where(
            attempts.c.run_id.in_(list(run_ids)), attempts.c.thinned_step.is_not(None)
        )
    )
    return {(run_id, attempt): step for run_id, attempt, step in rows}


def _loss(loss: float | None) -> float | str | None:
    """SQLite would keep a loss that is not a number as unknown; as text it stays what it is."""
    return "nan" if loss is not None and isnan(loss) else loss


def row_from(values: Sequence[Any]) -> Report:
    """The report of a row that was selected with all columns."""
    values, loss = list(values), values[_LOSS]
    values[_RANK] = None if values[_RANK] == NO_RANK else values[_RANK]
    values[_PHASE] = PHASES[values[_PHASE]]
    values[_LOSS] = None if loss is None else float(loss)
    values[_WHAT] = values[_WHAT] or ""
    return Report(*_AS_REPORT(values))
