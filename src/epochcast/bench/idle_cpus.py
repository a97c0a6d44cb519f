"""Cores that are idle now: what spinning processes get done together, over what one does in a second of its own.

    idle = Σ loops_i / (seconds · loops per CPU second of one alone)

Counting work rather than asking for the number of processors sees other programs, quotas of a container and
hyperthreads, which share a core and do less than two.
"""

import os
import subprocess
import sys
import time

from epochcast.errors import BadInput

SPIN_SECONDS = 0.3
# A bare interpreter starts within this; all begin together.
START_SECONDS = 0.25

_SPIN = """
import sys, time
start, end = float(sys.argv[1]), float(sys.argv[2])
time.sleep(max(0.0, start - time.time()))
before, loops = time.process_time(), 0
while time.time() < end:
    for _ in range(500):
        loops += 1
print(loops, time.process_time() - before)
"""


def usable_cpus() -> int:
    """Processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def idle_cpus(processes: int | None = None, seconds: float = SPIN_SECONDS) -> float:
    """Cores' worth of work that so many processes (one per processor) get done beside everything that runs now."""
    (loops, cpu_seconds), *_ = _spinning(1, seconds)
    alone_per_second = loops / cpu_seconds
    together = sum(loops for loops, _ in _spinning(processes or usable_cpus(), seconds))
    return min(float(usable_cpus()), together / (seconds * alone_per_second))


def _spinning(count: int, seconds: float) -> list[tuple[float, float]]:
    """Loops and CPU seconds of so many processes that spin side by side."""
    start = time.time() + START_SECONDS + 0.01 * count
    command = [sys.executable, "-I", "-S", "-c", _SPIN, str(start), str(start + seconds)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    told = [process.communicate()[0].split() for process in running]
    if any(len(words) != 2 or not float(words[1]) for words in told):
        raise BadInput("idle processors cannot be measured: spinning processes ended early; give --cpus")
    return [(float(loops), float(seconds)) for loops, seconds in told]
