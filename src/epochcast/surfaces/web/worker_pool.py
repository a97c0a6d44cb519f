"""The processes that answer (`worker`), seen from the event loop: each has one question at a time and a limit of time.

A worker that takes too long is killed and replaced; so is one that died. Questions wait in order of arrival, and a
server that has too many waiting says so at once instead of answering everybody late. Long questions leave one worker to
the short ones, so that a plan does not hold up a forecast.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from epochcast.surfaces.web.problems import RETRY_SECONDS, Problem, log
from epochcast.surfaces.web.worker_process import ANSWER

MOST_WAITING = 256
LONG = frozenset({"check", "plan", "scaling", "advise", "queue", "schedule", "simulate", "history", "history_compare"})
"""Verbs whose answers may take seconds."""
# Longer answers are a fault; a plan of thousands of offers has some megabytes.
MOST_ANSWER_BYTES = 64 * 2**20


@dataclass(slots=True)
class Workers:
    """A pool. `start` and `end` belong to the life of the server."""

    count: int
    uploads: str
    most_bytes: int
    _free: "asyncio.Queue[_Worker]" = field(default_factory=asyncio.Queue, init=False)
    _all: "set[_Worker]" = field(default_factory=set, init=False)
    _waiting: int = field(default=0, init=False)
    _long: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._long = asyncio.Semaphore(max(1, self.count - 1))

    async def start(self) -> None:
        """Start all processes; they load what they need while the first questions are on their way."""
        for _ in range(self.count):
            await self._add()

    async def end(self) -> None:
        """End them all."""
        for worker in list(self._all):
            await worker.end()
        self._all.clear()

    @property
    def waiting(self) -> int:
        """Questions without a worker."""
        return self._waiting

    async def ask(self, verb: str, question: Mapping[str, Any], seconds: float) -> bytes:
        """The answer of a worker as JSON text, or a `Problem`."""
        if self._waiting >= MOST_WAITING:
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE, "too many questions are waiting", {"Retry-After": str(RETRY_SECONDS)}
            )
        if verb not in LONG:
            return await self._ask(verb, question, seconds)
        self._waiting += 1
        try:
            await self._long.acquire()
        finally:
            self._waiting -= 1
        # Whoever asked may go away meanwhile: the worker finishes, and only then the next long question begins.
        task = asyncio.create_task(self._ask(verb, question, seconds))
        task.add_done_callback(lambda _: self._long.release())
        return await asyncio.shield(task)

    async def _ask(self, verb: str, question: Mapping[str, Any], seconds: float) -> bytes:
        self._waiting += 1
        try:
            worker = await self._free.get()
        finally:
            self._waiting -= 1
        # Whoever asked may go away meanwhile (a slider that is dragged on): the worker finishes and is free again.
        return await asyncio.shield(asyncio.create_task(self._answer(worker, verb, question, seconds)))

    async def _answer(self, worker: "_Worker", verb: str, question: Mapping[str, Any], seconds: float) -> bytes:
        try:
            reply = await asyncio.wait_for(worker.ask(verb, question), seconds)
        except TimeoutError:
            await self._replace(worker)
            raise Problem(
                HTTPStatus.UNPROCESSABLE_ENTITY, f"no answer within {seconds:g} seconds: ask for something smaller"
            ) from None
        except (ConnectionError, asyncio.IncompleteReadError, ValueError):
            await self._replace(worker)
            raise Problem(
                HTTPStatus.UNPROCESSABLE_ENTITY, "the process that worked on this ended: it may need too much memory"
            ) from None
        except BaseException:  # the server ends
            self._all.discard(worker)
            await worker.end()
            raise
        self._free.put_nowait(worker)
        return _read(reply)

    async def _add(self) -> None:
        worker = _Worker(await _started(self.most_bytes, self.uploads))
        self._all.add(worker)
        self._free.put_nowait(worker)

    async def _replace(self, worker: "_Worker") -> None:
        self._all.discard(worker)
        await worker.end()
        await self._add()


@dataclass(slots=True, eq=False)
class _Worker:
    process: asyncio.subprocess.Process

    async def ask(self, verb: str, question: Mapping[str, Any]) -> bytes:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps({"verb": verb, "asked": question}).encode() + b"\n")
        await self.process.stdin.drain()
        line = await self.process.stdout.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("the worker ended")
        return line

    async def end(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()


async def _started(most_bytes: int, uploads: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "epochcast.surfaces.web.worker_process", str(os.getpid()), str(most_bytes), uploads),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=MOST_ANSWER_BYTES,
        start_new_session=True,  # Ctrl-C reaches the server, which ends them
    )


def _read(reply: bytes) -> bytes:
    kind, _, content = reply.rstrip(b"\n").partition(b" ")
    if kind == ANSWER.encode():
        return content
    answer = json.loads(content)
    if "error" in answer:
        raise Problem(int(answer["status"]), str(answer["error"]))
    log.error("a worker failed: %s", answer.get("fault"))
    raise RuntimeError(f"a worker failed: {answer.get('fault')}")
