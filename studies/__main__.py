"""`make studies`: runs the `main()` of every studies/NAME/run.py, prints a summary, fails where one fails.

    python -m studies [NAME …]

A study reads measurements, unless its module says `NEEDS_DATA = False`: it is skipped, with the reason, where
EPOCHCAST_DATA names no folder. One that says `BY_HAND = True` takes hours and is only run when named.
"""

import argparse
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

STUDIES = Path(__file__).parent


@dataclass(frozen=True)
class Outcome:
    """The result of one study."""

    name: str
    verdict: str
    seconds: float = 0.0
    reason: str = ""


def names() -> list[str]:
    """Every folder with a run.py; `accuracy` reads what the others found, so it is last."""
    study_names = (path.parent.name for path in STUDIES.glob("*/run.py"))
    return sorted(study_names, key=lambda name: (name == "accuracy", name))


def run(name: str, *, is_named: bool) -> Outcome:
    """Run one study; the outcome says why where it was not run."""
    start = time.perf_counter()
    try:
        module = import_module(f"studies.{name}.run")
        if getattr(module, "BY_HAND", False) and not is_named:
            return Outcome(name, "skipped", reason=f"takes long; run it with: python -m studies {name}")
        data = os.environ.get("EPOCHCAST_DATA")
        if getattr(module, "NEEDS_DATA", True) and not (data and Path(data).is_dir()):
            return Outcome(name, "skipped", reason="EPOCHCAST_DATA does not name the folder of measurements")
        code = _without_arguments(module.main, f"studies.{name}.run")
    except Exception:
        traceback.print_exc()
        return Outcome(name, "FAILED", time.perf_counter() - start, "an error, above")
    verdict = "FAILED" if code else "passed"
    return Outcome(name, verdict, time.perf_counter() - start, f"main() returned {code}" if code else "")


def _without_arguments(study: Callable[[], int | None], program: str) -> int | None:
    """A study may read arguments of its own; those of this program are not meant for it."""
    given = sys.argv
    sys.argv = [program]
    try:
        return study()
    finally:
        sys.argv = given


def main(arguments: Sequence[str]) -> int:
    """Run all, or those named; 1 where one fails."""
    parser = argparse.ArgumentParser(prog="python -m studies", description="Scores the forecasts.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(names())}")
    wanted = parser.parse_args(arguments).names
    if unknown := sorted(set(wanted) - set(names())):
        parser.error(f"no study called {', '.join(unknown)}; known: {', '.join(names())}")
    outcomes = []
    for name in wanted or names():
        print(f"== {name}", flush=True)
        outcomes.append(run(name, is_named=bool(wanted)))
        print(flush=True)
    for outcome in outcomes:
        print(f"{outcome.name:20} {outcome.verdict:8} {outcome.seconds:7.1f} s  {outcome.reason}".rstrip())
    return int(any(outcome.verdict == "FAILED" for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
