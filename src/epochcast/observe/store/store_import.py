"""What `exporting` wrote, into a store: all of it or nothing.

What is there already stays, so that the same file can be read twice, and several into one. Of a run that both have, the
one that was seen last gives the standing, and the reports of both are kept. A run whose name another run has here
gets a number behind it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, select, update

from epochcast.base.bounds import MOST_DOCUMENT_BYTES
from epochcast.base.documents import parse_json
from epochcast.errors import BadInput
from epochcast.observe.runs.report import LONGEST_NAME, Report
from epochcast.observe.store import observation_ingest as ingest
from epochcast.observe.store.database_tables import jobs, queues, runs
from epochcast.observe.store.insert_rows import or_nothing
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_export import FORMAT, KINDS, OBSERVED
from epochcast.observe.store.store_rows import StoredMeasurement
from epochcast.observe.store.store_schema import NEWEST


@dataclass(slots=True)
class _ImportedRows:
    """What was read so far: how many of each kind, which are new, and the ids that names have here."""

    connection: Connection
    read: dict[str, int] = field(default_factory=lambda: {**dict.fromkeys(KINDS, 0), "observation": 0})
    added: dict[str, int] = field(default_factory=lambda: {**dict.fromkeys(KINDS, 0), "observation": 0})
    job_ids: dict[str, int] = field(default_factory=dict)
    run_ids: dict[str, int] = field(default_factory=dict)
    queue_ids: dict[str, int] = field(default_factory=dict)
    new_runs: set[int] = field(default_factory=set)
    is_over: bool = False


def import_lines(
    store: Store, lines: Iterable[str | bytes], file: str, progress: Callable[[int], None] = lambda lines: None
) -> dict[str, int]:
    """Take in all lines; gives how many of each kind are new. `progress` is called with the lines read so far."""
    with store.writing() as connection:
        reading = _ImportedRows(connection)
        number = 0
        for number, line in enumerate(lines, 1):
            where = f"line {number} of {file}"
            parsed = parse_json(line, where)
            try:
                _take(reading, parsed, is_first=number == 1)
            except BadInput as error:
                raise BadInput(f"{where}: {error}") from None
            except (KeyError, TypeError, ValueError) as error:
                raise BadInput(f"{where} is not in the form that a store writes: {error!r}") from None
            progress(number)
        if not number:
            raise BadInput(f"{file} is empty")
        if not reading.is_over:
            raise BadInput(f"{file} was cut off after line {number}: its last line is missing; nothing was imported")
    return reading.added


def _take(reading: _ImportedRows, line: Any, is_first: bool) -> None:
    if not isinstance(line, dict) or not line:
        raise BadInput("a line must be one JSON object")
    if is_first:
        _check_head(line)
        return
    if reading.is_over:
        raise BadInput("nothing may follow the last line")
    kind, body = next(iter(line.items()))
    if kind == "end":
        if body != {kind: count for kind, count in reading.read.items() if count or kind in body}:
            raise BadInput(f"the file has {reading.read}, but its last line counts {body}")
        reading.is_over = True
    elif kind == "observations":
        _take_block(reading, body)
    elif kind in KINDS:
        reading.read[kind] += 1
        reading.added[kind] += _TAKES.get(kind, _take_row)(reading, KINDS[kind], dict(body))
    else:
        raise BadInput(f"a store has no {kind!r}")


def _check_head(line: Mapping[str, Any]) -> None:
    if "epochcast_store" not in line:
        raise BadInput("this is no export of a store: the first line must have epochcast_store")
    if line["epochcast_store"] != FORMAT or str(line.get("schema")) > NEWEST:
        raise BadInput(
            f"written by a newer epochcast (format {line['epochcast_store']}, tables {line.get('schema')}); "
            f"this one reads format {FORMAT}, tables up to {NEWEST}"
        )


def _take_row(reading: _ImportedRows, table: Table, values: dict[str, Any]) -> int:
    """A row whose key is in it."""
    if "job" in values and "job_id" in table.c:
        values["job_id"] = None if values["job"] is None else reading.job_ids[values["job"]]
        del values["job"]
    if "run" in values:
        run = values.pop("run")
        values["run_id"] = None if run is None else reading.run_ids[run]
    if "queue" in values:
        values["queue_id"] = reading.queue_ids[values.pop("queue")]
    return _added(reading, table, values)


def _added(reading: _ImportedRows, table: Table, values: Mapping[str, Any]) -> int:
    if unknown := set(values) - set(table.c.keys()):
        raise BadInput(f"a {table.name[:-1]} has no {sorted(unknown)[0]!r}")
    statement = or_nothing(reading.connection, table).values(**values)
    return int(reading.connection.execute(statement, execution_options={"preserve_rowcount": True}).rowcount)


def _take_job(reading: _ImportedRows, table: Table, values: dict[str, Any]) -> int:
    added = _added(reading, table, values)
    digest = values["fingerprint"]
    job_id = reading.connection.execute(select(jobs.c.id).where(jobs.c.fingerprint == digest)).scalar_one()
    reading.job_ids[digest] = job_id
    return added


def _take_run(reading: _ImportedRows, table: Table, values: dict[str, Any]) -> int:
    connection, key = reading.connection, values["key"]
    fingerprint = values.pop("job")
    values["job_id"] = None if fingerprint is None else reading.job_ids[fingerprint]
    stored = connection.execute(select(runs).where(runs.c.key == key)).first()
    if stored is not None:
        reading.run_ids[key] = stored.id
        if values["seen_at_seconds"] > stored.seen_at_seconds:
            columns = {name: value for name, value in values.items() if name != "name"}
            connection.execute(update(runs).where(runs.c.id == stored.id).values(**columns))
        return 0
    values["name"] = _free_name(connection, runs, values["name"])
    added = _added(reading, table, values)
    run_id = connection.execute(select(runs.c.id).where(runs.c.key == key)).scalar_one()
    reading.run_ids[key] = run_id
    reading.new_runs.add(run_id)
    return added


def _take_queue(reading: _ImportedRows, table: Table, values: dict[str, Any]) -> int:
    """A queue that is there already stays as it is: whoever works it off knows better."""
    connection, key = reading.connection, values["key"]
    query = select(queues.c.id).where(queues.c.key == key)
    added = 0
    if connection.execute(query).first() is None:
        values["name"] = _free_name(connection, queues, values["name"])
        added = _added(reading, table, values)
    reading.queue_ids[key] = connection.execute(query).scalar_one()
    return added


def _free_name(connection: Connection, table: Table, name: str) -> str:
    wanted, number = name, 1
    while connection.execute(select(table.c.id).where(table.c.name == wanted)).first() is not None:
        number += 1
        end = f" ({number})"
        wanted = name[: LONGEST_NAME - len(end)] + end
    return wanted


def _take_block(reading: _ImportedRows, block: Mapping[str, Any]) -> None:
    columns = tuple(block["columns"])
    if columns not in (OBSERVED, tuple(name for name in OBSERVED if name not in _ADDED)):
        raise BadInput(f"observations have the columns {', '.join(OBSERVED)}")
    run_id = reading.run_ids[block["run"]]
    values = [_values(run_id, dict(zip(columns, row, strict=True))) for row in block["rows"]]
    if run_id not in reading.new_runs:
        values = ingest.not_thinned(reading.connection, values)
    reading.read["observation"] += len(block["rows"])
    reading.added["observation"] += ingest.insert_values(reading.connection, values)


# Columns that files of older tables do not have.
_ADDED = ("pause_seconds", "what")


def _values(run_id: int, row: dict[str, Any]) -> tuple[Any, ...]:
    received, rank, loss = row.pop("received_at_seconds"), row.pop("rank"), row.pop("loss")
    report = Report(
        float(row.pop("step")),
        rank=None if rank < 0 else rank,
        loss=float(loss) if isinstance(loss, str) else loss,
        **row,
    )
    return ingest.values_of(run_id, report, float(received))


_TAKES: Mapping[str, Callable[[_ImportedRows, Table, dict[str, Any]], int]] = {
    "job": _take_job,
    "run": _take_run,
    "queue": _take_queue,
}


def is_measurements(path: Path) -> bool:
    """Whether a file begins as `bench` writes measurements."""
    with path.open("rb") as stream:
        return b'"kind":"machine"' in stream.readline(MOST_DOCUMENT_BYTES)[:100].replace(b" ", b"")


def import_measurements(store: Store, path: Path) -> int:
    """Keep the measurements of a file of `bench`; gives how many are new."""
    from epochcast.measure.bench.measurements import read

    return store.add_measurements(
        StoredMeasurement(row.machine.id, row.key, row.kind, row.as_dict(), row.machine.facts)
        for row in read(path).rows
    )
