"""Cores that are idle now: the work that busy-loop processes do together, over what one does per second of CPU time.

    idle = Σ loops_i / (seconds · loops per CPU second of one alone)

Unlike the number of processors, this counts other programs, the quota of a container, and hyperthreads, two of which
do less work than two cores.
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
while True:  # at least once, where a busy machine starts the process too late
    for _ in range(500):
        loops += 1
    if time.time() >= end:
        break
print(loops, time.process_time() - before)
"""


def usable_cpus() -> int:
    """Processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def idle_cpus(processes: int | None = None, seconds: float = SPIN_SECONDS) -> float:
    """How many cores' work this many processes (default: one per processor) can do beside what runs now."""
    (loops, cpu_seconds), *_ = _loops(1, seconds)
    loops_per_cpu_second = loops / cpu_seconds
    total_loops = sum(loops for loops, _ in _loops(processes or usable_cpus(), seconds))
    return min(float(usable_cpus()), total_loops / (seconds * loops_per_cpu_second))


def _loops(count: int, seconds: float) -> list[tuple[float, float]]:
    """Loops and CPU seconds of `count` processes that run a busy loop at the same time."""
    start = time.time() + START_SECONDS + 0.01 * count
    command = [sys.executable, "-I", "-S", "-c", _SPIN, str(start), str(start + seconds)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    outputs = [process.communicate()[0].split() for process in processes]
    if any(len(output) != 2 or not float(output[1]) for output in outputs):
        raise BadInput("idle processors cannot be measured: test processes ended early; give cpus")
    return [(float(loops), float(seconds)) for loops, seconds in outputs]
