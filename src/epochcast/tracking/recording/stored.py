"""Rows into the store (`epochcast.store`): a run by the job's name, its attempts, and what was reported.

A job that is trained again from its beginning, after a run of it has ended, is another run: it gets the number of its
attempt behind the name. The store keeps one report of each step and phase: of a pause, its end.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from epochcast.tracking.recording.records import Row, Start

if TYPE_CHECKING:
    from epochcast.store.rows import ObservationRow, Run
    from epochcast.store.store import Store

# Waiting for another writer, or for a server to answer.
ANSWER_SECONDS = 5.0


class StoreSink:
    """Opened by the thread that sends, when there is something to send."""

    def __init__(self, database: str | None = None) -> None:
        self._database = database
        self.name = "the store" if database is None else database.rpartition("@")[2]  # without a password
        self._store: Store | None = None
        self._run: Run | None = None

    def send(self, start: Start, rows: Sequence[Row]) -> int:
        """All in one transaction."""
        if self._store is None:
            from epochcast.store.opening import open_store

            self._store = open_store(self._database, wait_seconds=ANSWER_SECONDS)
        if self._run is None:
            self._run = run_of(self._store, start)
        reports = [report for row in rows if (report := report_of(row, start, self._run)) is not None]
        self._store.record(self._run.id, reports)
        last = rows[-1] if rows else None
        if last is not None and last.kind in ("end", "stopped"):
            self._store.note(
                self._run.id,
                state=state_of(last),
                ended_at_seconds=start.started_at_seconds + last.clock_seconds,
            )
            self._store.close()
            self._store = None
        return len(rows)


def run_of(store: "Store", start: Start, project: str | None = None) -> "Run":
    """The run that an attempt belongs to, made where there is none."""
    name = start.job
    found = store.find_run(name)
    if found is not None and found.project != project:
        name = f"{project}/{start.job}" if project else f"{start.job} {start.attempt}"
        found = store.find_run(name)
    if found is not None and found.state == "ended" and start.start_step == 0:
        name = f"{name} {start.attempt}"
    run = store.open_run(
        name,
        job_name=start.job,
        source="ec.track",
        started_at_seconds=start.started_at_seconds,
        project=project,
    )
    store.note(run.id, state="running", total_steps=start.total_steps)
    return run


def report_of(row: Row, start: Start, run: "Run") -> "ObservationRow | None":
    """A row as the store keeps it; None for what it does not keep."""
    from epochcast.store.rows import ObservationRow

    seen = row.observation(start)
    if seen is None or row.kind == "begin":
        return None
    began = start.started_at_seconds if run.started_at_seconds is None else run.started_at_seconds
    return ObservationRow(
        step=seen.step,
        attempt=seen.attempt,
        rank=seen.rank,
        phase=seen.phase,
        clock_seconds=max(0.0, start.started_at_seconds - began) + row.clock_seconds,
        step_seconds=seen.step_seconds,
        data_seconds=seen.data_seconds,
        loss=seen.loss,
        epoch=seen.epoch,
        total_steps=seen.total_steps,
        total_epochs=seen.total_epochs,
        steps_per_epoch=seen.steps_per_epoch,
        pause_seconds=seen.pause_seconds,
        what=seen.what or None,
    )


def state_of(row: Row) -> str:
    """Finished, stopped by somebody, or failed by itself."""
    if row.kind == "end":
        return "ended"
    return "failed" if row.what.endswith(("Error", "Exception")) else "stopped"
