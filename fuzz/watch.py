"""One target for some seconds, in a process of its own: every input that ends in something else than a user's error.

An input takes at most `MOST_SECONDS` of the processor, and the process may not grow by more than `MOST_BYTES` on one
input. Findings of one kind share the error and our innermost line of the traceback; the shortest input of each kind is
saved whole (`kept`).
"""

import json
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

from epochcast.errors import EpochcastError
from fuzz.kept import keep, packed
from fuzz.targets import TARGETS

MOST_SECONDS = 10
# The first of a process may, which import.
FIRST_SECONDS = 120
WARM_INPUTS = 20
MOST_BYTES = 400 * 2**20
# Beyond the packages themselves, which map much that they never touch.
ADDRESS_BYTES = 4 * 2**30
# The input that is being read, beside what was found: a process that is killed leaves it.
CURRENT = "current.json"
# Examples of one run of hypothesis; between runs the clock is asked.
EXAMPLES = 50


class TooLong(BaseException):
    """An input took longer than it may."""


def _alarm(_: int, __: FrameType | None) -> None:
    raise TooLong


class Watch:
    """Runs inputs and keeps what they end in."""

    def __init__(self, name: str, folder: Path, out: Path) -> None:
        self.name, self.target = name, TARGETS[name]
        self.folder, self.out = folder, out
        self.inputs = 0
        self.problems: dict[str, dict[str, Any]] = {}

    def run(self, case: Any) -> None:
        """One input."""
        self.inputs += 1
        keep(self.out.with_name(CURRENT), self.name, case)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        began = time.perf_counter()
        signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS if self.inputs > WARM_INPUTS else FIRST_SECONDS)
        try:
            self.target.read(self.folder, case)
        except EpochcastError as error:
            self._check_line(error, case)
        except TooLong as problem:
            self._keep(f"longer than {MOST_SECONDS} s", problem, case)
        except Exception as problem:
            self._keep(type(problem).__name__, problem, case)
        except BaseException as problem:
            if type(problem).__name__ != "PanicException":  # of polars: no Exception
                raise
            self._keep("PanicException", problem, case)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
        if grown > MOST_BYTES and self.inputs > WARM_INPUTS:
            self._keep(f"memory: {grown / 2**20:.0f} MiB in {time.perf_counter() - began:.1f} s", None, case)

    def _check_line(self, error: EpochcastError, case: Any) -> None:
        """A user's error is one line of words that a terminal shows."""
        if "\n" in str(error).strip():
            self._keep("an error of several lines", error, case)
        if len(str(error)) > 2000:
            self._keep("an error of more than 2000 characters", error, case)

    def _keep(self, kind: str, problem: BaseException | None, case: Any) -> None:
        frames = traceback.extract_tb(problem.__traceback__) if problem is not None else []
        ours = [f for f in frames if "/epochcast/" in f.filename]
        place = f"{ours[-1].filename.rpartition('/epochcast/')[2]}:{ours[-1].lineno}" if ours else "?"
        kind = kind.partition(":")[0]
        key = f"{kind} at {place}"
        size = len(repr(case))
        if key not in self.problems or size < self.problems[key]["size"]:
            count = self.problems.get(key, {}).get("count", 0)
            message = str(problem)[:300]
            trail = [f"{f.filename.rpartition('/')[2]}:{f.lineno} {f.line}" for f in frames[-6:]]
            self.problems[key] = {
                "size": size,
                "message": message,
                "trail": trail,
                "input": packed(case),
                "count": count,
            }
        self.problems[key]["count"] += 1


def main(name: str, seconds: float, number: int, out: str) -> None:
    """Run one target and write what was found."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, _alarm)
    with tempfile.TemporaryDirectory() as folder:
        watch = Watch(name, Path(folder), Path(out))
        strategy = watch.target.make()
        limit = _mapped_bytes() + ADDRESS_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        began = time.monotonic()

        def test(case: Any) -> None:
            if time.monotonic() - began < seconds:
                watch.run(case)

        round_number = 0
        while time.monotonic() - began < seconds:
            quiet = settings(
                max_examples=EXAMPLES,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
                verbosity=Verbosity.quiet,
            )
            seed(number + round_number)(quiet(given(strategy)(test)))()
            round_number += 1
            Path(out).write_text(json.dumps({"inputs": watch.inputs, "found": watch.problems}))


def _mapped_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
