"""The runs that attempts belong to, found or made: of many attempts in one transaction.

A run has the name of its job. It gets another where that name is a run of another project, and where it has ended and
is trained again from its beginning: then the number of the attempt stands behind the name. An attempt that a run knows
always belongs to it, so that reports that are sent once more after its end change nothing.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
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

    def names(self) -> Iterator[str]:
        """What its run may be called, in the order in which it is tried; each may have the attempt behind it."""
        yield self.start.job
        yield f"{self.project}/{self.start.job}" if self.project else self.again(self.start.job)

    def again(self, name: str) -> str:
        """What it is called where the run of this name has ended."""
        return f"{name} {self.start.attempt}"


def opened(connection: Connection, begun: Sequence[Beginning]) -> list[RunRow]:
    """The run of each attempt, in the same order, begun."""
    here = found_or_made(connection, begun)
    lock_runs(connection, {run.id for run in here})
    begin(connection, begun, here)
    return here


def found_or_made(connection: Connection, begun: Sequence[Beginning]) -> list[RunRow]:
    """The run of each attempt, in the same order; those that are new are written down with the transaction."""
    for _ in range(ROUNDS):
        found = _runs_named(connection, begun)
        known = known_attempts(connection, {run.id for run in found.values() if run.is_over})
        new: dict[str, Beginning] = {}
        names = [_name_of(one, found, new, known) for one in begun]
        if not new:
            return [found[name] for name in names]
        now = time.time()
        values = [_new(name, new[name], now) for name in sorted(new)]
        connection.execute(or_nothing(connection, runs), values)
    raise Unavailable("others take the names of these runs at the same time; try once more")


def begin(connection: Connection, begun: Sequence[Beginning], here: Sequence[RunRow]) -> None:
    """Write down that attempts of runs have begun; nobody else may change these runs meanwhile (`lock_runs`)."""
    known = known_attempts(connection, {run.id for run in here})
    note_runs(connection, _changes(begun, here, known))
    note_attempts(connection, {(run.id, one.start.attempt) for one, run in zip(begun, here, strict=True)})


def _runs_named(connection: Connection, begun: Sequence[Beginning]) -> dict[str, RunRow]:
    """Runs that have any of the names, by name; the first name may also be a run's key."""
    names = {name for one in begun for base in one.names() for name in (base, one.again(base))}
    found: dict[str, RunRow] = {}
    for part in parts_of(sorted(names)):
        listed = [run_of(row) for row in connection.execute(select(runs).where(runs.c.name.in_(part)))]
        found |= {run.name: run for run in listed}
    keys = sorted({one.start.job for one in begun if one.start.job not in found})
    for part in parts_of(keys):
        listed = [run_of(row) for row in connection.execute(select(runs).where(runs.c.key.in_(part)))]
        found |= {run.key: run for run in listed}
    return found


def _name_of(
    one: Beginning, found: Mapping[str, RunRow], new: dict[str, Beginning], known: set[tuple[int, int]]
) -> str:
    """The name of an attempt's run; where there is none yet, it is noted under `new`."""
    for base in one.names():
        for name in (base, one.again(base)):
            run = found.get(name)
            if run is None:
                other = new.setdefault(name, one)
                if other.project == one.project:
                    return name
                break
            if run.project != one.project:
                break
            if run.state != "ended" or one.start.start_step > 0 or (run.id, one.start.attempt) in known:
                return name
    raise BadInput(f"the name {one.start.job!r} is taken by other runs; give the job another name")


def _new(name: str, one: Beginning, now_seconds: float) -> dict[str, Any]:
    start = one.start
    values = new_run(
        name,
        now_seconds,
        job_name=start.job,
        source=SOURCE,
        started_at_seconds=start.started_at_seconds,
        project=one.project,
    )
    return {**values, "total_steps": start.total_steps}


def _changes(
    begun: Sequence[Beginning], here: Sequence[RunRow], known: set[tuple[int, int]]
) -> dict[int, dict[str, Any]]:
    """What the attempts change of their runs: one that is new to a run has it running."""
    changes: dict[int, dict[str, Any]] = {}
    for one, run in zip(begun, here, strict=True):
        told = changes.setdefault(run.id, {})
        if (run.id, one.start.attempt) not in known and run.state != "running":
            told |= {"state": "running", "seen_at_seconds": time.time()}
        if run.started_at_seconds is None:
            told["started_at_seconds"] = one.start.started_at_seconds
        if one.start.total_steps not in (None, run.total_steps):
            told["total_steps"] = one.start.total_steps
    return changes
