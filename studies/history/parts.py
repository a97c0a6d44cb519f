"""Whole jobs from a part of them, on real ones: the protocol of a-GPUBench.

- **First steps**: other people's real training logs, cut where 5 and 25 % of their time had passed
  (`studies/track/replay.py`). The part says seconds per step so far; history learns by which factor that is wrong, from
  the format of the log, the number of steps and the seconds of one. Logs with restarts, and those whose clock is
  misread, are left out.
- **Loader and computation**: small trainings on a processor, each measured with its loader alone, its computation
  alone, and whole (`loader_parts.py`; `loader_parts.csv` has the seconds). No table of the public data has these.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from epochcast.observe.history.history_verbs import past_jobs
from epochcast.observe.history.job_table import Array
from epochcast.observe.history.learning_set import LearningSet
from studies.history.lines import read_lines, write_lines
from studies.history.scoring import Scorer
from studies.track.replay import Case, cases, logs, logs_folder

RESULT = Path(__file__).with_name("partial.csv")
LOADER_ROWS = Path(__file__).with_name("loader_parts.csv")
COLUMNS = ("part", "rows", "model", "mape", "median_ape", "p90_ape")
PERCENTS = (5, 25)
MODELS = ("grey_box", "forecast", "random_forest")
PART, TRACK = "the part alone", "epochcast track"


@dataclass(frozen=True)
class Partial:
    """The errors of a model that knows a part of each job."""

    part: str
    rows: int
    model: str
    mape: float
    median_ape: float
    p90_ape: float


def read_parts() -> list[Partial]:
    """What was found."""
    return read_lines(RESULT, _partial)


def _partial(row: Mapping[str, str]) -> Partial:
    errors = (float(row[name]) for name in ("mape", "median_ape", "p90_ape"))
    return Partial(row["part"], int(row["rows"]), row["model"], *errors)


def add_parts() -> None:
    """Score all, and write."""
    found: list[Partial] = []
    rows = log_rows(logs_folder())
    if not rows:
        print(
            "no training logs: EPOCHCAST_LOGS names the folder that has them; what was found before stays", flush=True
        )
        return
    for percent in PERCENTS:
        mine = [row for row in rows if row["percent"] == percent]
        tracked = np.array([row["track_seconds"] for row in mine])
        table = [{name: row[name] for name in row if name not in ("percent", "track_seconds")} for row in mine]
        found += _scored(f"first steps, {percent} % of the time", table, "total_seconds", tracked)
    with LOADER_ROWS.open(encoding="utf-8", newline="") as stream:
        measured = [{**row} for row in csv.DictReader(stream)]
    found += _scored("loader alone and computation alone", measured, "step_seconds", None)
    write_lines(RESULT, COLUMNS, found)


def log_rows(folder: Path) -> list[dict[str, Any]]:
    """A row for each log and cut; none where the folder has no logs."""
    return list(_log_rows(folder)) if (folder / "index.csv").exists() else []


def _log_rows(folder: Path) -> Iterator[dict[str, Any]]:
    for log in logs(folder):
        for case in cases(log):
            so_far = case.told_seconds["mean so far"]
            if so_far is None or not _is_asked(case):
                continue
            steps = max(one.step for one in log.seen if one.phase == "train")
            whole, ours = case.passed_seconds + so_far, case.told_seconds["epochcast"]
            yield {
                "percent": case.percent,
                "track_seconds": np.nan if ours is None else case.passed_seconds + ours,
                "format": case.format,
                "steps": steps,
                "first_steps": steps * case.passed_seconds / whole,
                "first_steps_seconds": case.passed_seconds,
                "total_seconds": case.true_seconds,
            }


def _is_asked(case: Case) -> bool:
    """Whether the part of a run that went through says something of the whole."""
    is_whole = case.asked == "end" and not case.restarts and not case.is_misread
    return is_whole and case.percent in PERCENTS and case.passed_seconds > 0


def _scored(part: str, rows: Sequence[Mapping[str, Any]], target: str, tracked: Array | None) -> list[Partial]:
    """Every model in five random parts; the part itself and the tracker, which learn nothing from other jobs."""
    frame = pl.DataFrame([_typed(row) for row in rows])
    known = past_jobs(frame, target)
    assert known.jobs.physics is not None
    found = [_of(part, PART, known, known.jobs.physics.values)]
    if tracked is not None:
        found.append(_of(part, TRACK, known, tracked))
    scorer = Scorer(part, known)
    for name in MODELS:
        tested = scorer.tested("random", name)
        whole = np.full(len(known), np.nan)
        whole[tested.rows] = tested.mid
        found.append(_of(part, name, known, whole))
    return found


def _typed(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _number(value) for name, value in row.items()}


def _number(value: Any) -> Any:
    try:
        return float(value)
    except ValueError:
        return value


def _of(part: str, model: str, known: LearningSet, predicted: Array) -> Partial:
    errors = np.abs(predicted / known.target - 1)
    errors = errors[np.isfinite(errors)]
    figures = (float(errors.mean()), float(np.median(errors)), float(np.quantile(errors, 0.9)))
    return Partial(part, len(errors), model, *figures)


def parts_section(found: Sequence[Partial]) -> str:
    """For the page; empty where nothing was run."""
    if not found:
        return ""
    lines = [
        "## From a part of the job",
        "",
        "Mean error (and median) of the whole, in five random parts. *The part alone* is the part times its number, and"
        " learns from no other job; *forecast* is that times one factor, which it learns; *epochcast track* is the"
        " tracker at the same moment. First steps: real logs of other people's trainings. Loader and computation: small"
        " trainings on two slow cores that others used as well, measured by us.",
        "",
    ]
    models = list(dict.fromkeys([PART, TRACK, *(one.model for one in found)]))
    lines += ["| part | jobs | " + " | ".join(models) + " |", "|---|---:|" + "---:|" * len(models)]
    for part in dict.fromkeys(one.part for one in found):
        here = {one.model: one for one in found if one.part == part}
        cells = [_cell(here.get(name)) for name in models]
        lines.append(f"| {part} | {max(one.rows for one in here.values())} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def _cell(one: Partial | None) -> str:
    return "–" if one is None else f"{one.mape:.1%} ({one.median_ape:.1%})".replace("%", " %")
