"""The database and its verbs. Every verb is one transaction: done and kept when it returns, or not at all.

>>> import tempfile
>>> from epochcast.observe.runs.report import Report
>>> from epochcast.observe.store.store_opening import open_store
>>> folder = tempfile.TemporaryDirectory()
>>> store = open_store(f"{folder.name}/store.db")
>>> run = store.open_run("first try")
>>> store.record(run.id, [Report(step=10, clock_seconds=4.0), Report(step=20, clock_seconds=8.0)])
2
>>> store.record(run.id, [Report(step=20, clock_seconds=8.0), Report(step=30, clock_seconds=12.0)])
1
>>> [row.step for row in store.observations(run.id)], store.run("first try").step
([10.0, 20.0, 30.0], 30.0)
>>> store.close(); folder.cleanup()
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from types import TracebackType
from typing import Any, TypeVar
from uuid import uuid4

from sqlalchemy import Connection, Engine, Result, Select, delete, func, insert, select, text, update

from epochcast.errors import UnknownName
from epochcast.observe.runs.report import PHASES, Report
from epochcast.observe.store import observation_ingest as ingest
from epochcast.observe.store.database_engine import writer
from epochcast.observe.store.database_tables import (
    attempts,
    forecasts,
    jobs,
    machines,
    measurements,
    metadata,
    observations,
    runs,
)
from epochcast.observe.store.insert_rows import or_nothing, parts_of, upsert
from epochcast.observe.store.job_fingerprint import fingerprint
from epochcast.observe.store.row_values import RunFilter, new_run, run_of
from epochcast.observe.store.run_updates import lock_runs, note_runs, note_seen
from epochcast.observe.store.store_errors import Unavailable, plain_errors
from epochcast.observe.store.store_location import sqlite_file
from epochcast.observe.store.store_rows import (
    STATES,
    Attempt,
    JobRow,
    RunPlace,
    RunRow,
    StoredForecast,
    StoredMeasurement,
    bounded,
)
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.job import Job as TrainingJob

Written = TypeVar("Written")
# How often a transaction is tried that the database itself ended, because two writers waited for each other.
TRIES = 3
# Runs that are written about in one transaction.
NOTED_RUNS = 25
# Rows that are read at a time.
READ_ROWS = 5_000


class Store:
    """A database of runs; `opening.open_store` makes one. May be used by several threads."""

    def __init__(self, engine: Engine, url: str) -> None:
        self.engine, self.url = engine, url
        self._writer = writer(engine)

    def __enter__(self) -> "Store":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self.engine.dispose()

    # ---- runs ----------------------------------------------------------------------------------------

    def open_run(
        self,
        name: str | None = None,
        *,
        job: TrainingJob | None = None,
        job_name: str | None = None,
        place: RunPlace | None = None,
        source: str | None = None,
        state: str = "running",
        started_at_seconds: float | None = None,
        project: str | None = None,
    ) -> RunRow:
        """The run of this name, made where there is none; without a name a new one.

        What is already known of a run stays as it is.
        """
        now = time.time()
        with self.writing() as connection:
            values = new_run(
                name,
                now,
                job_id=None if job is None else _job_id(connection, job.as_dict(), now),
                job_name=job_name,
                place=place or RunPlace(),
                source=source,
                state=_state(state),
                started_at_seconds=started_at_seconds,
                project=project,
            )
            connection.execute(or_nothing(connection, runs).values(**values))
            return run_of(connection.execute(select(runs).where(runs.c.name == values["name"])).one())

    def run(self, name: str) -> RunRow:
        """The run of this name, or of this key."""
        with self.reading() as connection:
            row = connection.execute(select(runs).where((runs.c.name == name) | (runs.c.key == name))).first()
            if row is None:
                names = connection.execute(select(runs.c.name).order_by(runs.c.id.desc()).limit(1000)).scalars()
                raise UnknownName("run", name, names)
        return run_of(row)

    def find_run(self, name: str) -> RunRow | None:
        """The same; None where there is none."""
        with self.reading() as connection:
            row = connection.execute(select(runs).where((runs.c.name == name) | (runs.c.key == name))).first()
        return None if row is None else run_of(row)

    def runs(self, wanted: RunFilter | None = None) -> list[RunRow]:
        """Runs, the newest first."""
        with self.reading() as connection:
            return [run_of(row) for row in connection.execute((wanted or RunFilter()).select())]

    def count_runs(self, wanted: RunFilter) -> int:
        """How many match, on whatever page."""
        with self.reading() as connection:
            return int(connection.execute(wanted.count()).scalar_one())

    def note(self, run_id: int, *, state: str | None = None, **columns: Any) -> None:
        """Write down what is now known of a run: columns of a `RunRow` by their names; None leaves one as it is."""
        values = {name: value for name, value in columns.items() if value is not None}
        if state is not None:
            values["state"] = _state(state)
        if values:
            values.setdefault("seen_at_seconds", time.time())
            with self.writing() as connection:
                connection.execute(update(runs).where(runs.c.id == run_id).values(**values))

    def note_all(self, columns: Mapping[int, Mapping[str, Any]]) -> None:
        """The same of many runs by their ids, some in each transaction: others that write wait for a moment only.

        When the runs were last heard of stays as it is.
        """
        for run_ids in parts_of(sorted(columns), NOTED_RUNS):
            self._note(run_ids, columns)

    def _note(self, run_ids: Sequence[int], columns: Mapping[int, Mapping[str, Any]]) -> None:
        self.written(lambda connection: note_runs(connection, {run_id: columns[run_id] for run_id in run_ids}))

    def delete_run(self, run_id: int) -> None:
        """Remove a run with all that was seen of it."""
        with self.writing() as connection:
            connection.execute(delete(runs).where(runs.c.id == run_id))

    # ---- attempts ------------------------------------------------------------------------------------

    def put_attempt(self, attempt: Attempt) -> None:
        """Write down how an attempt stands, a new one or again; reports make attempts by themselves."""
        _state(attempt.state)
        values = {name: value for name, value in asdict(attempt).items() if value is not None}
        changed = {name: value for name, value in values.items() if name not in ("run_id", "attempt")}
        with self.writing() as connection:
            connection.execute(
                upsert(connection, attempts)
                .values(**values)
                .on_conflict_do_update(index_elements=["run_id", "attempt"], set_=changed)
            )

    def attempts(self, run_id: int) -> list[Attempt]:
        """The attempts of a run, the first one first."""
        query = select(attempts).where(attempts.c.run_id == run_id).order_by(attempts.c.attempt)
        with self.reading() as connection:
            return [Attempt(**row._mapping) for row in connection.execute(query)]

    # ---- observations --------------------------------------------------------------------------------

    def record(self, run_id: int, rows: Sequence[Report]) -> int:
        """Add reports of a run; those that are there already stay as they are. Gives how many are new."""
        return self.record_all({run_id: rows})

    def record_all(self, batches: Mapping[int, Sequence[Report]]) -> int:
        """The same for several runs, by their ids, in one transaction."""
        batches = {run_id: rows for run_id, rows in batches.items() if rows}

        def write(connection: Connection) -> int:
            now = time.time()
            lock_runs(connection, batches)
            added = ingest.insert(connection, batches, now)
            note_seen(connection, batches, now)
            return added

        return self.written(write)

    def observations(
        self,
        run_id: int,
        *,
        attempt: int | None = None,
        after_step: float = -1.0,
        after: tuple[int, float] | None = None,
    ) -> Iterator[Report]:
        """Reports of a run in the order of attempts and steps, read part by part; `after` an attempt and step, all."""
        query = select(observations).where(observations.c.run_id == run_id).order_by(*observations.primary_key.columns)
        if attempt is not None:
            query = query.where(observations.c.attempt == attempt, observations.c.step > after_step)
        if after is not None:
            in_same = (observations.c.attempt == after[0]) & (observations.c.step > after[1])
            query = query.where((observations.c.attempt > after[0]) | in_same)
        with self.reading() as connection:
            for row in in_parts(connection, query):
                yield ingest.row_from(row)

    def thinned(self, run_id: int, most: int, column: str = "step_seconds") -> list[Report]:
        """Training reports with a value, thinned evenly over the whole run to at most so many, the newest there."""
        is_timed = (observations.c.phase == PHASES.index("train")) & observations.c[column].is_not(None)
        place = func.row_number().over(order_by=observations.primary_key.columns).label("place")
        of_run = select(observations, place).where(observations.c.run_id == run_id, is_timed).subquery()
        with self.reading() as connection:
            count = connection.execute(select(func.count()).select_from(of_run)).scalar_one()
            every = -(-count // max(1, most - 1)) if count > most else 1
            is_taken = (of_run.c.place % every == 0) | (of_run.c.place == count)
            query = select(*(of_run.c[column.name] for column in observations.columns)).where(is_taken)
            return [ingest.row_from(row) for row in connection.execute(query.order_by(of_run.c.place))]

    def count_observations(self, run_id: int | None = None) -> int:
        """Rows that are kept, of one run or of all."""
        query = select(func.count()).select_from(observations)
        if run_id is not None:
            query = query.where(observations.c.run_id == run_id)
        with self.reading() as connection:
            return int(connection.execute(query).scalar_one())

    # ---- jobs and forecasts --------------------------------------------------------------------------

    def add_job(self, job: TrainingJob) -> int:
        """The id of a job; a job that is there already keeps its own."""
        with self.writing() as connection:
            return _job_id(connection, job.as_dict(), time.time())

    def job(self, job_id: int) -> JobRow:
        """A job by its id."""
        with self.reading() as connection:
            row = connection.execute(select(jobs).where(jobs.c.id == job_id)).first()
        if row is None:
            raise UnknownName("job with the id", str(job_id), ())
        return JobRow(**row._mapping)

    def jobs(self, model: str | None = None) -> list[JobRow]:
        """All jobs, or those of a model."""
        query = select(jobs).order_by(jobs.c.id)
        with self.reading() as connection:
            rows = connection.execute(query if model is None else query.where(jobs.c.model == model))
            return [JobRow(**row._mapping) for row in rows]

    def add_forecast(
        self, forecast: Forecast, *, run_id: int | None = None, job_id: int | None = None
    ) -> StoredForecast:
        """Keep a forecast; the last one of a run is what the run is compared with."""
        document = forecast.as_dict()
        values = {
            "key": uuid4().hex,
            "run_id": run_id,
            "job_id": job_id,
            "version": document["version"],
            "made_at_seconds": time.time(),
            "forecast": document,
        }
        total = forecast.total_seconds
        with self.writing() as connection:
            forecast_id = connection.execute(insert(forecasts).values(**values).returning(forecasts.c.id)).scalar_one()
            if run_id is not None:
                columns = {
                    "forecast_step_seconds": forecast.step_seconds.mid,
                    "forecast_total_seconds": None if total is None else total.mid,
                }
                connection.execute(update(runs).where(runs.c.id == run_id).values(**columns))
        return StoredForecast(id=forecast_id, **values)

    def forecasts(self, *, run_id: int | None = None, job_id: int | None = None) -> list[StoredForecast]:
        """Forecasts of a run or of a job, the newest first."""
        query = select(forecasts).order_by(forecasts.c.id.desc())
        if run_id is not None:
            query = query.where(forecasts.c.run_id == run_id)
        if job_id is not None:
            query = query.where(forecasts.c.job_id == job_id)
        with self.reading() as connection:
            return [StoredForecast(**row._mapping) for row in connection.execute(query)]

    # ---- measurements --------------------------------------------------------------------------------

    def add_measurements(self, rows: Iterable[StoredMeasurement]) -> int:
        """Keep lines of measurement files; a machine has each key once. Gives how many are new."""
        added = 0
        with self.writing() as connection:
            for row in rows:
                about = {"machine": row.machine, "facts": dict(row.facts)}
                connection.execute(or_nothing(connection, machines).values(**about))
                values = {"machine": row.machine, "key": row.key, "kind": row.kind, "line": dict(row.line)}
                statement = or_nothing(connection, measurements).values(**values)
                added += connection.execute(statement, execution_options={"preserve_rowcount": True}).rowcount
        return added

    def measurements(self, kind: str | None = None) -> list[StoredMeasurement]:
        """Kept measurements, all or of one kind."""
        query = (
            select(measurements, machines.c.facts).join(machines).order_by(measurements.c.machine, measurements.c.key)
        )
        with self.reading() as connection:
            rows = connection.execute(query if kind is None else query.where(measurements.c.kind == kind))
            return [StoredMeasurement(row.machine, row.key, row.kind, row.line, row.facts) for row in rows]

    # ---- the database itself -------------------------------------------------------------------------

    def size_bytes(self) -> int:
        """Of the file with its log, or of the tables with their indexes on the server."""
        file = sqlite_file(self.url)
        if file is not None:
            parts = (file, file.with_name(f"{file.name}-wal"))
            return sum(part.stat().st_size for part in parts if part.exists())
        tables = " + ".join(f"pg_total_relation_size('{name}')" for name in metadata.tables)
        with self.reading() as connection:
            return int(connection.execute(text(f"SELECT {tables}")).scalar_one())

    def reclaim(self) -> None:
        """Give the space of removed rows back; SQLite needs as much room again as the file has, for a while."""
        with plain_errors(self.url), self.engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            if sqlite_file(self.url) is not None:
                driver.execute("VACUUM")
                driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            else:
                driver.autocommit = True
                driver.execute(f"VACUUM (ANALYZE) {', '.join(metadata.tables)}")
                driver.autocommit = False

    # ---- transactions --------------------------------------------------------------------------------

    def written(self, write: Callable[[Connection], Written]) -> Written:
        """What `write` gives in a transaction of its own, which is tried again where the database itself ended it."""
        for tried in range(1, TRIES + 1):
            try:
                with self.writing() as connection:
                    return write(connection)
            except Unavailable:
                if tried == TRIES or self.engine.dialect.name == "sqlite":
                    raise
        raise AssertionError("unreachable")

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that writes; errors of the database are raised as `StoreError`."""
        with plain_errors(self.url), self._writer.begin() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads."""
        with plain_errors(self.url), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """The same, with every query seeing the same moment."""
        with self.reading() as connection:
            if sqlite_file(self.url) is None:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection


def in_parts(connection: Connection, query: Select[Any]) -> Result[Any]:
    """The rows of a query that may be many, some at a time."""
    return connection.execute(query, execution_options={"yield_per": READ_ROWS})


def _state(state: str) -> str:
    if state not in STATES:
        raise UnknownName("state of a run", state, STATES)
    return state


def _job_id(connection: Connection, job: Mapping[str, Any], now_seconds: float) -> int:
    digest = fingerprint(job)
    values = {
        "fingerprint": digest,
        "model": bounded(str(job["model"])),
        "job": dict(job),
        "added_at_seconds": now_seconds,
    }
    connection.execute(or_nothing(connection, jobs).values(**values))
    return int(connection.execute(select(jobs.c.id).where(jobs.c.fingerprint == digest)).scalar_one())
