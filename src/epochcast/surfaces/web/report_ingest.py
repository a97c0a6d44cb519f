"""Reports of running jobs into the store: what arrives within a moment is kept in one transaction.

A request is answered when its rows are on the disk, so nothing that was acknowledged can be lost; and since every
transaction waits for the disk once, however many rows it has, many senders cost little more than one. Runs that are new
are opened in the same transaction, and runs that end are marked. Rows that come twice are kept once: a run has one
report of each attempt, step, rank and phase.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from epochcast.errors import EpochcastError
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_errors import DiskFull, Unavailable
from epochcast.surfaces.web.problems import Problem
from epochcast.surfaces.web.report_batches import AttemptRuns, ReportRequest, StoredReports, keep_all

# Rows of one transaction; what is more waits for the next.
MOST_ROWS = 20_000
MOST_WAITING_ROWS = 200_000
# Transactions begin at least this far apart: what arrives meanwhile goes into one. A lone request does not wait.
APART_SECONDS = 0.02


@dataclass(slots=True)
class _Waiting:
    arrival: ReportRequest
    stored: "asyncio.Future[StoredReports]"

    def settle(self, outcome: StoredReports | Exception) -> None:
        if self.stored.done():  # whoever asked has gone
            return
        if isinstance(outcome, Exception):
            self.stored.set_exception(outcome)
        else:
            self.stored.set_result(outcome)


@dataclass(slots=True)
class Ingest:
    """Takes reports from requests, writes them in groups."""

    store: Store
    attempt_runs: AttemptRuns = field(default_factory=AttemptRuns)
    _waiting: list[_Waiting] = field(default_factory=list)
    _waiting_rows: int = 0
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

    async def keep(self, arrival: ReportRequest) -> StoredReports:
        """Keep reports; back when they are on the disk."""
        if self._waiting_rows + len(arrival.rows) > MOST_WAITING_ROWS:
            raise Problem(503, "too many reports are waiting to be written", {"Retry-After": "2"})
        waiting = _Waiting(arrival, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._waiting_rows += len(arrival.rows)
        self._arrived.set()
        return await waiting.stored

    async def _write_all(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                began = time.monotonic()
                await self._write(self._next())
                await asyncio.sleep(max(0.0, began + APART_SECONDS - time.monotonic()))

    def _next(self) -> list[_Waiting]:
        rows, count = 0, 0
        while count < len(self._waiting) and (rows == 0 or rows + len(self._waiting[count].arrival.rows) <= MOST_ROWS):
            rows += len(self._waiting[count].arrival.rows)
            count += 1
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        self._waiting_rows -= rows
        return group

    async def _write(self, group: Sequence[_Waiting]) -> None:
        try:
            results = await run_in_threadpool(
                keep_all, self.store, self.attempt_runs, [request.arrival for request in group]
            )
        except EpochcastError as error:
            is_for_all = isinstance(error, Unavailable | DiskFull)
            if len(group) > 1 and not is_for_all:  # one that is refused must not take others along
                for request in group:
                    await self._write([request])
                return
            self._refuse(group, error)
        except Exception as error:
            self._refuse(group, error)
        else:
            for waiting, stored in zip(group, results, strict=True):
                waiting.settle(stored)

    def _refuse(self, group: Sequence[_Waiting], error: Exception) -> None:
        for request in group:
            request.settle(error)
