"""One question to the command line, asked in this process.

`epochcast` is run as `python -m epochcast`, so that no module below the package is named here. What depends on the
clock or on the machine is fixed by the environment (`FIXED`), or removed by name before answers are compared
(`without_measured`).
"""

import io
import json
import os
import runpy
import sys
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Keys whose values are measured while the question is answered.
MEASURED = frozenset({"decision_seconds", "decision_seconds_p50", "decision_seconds_p99", "fit_seconds"})

# One clock, nothing of the user's own (prices, profiles, captures, runs), sums that do not depend on cores.
FIXED: Mapping[str, str] = {
    "EPOCHCAST_NOW": "2026-11-17T09:00",
    "EPOCHCAST_CACHE": "off",
    "EPOCHCAST_PRICES": "no-prices",
    "EPOCHCAST_PROFILES": "no-profiles",
    "EPOCHCAST_STORE": "store.db",
    "COLUMNS": "120",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "HF_HUB_OFFLINE": "1",
}
CRASHED = 70


@dataclass(frozen=True)
class Answer:
    """The exit code of a command, its JSON (a list where it printed several objects), its message on standard error."""

    exit_code: int
    json: Any
    message: str


def fix_environment() -> None:
    """Fix what answers would otherwise depend on, for this process and those that it starts."""
    os.environ.update(FIXED)
    if hasattr(time, "tzset"):  # not on Windows
        time.tzset()


def ask(arguments: Sequence[str], folder: Path) -> Answer:
    """Run `epochcast ARGUMENTS --json` in `folder`."""
    out, err = io.StringIO(), io.StringIO()
    with _inside(folder), _called(["epochcast", *arguments, "--json"]), redirect_stdout(out), redirect_stderr(err):
        code = _exit_code()
    printed, message = (text.getvalue().replace(str(folder), "FOLDER") for text in (out, err))
    answer = _parsed(printed)
    return Answer(code, answer, "" if answer is not None and code != CRASHED else message.strip())


def without_measured(value: Any) -> Any:
    """The same JSON without keys whose values are measured."""
    match value:
        case dict():
            return {key: without_measured(inner) for key, inner in value.items() if key not in MEASURED}
        case list():
            return [without_measured(inner) for inner in value]
    return value


def _exit_code() -> int:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runpy.run_module("epochcast", run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception:
        traceback.print_exc()
        return CRASHED
    return 0


def _parsed(printed: str) -> Any:
    """One JSON object, or a list of them where there is one in each line; None where there is none."""
    try:
        lines = [json.loads(line) for line in printed.splitlines() if line.strip()]
    except json.JSONDecodeError:
        try:
            return json.loads(printed)
        except json.JSONDecodeError:
            return {"printed": printed}
    return lines[0] if len(lines) == 1 else lines or None


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _called(arguments: list[str]) -> Iterator[None]:
    before = sys.argv
    sys.argv = arguments
    try:
        yield
    finally:
        sys.argv = before
