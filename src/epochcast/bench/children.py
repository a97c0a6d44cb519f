"""Child processes that answer orders, and never outlive whoever gives them.

A child is `python -m MODULE`, which calls `serve`. It reads one JSON object per line from its input and answers each
with one line; what libraries print goes elsewhere. Where the input ends (the parent closed it, or was killed) the
child ends at once, whatever it is doing. Children are in sessions of their own, so that Ctrl-C reaches only the parent,
which then closes them.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import Empty, Queue
from threading import Thread
from time import perf_counter
from types import TracebackType
from typing import IO, Any

from epochcast.bench.campaign import reason
from epochcast.errors import BadInput

Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]

# A child that is told to end gets so long before it is killed.
ENDING_SECONDS = 2.0
# What one thread per process means to every library that could start more.
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}


class ChildFailed(BadInput):
    """A child could not do what it was told; the message is its reason."""


class Children:
    """One child per environment, all of the same module."""

    def __init__(self, module: str, environments: Sequence[Mapping[str, str]]) -> None:
        self._answers: Queue[tuple[int, bytes]] = Queue()
        self._children: list[_Child] = []
        try:
            for index, environment in enumerate(environments):
                self._children.append(_Child(module, environment, index, self._answers))
        except BaseException:
            self.close()
            raise

    @property
    def processes(self) -> list[int]:
        """Their process numbers."""
        return [child.process.pid for child in self._children]

    def ask(
        self, order: Mapping[str, Any], limit_seconds: float, which: Sequence[int] | None = None
    ) -> list[dict[str, Any]]:
        """What each answers to the same order; all of them, or those named.

        Where one fails, that is the outcome at once: the others may be waiting for it. After a failure only `close` is
        left to do.
        """
        asked = list(range(len(self._children)) if which is None else which)
        for index in asked:
            self._children[index].tell(order)
        deadline = perf_counter() + limit_seconds
        answers: dict[int, dict[str, Any]] = {}
        while len(answers) < len(asked):
            try:
                index, line = self._answers.get(timeout=max(0.0, deadline - perf_counter()))
            except Empty:
                raise ChildFailed(f"no answer of a child process within {limit_seconds:.0f} s") from None
            if not line:
                raise ChildFailed(self._children[index].last_words())
            answers[index] = json.loads(line)
            if "failed" in answers[index]:
                raise ChildFailed(answers[index]["failed"])
        return [answers[index] for index in asked]

    def close(self) -> None:
        """End all of them, and wait until they have."""
        for child in self._children:
            child.end()
        for child in self._children:
            child.reap()
        self._children.clear()

    def __enter__(self) -> "Children":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Child:
    def __init__(
        self, module: str, environment: Mapping[str, str], index: int, answers: "Queue[tuple[int, bytes]]"
    ) -> None:
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `reap`)
        self.process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        self._reader = Thread(target=self._read, args=(index, answers), daemon=True)
        self._reader.start()

    def _read(self, index: int, answers: "Queue[tuple[int, bytes]]") -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            answers.put((index, line))
        answers.put((index, b""))

    def tell(self, order: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(order).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise ChildFailed(self.last_words()) from None

    def last_words(self) -> str:
        """Why a process ended that nobody had told to."""
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").splitlines()
        said = next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
        return f"a child process ended: {said}"[:300]

    def end(self) -> None:
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()

    def reap(self) -> None:
        try:
            self.process.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._said.close()


# ---- inside a child -----------------------------------------------------------------------------


def serve(answer: Answer) -> None:
    """Answer orders until there are no more; what goes wrong with one is its answer."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer
    orders: Queue[Mapping[str, Any]] = Queue()
    Thread(target=_listen, args=(orders,), daemon=True).start()
    while True:
        order = orders.get()
        try:
            reply = answer(order)
        except Exception as problem:  # whatever a framework raises is the answer
            reply = {"failed": reason(problem)}
        answers.write(json.dumps(reply) + "\n")
        answers.flush()


def _listen(orders: "Queue[Mapping[str, Any]]") -> None:
    for line in sys.stdin:
        orders.put(json.loads(line))
    os._exit(0)


# ---- where they meet ----------------------------------------------------------------------------


def loopback_name() -> str:
    """What the system calls the loopback: lo, lo0."""
    names = [name for _, name in socket.if_nameindex()]
    return next((name for name in names if name.startswith("lo")), names[0])
