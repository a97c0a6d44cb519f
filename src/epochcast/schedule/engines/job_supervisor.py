"""Runs one job of the local engine apart from the scheduler: once, beyond the scheduler's end, keeping its exit code.

Run as a file, by `python -I supervisor.py STARTED EXIT GPUS WORD…`; it imports nothing of epochcast. The job runs in a
session of its own; a signal to the session's group reaches the job and what it started, and leaves the supervisor.
"""

import json
import os
import signal
import subprocess
import sys
from types import FrameType

STARTED_TWICE = 97


def start_mark(pid: int) -> str:
    """What tells a process from a later one with the same number: when it began."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            return stream.read().rpartition(")")[2].split()[19]
    except OSError:
        pass
    if os.path.isdir("/proc/self"):
        return ""
    listing = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return listing.stdout.strip()


def begin_once(started: str, gpus: str) -> bool:
    """Write down who this is; false where the key was started before. The file is there whole or not at all."""
    mine = f"{started}.{os.getpid()}"
    with open(mine, "w", encoding="utf-8") as stream:
        json.dump({"pid": os.getpid(), "mark": start_mark(os.getpid()), "gpus": gpus}, stream)
    try:
        os.link(mine, started)
    except FileExistsError:
        return False
    finally:
        os.unlink(mine)
    return True


def stay(_signal: int, _frame: FrameType | None) -> None:
    """Signals are for the job; a handler, unlike ignoring, is not inherited by it."""


def main(started: str, exit_file: str, gpus: str, command: list[str]) -> int:
    """Run the command and keep its exit code."""
    if os.fork():
        return 0
    os.setsid()
    if not begin_once(started, gpus):
        return STARTED_TWICE
    for kind in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(kind, stay)
    try:
        code = subprocess.Popen(command, stdin=subprocess.DEVNULL).wait()
    except OSError as error:
        sys.stderr.write(f"cannot start {command[0]}: {error.strerror}\n")
        code = 127
    with open(f"{exit_file}.new", "w", encoding="utf-8") as stream:
        stream.write(str(code if code >= 0 else 128 - code))
    os.replace(f"{exit_file}.new", exit_file)
    os.killpg(0, signal.SIGKILL)  # what the job left running, and this
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
