"""The tables, as the newest migration leaves them (`migrations/versions` is how a database gets there).

Numbers are double precision or whole; times are seconds since 1970 (UTC) as double precision, exact to a microsecond
until long after anybody's training. JSON is kept as text, so that it comes back to the last digit. Text has a bound.
The table of observations has the fields of `observe.runs.report.Report`. It is keyed by what makes a report unique, in
the order in which reports are read back; SQLite keeps the rows in the key itself (WITHOUT ROWID). An unknown
rank is -1 there, because a key has no null.
"""

from collections.abc import Mapping
from typing import Any, get_args, get_type_hints

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Table,
)

from epochcast.observe.runs.report import BOUNDS, LONGEST_NAME, Phase, Report
from epochcast.observe.store.store_rows import LONGEST_TEXT

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
    }
)

# Only INTEGER PRIMARY KEY counts by itself in SQLite.
_Id = BigInteger().with_variant(Integer, "sqlite")
NO_RANK = -1

jobs = Table(
    "jobs",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("fingerprint", String(64), nullable=False, unique=True),
    Column("model", String(LONGEST_TEXT), nullable=False, index=True),
    Column("job", JSON, nullable=False),
    Column("added_at_seconds", Double, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("key", String(32), nullable=False, unique=True),
    Column("name", String(LONGEST_NAME), nullable=False, unique=True),
    Column("job_id", _Id, ForeignKey("jobs.id"), index=True),
    Column("job_name", String(LONGEST_NAME)),
    Column("device", String(LONGEST_NAME), index=True),
    Column("gpus", Integer, nullable=False),
    Column("nodes", Integer, nullable=False),
    Column("host", String(LONGEST_NAME)),
    Column("place", JSON, nullable=False),
    Column("source", String(LONGEST_TEXT)),
    Column("format", String(LONGEST_NAME)),
    Column("state", String(16), nullable=False, index=True),
    Column("added_at_seconds", Double, nullable=False),
    Column("started_at_seconds", Double),
    Column("seen_at_seconds", Double, nullable=False, index=True),
    Column("ended_at_seconds", Double),
    Column("step", Double),
    Column("total_steps", Double),
    Column("step_seconds", Double),
    Column("elapsed_seconds", Double),
    Column("down_seconds", Double),
    Column("forecast_step_seconds", Double),
    Column("forecast_total_seconds", Double),
    Column("progress", JSON, nullable=False),
    Column("project", String(LONGEST_NAME), index=True),
    Column("title", String(LONGEST_NAME)),
    Column("tags", String(LONGEST_TEXT)),
    Column("archived_at_seconds", Double, index=True),
    Column("card_key", String(64)),
    Column("end_reason", String(LONGEST_TEXT)),
    Index("ix_runs_card_key", "card_key", unique=True),
)

attempts = Table(
    "attempts",
    metadata,
    Column("run_id", _Id, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("attempt", BigInteger, primary_key=True),
    Column("state", String(16), nullable=False),
    Column("engine", String(LONGEST_NAME)),
    Column("engine_id", String(LONGEST_NAME)),
    Column("host", String(LONGEST_NAME)),
    Column("started_at_seconds", Double),
    Column("ended_at_seconds", Double),
    Column("exit_code", Integer),
    Column("thinned_step", Double),
    Index("ix_attempts_engine_id", "engine", "engine_id"),
)

forecasts = Table(
    "forecasts",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("key", String(32), nullable=False, unique=True),
    Column("run_id", _Id, ForeignKey("runs.id", ondelete="CASCADE"), index=True),
    Column("job_id", _Id, ForeignKey("jobs.id"), index=True),
    Column("version", Integer, nullable=False),
    Column("made_at_seconds", Double, nullable=False),
    Column("forecast", JSON, nullable=False),
)

REPORT_KEY = ("attempt", "step", "rank", "phase")
"""What identifies a report of a run."""
REPORT_COLUMNS = (*REPORT_KEY, *(name for name in Report._fields if name not in REPORT_KEY))


def _report_column(name: str, hint: Any) -> Column[Any]:
    """The column of a field of `Report`: a phase is its place in the list, an unknown rank is `NO_RANK`."""
    is_key = name in REPORT_KEY
    kinds: Mapping[Any, Any] = {
        Phase: SmallInteger,
        str: String(LONGEST_NAME),
        int: Integer if name in BOUNDS and BOUNDS[name].most < 2**31 else BigInteger,
        float: Double,
    }
    kind = next(kinds[part] for part in (hint, *get_args(hint)) if part in kinds)
    return Column(name, kind, primary_key=is_key, nullable=not is_key and hint is not int, autoincrement=False)


observations = Table(
    "observations",
    metadata,
    Column("run_id", BigInteger, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    *(_report_column(name, get_type_hints(Report)[name]) for name in REPORT_COLUMNS),
    Column("received_at_seconds", Double, nullable=False),
    sqlite_with_rowid=False,
)

machines = Table(
    "machines",
    metadata,
    Column("machine", String(LONGEST_NAME), primary_key=True),
    Column("facts", JSON, nullable=False),
)

measurements = Table(
    "measurements",
    metadata,
    Column("machine", String(LONGEST_NAME), ForeignKey("machines.machine"), primary_key=True),
    Column("key", String(LONGEST_TEXT), primary_key=True),
    Column("kind", String(32), nullable=False, index=True),
    Column("line", JSON, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("name", String(LONGEST_NAME), nullable=False, unique=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("scopes", String(32), nullable=False),
    Column("project", String(LONGEST_NAME)),
    Column("added_at_seconds", Double, nullable=False),
    Column("ended_at_seconds", Double),
    Column("used_at_seconds", Double),
)

leases = Table(
    "leases",
    metadata,
    Column("name", String(LONGEST_NAME), primary_key=True),
    Column("holder", String(LONGEST_NAME), nullable=False),
    Column("until_seconds", Double, nullable=False),
)

notices = Table(
    "notices",
    metadata,
    Column("key", String(400), primary_key=True),
    Column("to", String(LONGEST_TEXT), nullable=False),
    Column("message", JSON, nullable=False),
    Column("state", String(16), nullable=False, index=True),
    Column("tries", Integer, nullable=False),
    Column("next_at_seconds", Double, nullable=False),
    Column("added_at_seconds", Double, nullable=False),
)

queues = Table(
    "queues",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("key", String(32), nullable=False, unique=True),
    Column("name", String(LONGEST_NAME), nullable=False, unique=True),
    Column("fleet", JSON, nullable=False),
    Column("engine", String(LONGEST_NAME)),
    Column("policy", String(LONGEST_NAME)),
    Column("added_at_seconds", Double, nullable=False),
    Column("seen_at_seconds", Double, nullable=False),
    Column("holder", String(LONGEST_NAME)),
    Column("held_until_seconds", Double),
)

queue_jobs = Table(
    "queue_jobs",
    metadata,
    Column("queue_id", _Id, ForeignKey("queues.id", ondelete="CASCADE"), primary_key=True),
    Column("job", String(LONGEST_NAME), primary_key=True),
    Column("number", Integer, nullable=False),
    Column("row", JSON, nullable=False),
    Column("state", String(16), nullable=False, index=True),
    Column("left_fraction", Double, nullable=False),
    Column("pace", Double, nullable=False),
    Column("is_observed", Boolean, nullable=False),
    Column("owed_seconds", Double, nullable=False),
    Column("served_gpu_seconds", Double, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("told_at_seconds", Double, nullable=False),
    Column("ended_at_seconds", Double),
    Column("reason", String(LONGEST_TEXT)),
    Column("cancel_at_seconds", Double),
)

queue_machines = Table(
    "queue_machines",
    metadata,
    Column("queue_id", _Id, ForeignKey("queues.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("node_type", String(LONGEST_NAME), nullable=False),
    Column("node", String(LONGEST_NAME)),
    Column("rented_at_seconds", Double, nullable=False),
    Column("returned_at_seconds", Double),
)

queue_starts = Table(
    "queue_starts",
    metadata,
    Column("queue_id", _Id, primary_key=True),
    Column("job", String(LONGEST_NAME), primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("key", String(64), nullable=False, unique=True),
    Column("engine_id", String(LONGEST_NAME)),
    Column("machine", Integer, nullable=False),
    Column("device", String(LONGEST_NAME), nullable=False),
    Column("gpus", Integer, nullable=False),
    Column("is_alone", Boolean, nullable=False),
    Column("state", String(16), nullable=False, index=True),
    Column("asked_at_seconds", Double, nullable=False),
    Column("stop_at_seconds", Double),
    Column("ended_at_seconds", Double),
    Column("exit_code", Integer),
    Column("end", String(16)),
    ForeignKeyConstraint(["queue_id", "job"], ["queue_jobs.queue_id", "queue_jobs.job"], ondelete="CASCADE"),
)
