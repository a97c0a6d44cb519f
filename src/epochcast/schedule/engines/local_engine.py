"""Jobs as processes of this machine. Its machines are as many and of such types as the queue file says.

A job runs under a small supervisor in a session of its own, so that it outlives the scheduler. Which process a start is
is known by number and time of beginning: a process that got the same number later is another. GPUs are given out by
number, the lowest free ones first, over all machines of the file: CUDA_VISIBLE_DEVICES is set.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from epochcast.schedule.engines import job_supervisor as supervisor
from epochcast.schedule.engines.executor import OVER, RUNNING, EngineNode, EngineRefuses, StartOrder, StartState

# How long a supervisor may take to begin: an interpreter without site packages, on a busy machine.
BEGIN_SECONDS = 30.0


@dataclass(slots=True)
class LocalEngine:
    """Processes of this machine."""

    name: str = "local"
    _gpus: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if os.name != "posix":
            raise EngineRefuses("the local engine needs signals and sessions of Linux or macOS")

    def start(self, order: StartOrder) -> str:
        """Start a job and wait until it has begun; gives the number of its process."""
        order.make_folders()
        if order.started() is None:
            self._spawn(order)
        end = time.monotonic() + BEGIN_SECONDS
        while (started := order.started()) is None:
            if time.monotonic() > end:
                raise EngineRefuses(f"the process of {order.job!r} did not begin; its log: {order.log}")
            time.sleep(0.01)
        return str(started["pid"])

    def _spawn(self, order: StartOrder) -> None:
        used = {number for numbers in self._gpus.values() for number in numbers}
        free = (number for number in range(len(used) + order.choice.gpus) if number not in used)
        gpus = tuple(number for number, _ in zip(free, range(order.choice.gpus), strict=False))
        shown = ",".join(map(str, gpus))
        files = [str(order.started_file), str(order.exit_file), shown]
        with order.log.open("ab") as log:
            begun = subprocess.run(
                [sys.executable, "-I", str(Path(supervisor.__file__)), *files, *order.command],
                cwd=order.folder,
                env={**os.environ, "PYTHONUNBUFFERED": "1", "CUDA_VISIBLE_DEVICES": shown, **order.env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                check=False,
            )
        if begun.returncode:
            raise EngineRefuses(f"the process of {order.job!r} did not begin; its log: {order.log}")
        self._gpus[order.key] = gpus

    def look(self, orders: Sequence[StartOrder]) -> Mapping[str, StartState]:
        """From the files that jobs leave, and the processes that are there."""
        states = {}
        for order in orders:
            started = order.started()
            if started is None:
                continue
            # In this order: a process that ends after it was looked for has left its code by the next look.
            is_alive = _is_alive(started)
            code = order.exit_code()
            if code is None and is_alive:
                self._gpus[order.key] = tuple(
                    int(number) for number in str(started.get("gpus", "")).split(",") if number
                )
                states[order.key] = StartState(str(started["pid"]), RUNNING)
                continue
            self._gpus.pop(order.key, None)
            reason = None if code is not None else "its processes are gone and left no exit code"
            states[order.key] = StartState(str(started.get("pid", "")), OVER, code, code is None, reason)
        return states

    def stop(self, order: StartOrder) -> None:
        """SIGTERM to the job and all that it started."""
        self._signal(order, signal.SIGTERM)

    def kill(self, order: StartOrder) -> None:
        """SIGKILL, to the supervisor as well."""
        self._signal(order, signal.SIGKILL)

    def _signal(self, order: StartOrder, kind: signal.Signals) -> None:
        started = order.started()
        if started and order.exit_code() is None and _is_alive(started):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(int(started["pid"]), kind)

    def fetch_log(self, order: StartOrder) -> None:
        """The job writes it by itself."""

    def nodes(self, types: Iterable[str]) -> Sequence[EngineNode] | None:
        """As many as the queue file says."""
        return None

    def close(self) -> None:
        """Nothing is held."""


def _is_alive(started: Mapping[str, object]) -> bool:
    try:
        pid = int(str(started["pid"]))
    except (KeyError, ValueError):
        return False
    return bool(started.get("mark")) and supervisor.start_mark(pid) == started["mark"] and not _is_buried(pid)


def _is_buried(pid: int) -> bool:
    """A process that has ended and whose parent has not asked yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False
