"""What a training sends, and how a group of such requests is kept: in one transaction, all or nothing.

A server remembers the runs of attempts that it has seen. Another server, or somebody who deletes runs, may change the
database meanwhile: so every transaction looks whether the remembered runs are still there, and looks those up again
that are not.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from epochcast.errors import BadInput
from epochcast.observe.recording.opened_runs import Beginning, begin, find_or_make
from epochcast.observe.recording.recorded_rows import AttemptStart, RecordedRow
from epochcast.observe.recording.store_sink import late_seconds, report_of, state_of
from epochcast.observe.runs.report import Report
from epochcast.observe.store import observation_ingest as ingest
from epochcast.observe.store.run_updates import AttemptEnd, lock_runs, note_ends, note_seen
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_rows import bounded

MOST_KNOWN = 100_000
# How often a transaction is begun anew because a remembered run is gone.
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """A request of a training: the attempt, and what happened since the last one, by the clock of the attempt."""

    beginning: Beginning
    rows: Sequence[Report]
    end: AttemptEnd | None = None
    """How it ended, where these reports say so."""

    @property
    def key(self) -> "Key":
        """What it has in common with other requests of the same attempt."""
        return self.beginning.start.job, self.beginning.start.attempt, self.beginning.project


Key = tuple[str, int, str | None]


@dataclass(frozen=True, slots=True)
class _Known:
    run_id: int
    name: str
    late_seconds: float


@dataclass(frozen=True, slots=True)
class StoredReports:
    """What became of a request: the name of its run, and how many reports are on the disk."""

    run: str
    rows: int


class _Gone(Exception):
    """Runs that were remembered are no longer there."""


@dataclass(slots=True)
class AttemptRuns:
    """Runs of attempts, as they were found. One thread at a time uses it: the one that writes."""

    _runs: dict[Key, _Known] = field(default_factory=dict)

    def get(self, key: Key) -> _Known | None:
        """What is remembered."""
        return self._runs.get(key)

    def put(self, runs: Mapping[Key, _Known]) -> None:
        """Remember what a transaction has kept."""
        if len(self._runs) + len(runs) > MOST_KNOWN:
            self._runs.clear()
        self._runs.update(runs)

    def forget(self, run_ids: set[int]) -> None:
        """These runs are gone."""
        self._runs = {key: run for key, run in self._runs.items() if run.run_id not in run_ids}


def keep_all(store: Store, attempt_runs: AttemptRuns, arrivals: Sequence[ReportRequest]) -> list[StoredReports]:
    """Keep a group of requests; back when all of it is on the disk."""
    for _ in range(ROUNDS):
        try:
            runs, opened = store.written(lambda connection: _keep(connection, attempt_runs, arrivals))
        except _Gone:
            continue
        attempt_runs.put(opened)
        return [StoredReports(runs[arrival.key].name, len(arrival.rows)) for arrival in arrivals]
    raise BadInput("runs of these reports are deleted while they are written")


def _keep(
    connection: Connection, attempt_runs: AttemptRuns, arrivals: Sequence[ReportRequest]
) -> tuple[dict[Key, _Known], dict[Key, _Known]]:
    """The runs of all requests by their keys, and those of them that were not remembered."""
    by_key = {arrival.key: run for arrival in arrivals if (run := attempt_runs.get(arrival.key)) is not None}
    remembered = {run.run_id for run in by_key.values()}
    begun = list({arrival.key: arrival.beginning for arrival in arrivals if arrival.key not in by_key}.values())
    runs = find_or_make(connection, begun) if begun else []
    gone = remembered - lock_runs(connection, remembered | {opened.id for opened in runs})
    if gone:
        attempt_runs.forget(gone)
        raise _Gone
    new: dict[Key, _Known] = {}
    if begun:
        begin(connection, begun, runs)
        for beginning, opened in zip(begun, runs, strict=True):
            key = beginning.start.job, beginning.start.attempt, beginning.project
            new[key] = _Known(opened.id, opened.name, late_seconds(beginning.start, opened))
    by_key |= new
    _write(connection, arrivals, by_key)
    return by_key, new


def _write(connection: Connection, arrivals: Sequence[ReportRequest], by_key: Mapping[Key, _Known]) -> None:
    """The reports, how far their runs are, and which of these have ended."""
    batches: dict[int, list[Report]] = {}
    ends: dict[tuple[int, int], AttemptEnd] = {}
    for arrival in arrivals:
        run = by_key[arrival.key]
        if arrival.rows:
            batches.setdefault(run.run_id, []).extend(_by_clock_of_run(arrival.rows, run.late_seconds))
        if arrival.end is not None:
            ends[run.run_id, arrival.beginning.start.attempt] = arrival.end
    now = time.time()
    ingest.insert(connection, batches, now)
    note_seen(connection, batches, now)
    note_ends(connection, ends, now)


def _by_clock_of_run(rows: Sequence[Report], late: float) -> Sequence[Report]:
    if not late:
        return rows
    return [row if (at := row.clock_seconds) is None else row._replace(clock_seconds=at + late) for row in rows]


def arrival_in(body: object, project: str | None, most: int) -> ReportRequest:
    """The reports of a request, as `recording.server_sink` sends them, checked."""
    if not isinstance(body, Mapping) or not isinstance(body.get("start"), Mapping):
        raise BadInput("reports are sent with an object `start` and a list `observations`")
    records = body.get("observations")
    if not isinstance(records, list) or not all(isinstance(record, Mapping) for record in records):
        raise BadInput("`observations` must be a list of objects")
    if len(records) > most:
        raise BadInput(f"a request has at most {most:,} observations, got {len(records):,}")
    start = AttemptStart.from_dict(body["start"])
    rows = [RecordedRow.from_dict(record, start) for record in records]
    reports = [report for row in rows if (report := report_of(row, start)) is not None]
    for report in reports:
        report.check()
    last = rows[-1] if rows else None
    if last is None or last.kind not in ("end", "stopped"):
        return ReportRequest(Beginning(start, project), reports)
    ended_at_seconds = start.started_at_seconds + last.clock_seconds
    end = AttemptEnd(state_of(last), ended_at_seconds, bounded(last.what) or None)
    return ReportRequest(Beginning(start, project), reports, end)
