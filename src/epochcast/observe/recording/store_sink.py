"""Rows into the store (`epochcast.observe.store`): a run by the job's name, its attempts, and what was reported.

The store keeps one report of each step and phase: of a pause, its end.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from epochcast.observe.recording.recorded_rows import AttemptStart, RecordedRow

if TYPE_CHECKING:
    from epochcast.observe.runs.report import Report
    from epochcast.observe.store.store import Store
    from epochcast.observe.store.store_rows import RunRow

# Waiting for another writer, or for a server to answer.
ANSWER_SECONDS = 5.0


class StoreSink:
    """Opened by the thread that sends, when there is something to send."""

    def __init__(self, database: str | None = None) -> None:
        self._database = database
        self.name = "the store" if database is None else database.rpartition("@")[2]  # without a password
        self._store: Store | None = None
        self._run: RunRow | None = None

    def send(self, start: AttemptStart, rows: Sequence[RecordedRow]) -> int:
        """All in one transaction."""
        if self._store is None:
            from epochcast.observe.store.store_opening import open_store

            self._store = open_store(self._database, wait_seconds=ANSWER_SECONDS)
        if self._run is None:
            self._run = run_of(self._store, start)
        late = late_seconds(start, self._run)
        reports = [report for row in rows if (report := report_of(row, start, late)) is not None]
        self._store.record(self._run.id, reports)
        last = rows[-1] if rows else None
        if last is not None and last.kind in ("end", "stopped"):
            self._store.note(
                self._run.id,
                state=state_of(last),
                ended_at_seconds=start.started_at_seconds + last.clock_seconds,
                end_reason=last.what or None,
            )
            self._store.close()
            self._store = None
        return len(rows)


def run_of(store: "Store", start: AttemptStart, project: str | None = None) -> "RunRow":
    """The run that an attempt belongs to, made where there is none."""
    from epochcast.observe.recording.opened_runs import Beginning, opened

    return store.written(lambda connection: opened(connection, [Beginning(start, project)]))[0]


def late_seconds(start: AttemptStart, run: "RunRow") -> float:
    """How long after its run an attempt began: by so much its clock is behind that of the run."""
    return max(0.0, start.started_at_seconds - (run.started_at_seconds or start.started_at_seconds))


def report_of(row: RecordedRow, start: AttemptStart, late_seconds: float = 0.0) -> "Report | None":
    """A row as the store keeps it; None for what it does not keep."""
    report = None if row.kind == "begin" else row.report(start)
    return None if report is None else report._replace(clock_seconds=late_seconds + row.clock_seconds)


def state_of(row: RecordedRow) -> str:
    """Finished, stopped by somebody, or failed by itself."""
    if row.kind == "end":
        return "ended"
    return "failed" if row.what.partition(":")[0].endswith(("Error", "Exception")) else "stopped"
