"""Reports of running jobs into the store: what arrives within a moment is kept in one transaction.

A request is answered when its rows are on the disk, so nothing that was acknowledged can be lost; and since every
transaction waits for the disk once, however many rows it has, many senders cost little more than one. Rows that come
twice are kept once: a run has one report of each attempt, step, rank and phase.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool

from epochcast.errors import BadInput, EpochcastError
from epochcast.store.rows import ObservationRow
from epochcast.store.store import Store
from epochcast.tracking.recording.records import Row, Start
from epochcast.tracking.recording.stored import state_of
from epochcast.web.problems import Problem

# Rows of one transaction; what is more waits for the next.
MOST_ROWS = 20_000
MOST_WAITING_ROWS = 200_000


@dataclass(slots=True)
class _Batch:
    run_id: int
    rows: Sequence[ObservationRow]
    kept: "asyncio.Future[int]"


@dataclass(slots=True)
class Ingest:
    """Takes rows from requests, writes them in groups."""

    store: Store
    rows_kept: int = 0
    _waiting: list[_Batch] = field(default_factory=list)
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _task: "asyncio.Task[None] | None" = None

    def start(self) -> None:
        """Begin to write."""
        self._task = asyncio.create_task(self._write_all())

    async def end(self) -> None:
        """Write what waits, then stop."""
        while self._waiting:
            await asyncio.sleep(0.01)
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def keep(self, run_id: int, rows: Sequence[ObservationRow]) -> int:
        """Keep rows; back when they are on the disk, with how many were new."""
        for row in rows:
            row.check()
        if sum(len(batch.rows) for batch in self._waiting) + len(rows) > MOST_WAITING_ROWS:
            raise Problem(503, "too many reports are waiting to be written", {"Retry-After": "2"})
        batch = _Batch(run_id, rows, asyncio.get_running_loop().create_future())
        self._waiting.append(batch)
        self._arrived.set()
        return await batch.kept

    async def _write_all(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                await self._write(self._next())

    def _next(self) -> list[_Batch]:
        rows, taken = 0, 0
        while taken < len(self._waiting) and (rows == 0 or rows + len(self._waiting[taken].rows) <= MOST_ROWS):
            rows += len(self._waiting[taken].rows)
            taken += 1
        batches, self._waiting = self._waiting[:taken], self._waiting[taken:]
        return batches

    async def _write(self, batches: list[_Batch]) -> None:
        by_run: dict[int, list[ObservationRow]] = {}
        for batch in batches:
            by_run.setdefault(batch.run_id, []).extend(batch.rows)
        try:
            added = await run_in_threadpool(self.store.record_all, by_run)
        except EpochcastError as error:
            if len(batches) > 1:  # one bad run must not take the others with it
                for batch in batches:
                    await self._write([batch])
                return
            _settle(batches, error=error)
            return
        except Exception as error:
            _settle(batches, error=error)
            return
        self.rows_kept += added
        for batch in batches:
            _settle([batch], len(batch.rows))


def _settle(batches: Sequence[_Batch], kept: int = 0, error: Exception | None = None) -> None:
    for batch in batches:
        if batch.kept.done():
            continue
        if error is None:
            batch.kept.set_result(kept)
        else:
            batch.kept.set_exception(error)


@dataclass(frozen=True, slots=True)
class Reports:
    """A request of a training: the attempt, and what happened since the last one."""

    start: Start
    rows: tuple[Row, ...]

    @property
    def end_state(self) -> str | None:
        """How the run ended, where these reports say so."""
        last = self.rows[-1] if self.rows else None
        return None if last is None or last.kind not in ("end", "stopped") else state_of(last)


def reports_in(told: object, most: int) -> Reports:
    """The reports of a request, as `recording.server` sends them."""
    if not isinstance(told, Mapping) or not isinstance(told.get("start"), Mapping):
        raise BadInput("reports are sent with an object `start` and a list `observations`")
    records = told.get("observations")
    if not isinstance(records, list) or not all(isinstance(record, Mapping) for record in records):
        raise BadInput("`observations` must be a list of objects")
    if len(records) > most:
        raise BadInput(f"a request has at most {most:,} observations, got {len(records):,}")
    start = Start.from_dict(told["start"])
    return Reports(start, tuple(Row.from_dict(record, start) for record in records))


def body_of(content: bytes, what: str = "the request") -> Any:
    """The JSON value of a body."""
    from epochcast.documents import parse_json

    if not content.strip():
        raise BadInput(f"{what} has no content; JSON is needed")
    return parse_json(content, what)
