"""A whole store as JSON lines, and back: for backups, and to move from one database to another.

The first line names the format, the last counts what came before it, so that a file that was cut off is noticed. In
between, each line is one thing by its kind: a job, a run, an attempt, a forecast, a machine, a measurement, a queue and
what belongs to it, or a block of observations. Ids are those of one database and are not written: a run and a queue are
known by their keys, a job by its fingerprint. Who works a queue off now is not written either.
Every number comes back to the last digit; a loss that JSON has no number for is a word ("nan", "inf").
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

from sqlalchemy import Connection, Table, select

from epochcast.observe.runs.report import PHASES
from epochcast.observe.store.database_tables import (
    attempts,
    forecasts,
    jobs,
    machines,
    measurements,
    observations,
    queue_jobs,
    queue_machines,
    queue_starts,
    queues,
    runs,
)
from epochcast.observe.store.store import Store, in_parts
from epochcast.observe.store.store_schema import NEWEST

FORMAT = 1
BLOCK_ROWS = 1000
KINDS: Mapping[str, Table] = {
    "job": jobs,
    "run": runs,
    "attempt": attempts,
    "forecast": forecasts,
    "machine": machines,
    "measurement": measurements,
    "queue": queues,
    "queue_job": queue_jobs,
    "queue_machine": queue_machines,
    "queue_start": queue_starts,
}
"""In the order in which they are written: what is referred to comes first."""

OBSERVED = tuple(column.name for column in observations.columns)[1:]
_LOSS, _PHASE = OBSERVED.index("loss"), OBSERVED.index("phase")


def export_lines(store: Store, now_seconds: float | None = None) -> Iterator[str]:
    """The lines of the whole store, of one moment, without line ends."""
    made_at = time.time() if now_seconds is None else now_seconds
    counts: dict[str, int] = {}
    with store.snapshot() as connection:
        yield _line({"epochcast_store": FORMAT, "schema": NEWEST, "exported_at_seconds": made_at})
        names = _names(connection)
        for kind, table in KINDS.items():
            counts[kind] = 0
            for row in connection.execute(select(table).order_by(*_order(table))):
                counts[kind] += 1
                yield _line({kind: _portable(dict(row._mapping), names)})
        counts["observation"] = 0
        for block in _blocks(connection, names["run"]):
            counts["observation"] += len(block["rows"])
            yield _line({"observations": block})
        yield _line({"end": counts})


def _names(connection: Connection) -> dict[str, dict[int, str]]:
    """By what jobs, runs and queues are known elsewhere, by their ids here."""
    keys = {"job": jobs.c.fingerprint, "run": runs.c.key, "queue": queues.c.key}
    return {
        kind: {row.id: row.name for row in connection.execute(select(name.table.c.id, name.label("name")))}
        for kind, name in keys.items()
    }


def _order(table: Table) -> list[Any]:
    """The same in every database, where ids are not."""
    if "added_at_seconds" in table.c:
        return [table.c.added_at_seconds, table.c.get("key", table.c.get("fingerprint"))]
    if "made_at_seconds" in table.c:
        return [table.c.made_at_seconds, table.c.key]
    return list(table.primary_key.columns)


def _portable(values: dict[str, Any], names: Mapping[str, Mapping[int, str]]) -> dict[str, Any]:
    for column in ("id", "holder", "held_until_seconds"):
        values.pop(column, None)
    for kind, by_id in names.items():
        if f"{kind}_id" in values:
            values[kind] = by_id.get(values.pop(f"{kind}_id"))
    return values


def _blocks(connection: Connection, run_keys: Mapping[int, str]) -> Iterator[dict[str, Any]]:
    """The observations, run by run, in blocks."""
    for run_id, key in sorted(run_keys.items(), key=lambda item: item[1]):
        query = select(observations).where(observations.c.run_id == run_id).order_by(*observations.primary_key.columns)
        for part in in_parts(connection, query).partitions(BLOCK_ROWS):
            yield {"run": key, "columns": list(OBSERVED), "rows": [_plain(row) for row in part]}


def _plain(row: Iterable[Any]) -> list[Any]:
    values = list(row)[1:]
    loss = values[_LOSS]
    if loss is not None and not isfinite(float(loss)):
        values[_LOSS] = str(float(loss))
    values[_PHASE] = PHASES[values[_PHASE]]
    return values


def _line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":"))
