"""`make bench-demo`: the first minutes: a new clone, `make demo` in a new environment, and the commands it offers.

Prints the seconds of `make demo`, its installation included, against the limit of 30, and those of every command that
it ends with, typed as printed. Exit code 1 where the limit is missed or a command fails.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_DEMO_SECONDS = 30.0


def offered_commands(printed: str) -> Iterator[str]:
    """The commands under "Try:", each on a line of its own, further in than what it answers."""
    for line in printed.partition("\nTry:\n")[2].splitlines():
        if line.startswith("    "):
            yield line.strip()


def timed(command: str, folder: Path) -> tuple[float, subprocess.CompletedProcess[str]]:
    """Seconds and result of a shell command, in an environment that no other one has touched."""
    others = ("PYTHONPATH", "VIRTUAL_ENV", "EPOCHCAST_DATA", "MAKEFLAGS", "MAKELEVEL")
    environment = {name: value for name, value in os.environ.items() if name not in others}
    environment["EPOCHCAST_CACHE"] = str(folder.parent / "cache")
    start = time.perf_counter()
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return time.perf_counter() - start, done


def main() -> int:
    """Print the table."""
    with tempfile.TemporaryDirectory() as scratch:
        clone = Path(scratch, "epochcast")
        subprocess.run(["git", "clone", "--quiet", "--depth", "1", f"file://{ROOT}", str(clone)], check=True)
        demo_seconds, demo = timed("make demo", clone)
        print(f"{demo_seconds:7.1f} s  make demo (at most {MOST_DEMO_SECONDS:g})", flush=True)
        commands = list(offered_commands(demo.stdout))
        failed = demo.returncode != 0 or demo_seconds > MOST_DEMO_SECONDS or len(commands) != 3
        for command in commands:
            seconds, done = timed(command, clone)
            print(f"{seconds:7.1f} s  {command}{'' if done.returncode == 0 else '  FAILED'}", flush=True)
            failed |= done.returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
