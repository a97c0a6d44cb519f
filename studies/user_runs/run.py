"""Trainings that people timed, each asked as they would type it: `python -m studies user_runs`.

`python -m studies.user_runs.run user_runs` asks the rows of that table alone and keeps those of the other.

Prints the command of every row of `user_runs`, with its forecast ÷ what was measured. Writes docs/user-runs.md and
docs/accuracy/user_runs.csv. YOLO is asked where ultralytics is installed, and refused elsewhere, as for any user.
Returns 1 where fewer rows than LEAST_ASKED can be asked or fewer intervals than LEAST_HOLDS hold.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from studies.user_runs.page import Figures, asked_fraction, page, time_of
from studies.user_runs.rows_file import read_rows, rows_csv
from studies.user_runs.scored_runs import USERS, ScoredRun, scored_runs, tables

DOCS = Path(__file__).parents[2] / "docs"
PAGE, ROWS = DOCS / "user-runs.md", DOCS / "accuracy" / "user_runs.csv"
LEAST_ASKED, LEAST_HOLDS = 0.6, 0.7
BY_HAND = True  # some thousand rows with their memory take half an hour


def main() -> int:
    folder, wanted = Path(os.environ["EPOCHCAST_DATA"]), sys.argv[1:]
    before = read_rows(ROWS.read_text(encoding="utf-8")) if ROWS.exists() else []
    scored: dict[str, Sequence[ScoredRun]] = {}
    for name, table in tables(folder):
        if wanted and name not in wanted:
            scored[name] = [run for run in before if run.table == name]
        else:
            scored[name] = [run for run in scored_runs(name, table) if not run.is_doubtful]
        if scored[name]:
            print(f"{name}: {len(scored[name])} rows, {asked_fraction(scored[name]):.0%} asked", flush=True)
    print("\n".join(_lines(scored[USERS])))
    write({name: runs for name, runs in scored.items() if runs})
    is_good = asked_fraction(scored[USERS]) >= LEAST_ASKED and Figures.of(scored[USERS], time_of).holds >= LEAST_HOLDS
    return int(not is_good)


def write(scored: Mapping[str, Sequence[ScoredRun]]) -> None:
    """The page, and the file of all rows."""
    PAGE.write_text(page(scored), encoding="utf-8")
    ROWS.write_text(rows_csv(_all(scored)), encoding="utf-8")


def _all(scored: Mapping[str, Sequence[ScoredRun]]) -> Iterator[ScoredRun]:
    for runs in scored.values():
        yield from runs


def _lines(runs: Sequence[ScoredRun]) -> Iterator[str]:
    """A line per row: its ratios and its command, or why it was refused."""
    for run in runs:
        ratios = " ".join(
            f"{what} {ratio.mid:.2f} ({ratio.low:.2f} … {ratio.high:.2f})"
            for what, ratio in (("time", run.time), ("memory", run.memory))
            if ratio is not None
        )
        answer = f"{ratios or 'nothing to compare with'}  {run.command}"
        yield f"{run.row}  {run.refused or answer}"


if __name__ == "__main__":
    sys.exit(main())
