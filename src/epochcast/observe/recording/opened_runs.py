"""The runs that attempts belong to, found or made: of many attempts in one transaction.

A run has the name of its job, with that of its project before it: what a run is called depends on no other project, so
that nobody can take or guess the names of others. Where it has ended and is trained again from its beginning, the
number of the attempt stands behind the name. An attempt that a run knows always belongs to it, so that reports that are
sent once more after its end change nothing.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from epochcast.errors import BadInput
from epochcast.observe.recording.recorded_rows import AttemptStart
from epochcast.observe.store.database_tables import runs
from epochcast.observe.store.insert_rows import or_nothing, parts_of
from epochcast.observe.store.row_values import new_run, run_of
from epochcast.observe.store.run_updates import known_attempts, lock_runs, note_attempts, note_runs
from epochcast.observe.store.store_errors import Unavailable
from epochcast.observe.store.store_rows import RunRow

# Rounds of looking for names: another server may take one meanwhile.
ROUNDS = 5
SOURCE = "ec.track"


@dataclass(frozen=True, slots=True)
class Beginning:
    """An attempt and whose it is; `project` None: of those who see all."""

    start: AttemptStart
    project: str | None = None

    def names(self) -> tuple[str, ...]:
        """What its run may be called, in the order in which it is tried; each may have the attempt behind it."""
        return names_of_run(self.start.job, self.project)

    def again(self, name: str) -> str:
        """What it is called where the run of this name has ended."""
        return f"{name} {self.start.attempt}"


def names_of_run(name: str, project: str | None) -> tuple[str, ...]:
    """Where a project's run of this name is looked for: under its own name for new ones, then the name as it is."""
    return (name,) if project is None else (f"{project}/{name}", name)


def opened(connection: Connection, begun: Sequence[Beginning]) -> list[RunRow]:
    """The run of each attempt, in the same order, begun."""
    rows = find_or_make(connection, begun)
    lock_runs(connection, {run.id for run in rows})
    begin(connection, begun, rows)
    return rows


def find_or_make(connection: Connection, begun: Sequence[Beginning]) -> list[RunRow]:
    """The run of each attempt, in the same order; those that are new are written down with the transaction."""
    for _ in range(ROUNDS):
        by_name = _runs_named(connection, begun)
        attempts = known_attempts(connection, {run.id for run in by_name.values() if run.is_over})
        new: dict[str, Beginning] = {}
        names = [_name_of(beginning, by_name, new, attempts) for beginning in begun]
        if not new:
            return [by_name[name] for name in names]
        now = time.time()
        values = [_new(name, new[name], now) for name in sorted(new)]
        connection.execute(or_nothing(connection, runs), values)
    raise Unavailable("other clients take the names of these runs at the same time; try again")


def begin(connection: Connection, begun: Sequence[Beginning], rows: Sequence[RunRow]) -> None:
    """Write down that attempts of runs have begun; nobody else may change these runs meanwhile (`lock_runs`)."""
    attempts = known_attempts(connection, {run.id for run in rows})
    note_runs(connection, _changes(begun, rows, attempts))
    note_attempts(connection, {(run.id, beginning.start.attempt) for beginning, run in zip(begun, rows, strict=True)})


def _runs_named(connection: Connection, begun: Sequence[Beginning]) -> dict[str, RunRow]:
    """Runs that have any of the names, by name; the first name may also be a run's key."""
    names = {name for beginning in begun for base in beginning.names() for name in (base, beginning.again(base))}
    by_name: dict[str, RunRow] = {}
    for part in parts_of(sorted(names)):
        listed = [run_of(row) for row in connection.execute(select(runs).where(runs.c.name.in_(part)))]
        by_name |= {run.name: run for run in listed}
    keys = sorted({beginning.start.job for beginning in begun if beginning.start.job not in by_name})
    for part in parts_of(keys):
        listed = [run_of(row) for row in connection.execute(select(runs).where(runs.c.key.in_(part)))]
        by_name |= {run.key: run for run in listed}
    return by_name


def _name_of(
    beginning: Beginning, by_name: Mapping[str, RunRow], new: dict[str, Beginning], attempts: set[tuple[int, int]]
) -> str:
    """The name of an attempt's run; where there is none yet, it is noted under `new`."""
    names = [name for base in beginning.names() for name in (base, beginning.again(base))]
    for name in names:
        run = by_name.get(name)
        if run is None or run.project != beginning.project:
            continue
        if run.state != "ended" or beginning.start.start_step > 0 or (run.id, beginning.start.attempt) in attempts:
            return name
    for name in names[:2]:
        if name not in by_name and new.setdefault(name, beginning).project == beginning.project:
            return name
    raise BadInput(f"the name {beginning.start.job!r} is taken by other runs; give the job another name")


def _new(name: str, beginning: Beginning, now_seconds: float) -> dict[str, Any]:
    start = beginning.start
    values = new_run(
        name,
        now_seconds,
        job_name=start.job,
        source=SOURCE,
        started_at_seconds=start.started_at_seconds,
        project=beginning.project,
    )
    return {**values, "total_steps": start.total_steps}


def _changes(
    begun: Sequence[Beginning], rows: Sequence[RunRow], attempts: set[tuple[int, int]]
) -> dict[int, dict[str, Any]]:
    """What the attempts change of their runs: one that is new to a run has it running."""
    changes: dict[int, dict[str, Any]] = {}
    for beginning, run in zip(begun, rows, strict=True):
        columns = changes.setdefault(run.id, {})
        if (run.id, beginning.start.attempt) not in attempts and run.state != "running":
            columns |= {"state": "running", "seen_at_seconds": time.time()}
        if run.started_at_seconds is None:
            columns["started_at_seconds"] = beginning.start.started_at_seconds
        if beginning.start.total_steps not in (None, run.total_steps):
            columns["total_steps"] = beginning.start.total_steps
    return changes
