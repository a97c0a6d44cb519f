"""Live events (server-sent): how runs stand, to everybody who listens and may see them.

One look at the store serves all listeners, so that a thousand runs and hundreds of listeners cost one query, and what
another server on the same database took in is seen as well. It comes every second, and less often where there is so
much to look at that it would delay answers.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from weakref import WeakSet

from starlette.concurrency import run_in_threadpool

from epochcast.errors import EpochcastError
from epochcast.observe.store.row_values import RunFilter
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_rows import RunRow
from epochcast.surfaces.web.access import Caller
from epochcast.surfaces.web.metrics import Metrics
from epochcast.surfaces.web.problems import Problem, log

LOOK_SECONDS = 1.0
# Of the time about this share is spent on looking, but nobody waits longer than this for news.
LOOK_FRACTION = 0.05
MOST_WAIT_SECONDS = 10.0
# A comment so often, so that proxies keep the connection open, the server sees who has gone, and who may no longer
# listen is sent away.
BEAT_SECONDS = 5.0
# Events that one slow listener may be behind; it then begins anew with what is true now.
MOST_BEHIND = 1_000
# Runs are looked at again for so long before the last look: clocks of several servers differ.
OVERLAP_SECONDS = 5.0


@dataclass(eq=False, slots=True, weakref_slot=True)
class _Listener:
    caller: Caller
    run: str | None
    events: "asyncio.Queue[str]" = field(default_factory=lambda: asyncio.Queue(MOST_BEHIND))


@dataclass(slots=True)
class Live:
    """Listeners, and the task that looks for news."""

    store: Store
    most: int
    metrics: Metrics
    # Held by their streams alone: one that never begins, because its browser has gone, is no longer counted.
    _listeners: WeakSet[_Listener] = field(default_factory=WeakSet)
    _seen: dict[int, RunRow] = field(default_factory=dict)
    _since_seconds: float = field(default_factory=time.time)
    _task: "asyncio.Task[None] | None" = None

    def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._look_on())

    async def end(self) -> None:
        """Stop looking."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    @property
    def count(self) -> int:
        """How many listen."""
        return len(self._listeners)

    def events(self, caller: Caller, run: str | None, is_let_in: Callable[[], Awaitable[bool]]) -> AsyncIterator[str]:
        """What happens from now on to runs that the caller may see (or to one), as lines of an event stream.

        The stream ends when the caller is no longer let in. Too many listeners are a `Problem` before it begins.
        """
        if len(self._listeners) >= self.most:
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "too many listen already", {"Retry-After": "10"})
        listener = _Listener(caller, run)
        self._listeners.add(listener)
        return self._events(listener, is_let_in)

    async def _events(self, listener: _Listener, is_let_in: Callable[[], Awaitable[bool]]) -> AsyncIterator[str]:
        yield "retry: 2000\n\n"
        while True:
            texts: list[str] = []
            with suppress(TimeoutError):
                texts.append(await asyncio.wait_for(listener.events.get(), BEAT_SECONDS))
            if not await is_let_in():
                return
            while not listener.events.empty():  # what came at once goes out at once
                texts.append(listener.events.get_nowait())
            self.metrics.events.inc(len(texts))
            yield "".join(f"event: run\ndata: {text}\n\n" for text in texts) or ": still here\n\n"

    async def _look_on(self) -> None:
        took = 0.0
        while True:
            await asyncio.sleep(min(MOST_WAIT_SECONDS, max(LOOK_SECONDS, took / LOOK_FRACTION)))
            began = time.monotonic()
            if not self._listeners:
                self._seen.clear()
                self._since_seconds, took = time.time(), 0.0  # who listens next has fetched what was before
                continue
            try:
                await self._look()
            except EpochcastError as error:
                log.warning("no news of runs: %s", error)
            took = time.monotonic() - began

    async def _look(self) -> None:
        began = time.time()
        # Where the clock was set back, runs are seen at times before the last look.
        since = min(self._since_seconds, began) - OVERLAP_SECONDS
        wanted = RunFilter(seen_after_seconds=since)
        for run, text in await run_in_threadpool(self._news, wanted, began):
            self._seen[run.id] = run
            self._tell(run, text)
        self._since_seconds = began

    def _news(self, wanted: RunFilter, now_seconds: float) -> list[tuple[RunRow, str]]:
        changed = (run for run in self.store.runs(wanted) if self._seen.get(run.id) != run)
        return [(run, json.dumps(shown(run, now_seconds), allow_nan=False)) for run in changed]

    def _tell(self, run: RunRow, text: str) -> None:
        for listener in self._listeners:
            if not listener.caller.may_see(run.project) or listener.run not in (None, run.name, run.key):
                continue
            if listener.events.full():
                with suppress(asyncio.QueueEmpty):
                    listener.events.get_nowait()
            listener.events.put_nowait(text)


def shown(run: RunRow, now_seconds: float | None = None) -> dict[str, Any]:
    """A run as the API shows it now. Newer runs have a larger `id`."""
    now_seconds = time.time() if now_seconds is None else now_seconds
    return {
        **run.as_dict(),
        "id": run.id,
        "project": run.project,
        "silent_seconds": run.silent_seconds(now_seconds),
        "silent_after_seconds": run.silent_after_seconds,
        "is_silent": run.is_silent(now_seconds),
    }
