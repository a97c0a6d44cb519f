"""A whole store as JSON lines, and back: for backups, and to move from one database to another.

The first line names the format, the last counts what came before it, so that a file that was cut off is noticed. In
between, each line is one thing by its kind: a job, a run, an attempt, a forecast, a machine, a measurement, or a block
of observations. Ids are those of one database and are not written: a run is known by its key, a job by its fingerprint.
Every number comes back to the last digit; a loss that JSON has no number for is a word ("nan", "inf").
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

from sqlalchemy import Connection, Table, select

from epochcast.store.rows import PHASES
from epochcast.store.schema import NEWEST
from epochcast.store.store import Store, in_parts
from epochcast.store.tables import (
    attempts,
    forecasts,
    jobs,
    machines,
    measurements,
    observations,
    runs,
)

FORMAT = 1
BLOCK_ROWS = 1000
KINDS: Mapping[str, Table] = {
    "job": jobs,
    "run": runs,
    "attempt": attempts,
    "forecast": forecasts,
    "machine": machines,
    "measurement": measurements,
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
        job_names, run_keys = _names(connection)
        for kind, table in KINDS.items():
            counts[kind] = 0
            for row in connection.execute(select(table).order_by(*_order(table))):
                counts[kind] += 1
                yield _line({kind: _told(dict(row._mapping), job_names, run_keys)})
        counts["observation"] = 0
        for block in _blocks(connection, run_keys):
            counts["observation"] += len(block["rows"])
            yield _line({"observations": block})
        yield _line({"end": counts})


def _names(connection: Connection) -> tuple[dict[int, str], dict[int, str]]:
    return (
        {row.id: row.fingerprint for row in connection.execute(select(jobs.c.id, jobs.c.fingerprint))},
        {row.id: row.key for row in connection.execute(select(runs.c.id, runs.c.key))},
    )


def _order(table: Table) -> list[Any]:
    """The same in every database, where ids are not."""
    if "added_at_seconds" in table.c:
        return [table.c.added_at_seconds, table.c.get("key", table.c.get("fingerprint"))]
    if "made_at_seconds" in table.c:
        return [table.c.made_at_seconds, table.c.key]
    return list(table.primary_key.columns)


def _told(values: dict[str, Any], job_names: Mapping[int, str], run_keys: Mapping[int, str]) -> dict[str, Any]:
    values.pop("id", None)
    if "job_id" in values:
        values["job"] = job_names.get(values.pop("job_id"))
    if "run_id" in values:
        values["run"] = run_keys.get(values.pop("run_id"))
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
