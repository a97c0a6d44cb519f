"""How many past jobs are needed until history beats the forecast: errors after learning from 10, 20, 40, … jobs.

A quarter of each source is kept back and tested, in `DRAWS` draws. Hyper-parameters are not tuned: with ten rows there
is nothing to tune on. `curve.csv` beside this file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from epochcast.observe.history.learning_curve import learning_curve
from epochcast.observe.history.learning_set import LearningSet
from studies.history.lines import append_line, read_lines

RESULT = Path(__file__).with_name("curve.csv")
MODELS = ("grey_box", "forecast", "random_forest", "boosting")
COLUMNS = ("source", "jobs", "model", "mape")
DRAWS = 2


@dataclass(frozen=True)
class Point:
    """A model that learned from so many jobs of a source."""

    source: str
    jobs: int
    model: str
    mape: float


def read_curves(path: Path = RESULT) -> list[Point]:
    """All points of a file."""
    return read_lines(path, _point)


def _point(row: Mapping[str, str]) -> Point:
    return Point(row["source"], int(row["jobs"]), row["model"], float(row["mape"]))


def add_curve(source: str, known: LearningSet, kept: Path) -> None:
    """Find the points of one source, unless they are kept."""
    if all(point.source != source for point in read_curves(kept)):
        for point in curve_of(source, known):
            append_line(kept, COLUMNS, point)


def curve_of(source: str, known: LearningSet) -> list[Point]:
    """The mean over the draws."""
    errors: dict[tuple[int, str], list[float]] = {}
    for seed in range(DRAWS):
        for point in learning_curve(known, MODELS, seed):
            errors.setdefault((point.jobs, point.model), []).append(point.mape)
    return [Point(source, jobs, model, float(np.mean(found))) for (jobs, model), found in errors.items()]


def curve_section(points: Sequence[Point]) -> str:
    """For the page; empty where nothing was run."""
    if not points:
        return ""
    lines = [
        "## How many past jobs are needed",
        "",
        f"MAPE on a quarter of the rows that was kept back, after learning from so many others (mean of {DRAWS} draws)."
        " Hyper-parameters are not tuned here; trees predict the logarithm.",
        "",
        "| source | past jobs | " + " | ".join(MODELS) + " |",
        "|---|---:|" + "---:|" * len(MODELS),
    ]
    for source, jobs in dict.fromkeys((point.source, point.jobs) for point in points):
        here = {point.model: point.mape for point in points if (point.source, point.jobs) == (source, jobs)}
        cells = [f"{here[name]:.1%}".replace("%", " %") if name in here else "–" for name in MODELS]
        lines.append(f"| {source} | {jobs} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "From how many past jobs on it stays better than the forecast times one factor:",
        "",
        "| source | history alone (the better of the trees) | both together (grey box) |",
        "|---|---:|---:|",
        *(_told(source, points) for source in dict.fromkeys(point.source for point in points)),
        "",
    ]
    return "\n".join(lines)


def _told(source: str, points: Sequence[Point]) -> str:
    alone = _first(source, ("random_forest", "boosting"), points)
    return f"| {source} | {alone} | {_first(source, ('grey_box',), points)} |"


def _first(source: str, models: Sequence[str], points: Sequence[Point]) -> str:
    """The number of jobs from which on one of the models stays better than the forecast."""
    mine = [point for point in points if point.source == source]
    found = None
    for jobs in sorted({point.jobs for point in mine}, reverse=True):
        here = {point.model: point.mape for point in mine if point.jobs == jobs}
        tried = [here[name] for name in models if name in here]
        if not tried or min(tried) >= here["forecast"]:
            break
        found = jobs
    return "never" if found is None else str(found)
