"""What reports change of their runs: how far these are, and which attempts they have; of many runs in few statements.

Runs are locked in the order of their ids, so that two servers that write to the same runs wait for each other instead
of stopping each other. SQLite has one writer at a time and needs no locks.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from sqlalchemy import Connection, select, update

from epochcast.observe.runs.report import Report
from epochcast.observe.store.database_tables import attempts, runs
from epochcast.observe.store.insert_rows import blocks_of, parts_of, placeholders

_NEWEST = "SELECT step FROM observations WHERE run_id = runs.id ORDER BY attempt DESC, step DESC LIMIT 1"
_SEEN = f"""UPDATE runs
SET seen_at_seconds = {{now}}, step = ({_NEWEST}), total_steps = coalesce(told.total, total_steps)
FROM {{told}} WHERE runs.id = told.id"""
# One statement for many runs: their ids, and their totals where they tell one.
_SEEN_SQLITE = "WITH told(id, total) AS (VALUES {values}) " + _SEEN.format(now="?", told="told")
_SEEN_POSTGRES = _SEEN.format(now="%s", told="unnest(%s::bigint[], %s::float8[]) AS told(id, total)")
_ATTEMPTS = "INSERT INTO attempts (run_id, attempt, state) {values} ON CONFLICT DO NOTHING"
_ATTEMPTS_POSTGRES = _ATTEMPTS.format(values="SELECT *, 'running' FROM unnest(%s::bigint[], %s::bigint[])")


def lock_runs(connection: Connection, run_ids: Collection[int]) -> set[int]:
    """Those of the runs that are there; nobody else changes them until the transaction ends."""
    locked: set[int] = set()
    for part in parts_of(sorted(run_ids)):
        query = select(runs.c.id).where(runs.c.id.in_(part)).order_by(runs.c.id)
        locked.update(connection.execute(query.with_for_update(key_share=True)).scalars())
    return locked


def note_seen(connection: Connection, batches: Mapping[int, Sequence[Report]], now_seconds: float) -> None:
    """Of reports by the ids of their runs: their attempts, and how far each run is by its last attempt."""
    note_attempts(connection, {(run_id, row.attempt) for run_id, rows in batches.items() for row in rows})
    run_ids = sorted(batches)
    totals = [_last_total(batches[run_id]) for run_id in run_ids]
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql(_SEEN_POSTGRES, (now_seconds, run_ids, totals))
        return
    for block in blocks_of(list(zip(run_ids, totals, strict=True))):
        statement = _SEEN_SQLITE.format(values=placeholders(len(block), 2))
        connection.exec_driver_sql(statement, (*chain.from_iterable(block), now_seconds))


def note_attempts(connection: Connection, begun: Iterable[tuple[int, int]]) -> None:
    """Attempts, by run and number, that have begun; those that are known stay as they are."""
    pairs = sorted(begun)
    if connection.dialect.name != "sqlite":
        columns = [run_id for run_id, _ in pairs], [attempt for _, attempt in pairs]
        connection.exec_driver_sql(_ATTEMPTS_POSTGRES, columns)
        return
    for block in blocks_of(pairs):
        values = ", ".join(["(?, ?, 'running')"] * len(block))
        statement = _ATTEMPTS.format(values=f"VALUES {values}")
        connection.exec_driver_sql(statement, tuple(chain.from_iterable(block)))


def known_attempts(connection: Connection, run_ids: Collection[int]) -> set[tuple[int, int]]:
    """Attempts of runs, by run and number."""
    pairs: set[tuple[int, int]] = set()
    for part in parts_of(sorted(run_ids)):
        query = select(attempts.c.run_id, attempts.c.attempt).where(attempts.c.run_id.in_(part))
        pairs.update((run_id, attempt) for run_id, attempt in connection.execute(query))
    return pairs


def note_runs(connection: Connection, columns: Mapping[int, Mapping[str, Any]]) -> None:
    """Columns of runs, by the runs' ids."""
    for run_id in sorted(columns):
        if columns[run_id]:
            connection.execute(update(runs).where(runs.c.id == run_id).values(**columns[run_id]))


class AttemptEnd(NamedTuple):
    """How an attempt ended, when (in seconds since 1970), and why where it did not finish."""

    state: str
    at_seconds: float
    reason: str | None = None


def note_ends(connection: Connection, ended: Mapping[tuple[int, int], AttemptEnd], now_seconds: float) -> None:
    """Attempts, by run and number, that have ended. So has the run, unless a later attempt has begun."""
    for (run_id, attempt), end in sorted(ended.items()):
        values = {"state": end.state, "ended_at_seconds": end.at_seconds}
        of_run = attempts.c.run_id == run_id
        connection.execute(update(attempts).where(of_run, attempts.c.attempt == attempt).values(**values))
        is_last = ~select(attempts.c.attempt).where(of_run, attempts.c.attempt > attempt).exists()
        of_last = update(runs).where(runs.c.id == run_id, is_last)
        connection.execute(of_last.values(**values, seen_at_seconds=now_seconds, end_reason=end.reason))


def _last_total(rows: Sequence[Report]) -> float | None:
    return next((row.total_steps for row in reversed(rows) if row.total_steps), None)
