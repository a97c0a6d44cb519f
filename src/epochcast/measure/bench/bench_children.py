"""Child processes that answer requests and always end with their parent.

A child is `python -m MODULE`, which calls `serve`. It reads one JSON object per line from standard input and answers
each with one line on standard output; what libraries print goes to standard error. When the input ends (the parent
closed it, or was killed), the child exits at once. Children are in sessions of their own: Ctrl-C reaches only the
parent, which then closes them.
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

from epochcast.errors import BadInput
from epochcast.measure.bench.campaign import reason

Handler = Callable[[Mapping[str, Any]], Mapping[str, Any]]

# How long a child may take to exit before it is killed.
EXIT_SECONDS = 2.0
# The environment in which numerical libraries use one thread per process.
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}


class ChildFailed(BadInput):
    """A child process failed; the message is its reason."""


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
        """The process ids."""
        return [child.process.pid for child in self._children]

    def ask(
        self, request: Mapping[str, Any], limit_seconds: float, which: Sequence[int] | None = None
    ) -> list[dict[str, Any]]:
        """The answers to one request of all children, or of those in `which`.

        Raises as soon as one fails, because the others may be waiting for it. After a failure only `close` can be used.
        """
        indices = list(range(len(self._children)) if which is None else which)
        for index in indices:
            self._children[index].send(request)
        deadline = perf_counter() + limit_seconds
        answers: dict[int, dict[str, Any]] = {}
        while len(answers) < len(indices):
            try:
                index, line = self._answers.get(timeout=max(0.0, deadline - perf_counter()))
            except Empty:
                raise ChildFailed(f"no answer from a child process within {limit_seconds:.0f} s") from None
            if not line:
                raise ChildFailed(self._children[index].failure_message())
            answers[index] = json.loads(line)
            if "failed" in answers[index]:
                raise ChildFailed(answers[index]["failed"])
        return [answers[index] for index in indices]

    def close(self) -> None:
        """End all children, and wait until they have exited."""
        for child in self._children:
            child.end()
        for child in self._children:
            child.wait()
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
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `wait`)
        self.process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
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

    def send(self, request: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise ChildFailed(self.failure_message()) from None

    def failure_message(self) -> str:
        """Why a process exited unexpectedly: the last line of its standard error."""
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").splitlines()
        last_line = next((line.strip() for line in reversed(lines) if line.strip()), "it wrote nothing")
        return f"a child process ended: {last_line}"[:300]

    def end(self) -> None:
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()

    def wait(self) -> None:
        try:
            self.process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._stderr.close()


# ---- inside a child -----------------------------------------------------------------------------


def serve(handle: Handler) -> None:
    """Answer requests until the input ends; an error is sent as the answer."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not mix with the answers
    requests: Queue[Mapping[str, Any]] = Queue()
    Thread(target=_read_requests, args=(requests,), daemon=True).start()
    while True:
        request = requests.get()
        try:
            reply = handle(request)
        except Exception as problem:  # any error of a framework is sent to the parent
            reply = {"failed": reason(problem)}
        answers.write(json.dumps(reply) + "\n")
        answers.flush()


def _read_requests(requests: "Queue[Mapping[str, Any]]") -> None:
    for line in sys.stdin:
        requests.put(json.loads(line))
    os._exit(0)


# ---- the network --------------------------------------------------------------------------------


def loopback_name() -> str:
    """The name of the loopback interface: lo, lo0."""
    names = [name for _, name in socket.if_nameindex()]
    return next((name for name in names if name.startswith("lo")), names[0])
