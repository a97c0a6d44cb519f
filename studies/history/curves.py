"""How many past jobs are needed until history beats the forecast: errors after learning from 10, 20, 40, … jobs.

A quarter of each source is kept back and tested. Hyper-parameters are the first of each model's table, not tuned: with
ten rows there is nothing to tune on. `curve.csv` beside this file.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from epochcast.history.curve import learning_curve
from epochcast.history.learning_set import LearningSet

RESULT = Path(__file__).with_name("curve.csv")
MODELS = ("grey_box", "forecast", "random_forest", "boosting")
COLUMNS = ("source", "jobs", "model", "mape")


@dataclass(frozen=True)
class Point:
    """A model that learned from so many jobs of a source."""

    source: str
    jobs: int
    model: str
    mape: float


def read_curves() -> list[Point]:
    """All points of the result."""
    if not RESULT.exists():
        return []
    with RESULT.open(encoding="utf-8") as stream:
        return [
            Point(row["source"], int(row["jobs"]), row["model"], float(row["mape"])) for row in csv.DictReader(stream)
        ]


def add_curve(source: str, known: LearningSet) -> None:
    """Find the points of one source; those of others stay as they are."""
    kept = [point for point in read_curves() if point.source != source]
    found = [Point(source, point.jobs, point.model, point.mape) for point in learning_curve(known, MODELS)]
    with RESULT.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        for point in sorted([*kept, *found], key=lambda point: point.source):
            writer.writerow([point.source, point.jobs, point.model, f"{point.mape:.4f}"])


def curve_section(points: Sequence[Point]) -> str:
    """For the page; empty where nothing was run."""
    if not points:
        return ""
    lines = [
        "## How many past jobs are needed",
        "",
        "MAPE on a quarter of the rows that was kept back, after learning from so many others (one draw, one set of"
        " hyper-parameters).",
        "",
        "| source | past jobs | " + " | ".join(MODELS) + " |",
        "|---|---:|" + "---:|" * len(MODELS),
    ]
    for source, jobs in dict.fromkeys((point.source, point.jobs) for point in points):
        here = {point.model: point.mape for point in points if (point.source, point.jobs) == (source, jobs)}
        cells = [f"{here[name]:.1%}".replace("%", " %") if name in here else "–" for name in MODELS]
        lines.append(f"| {source} | {jobs} | " + " | ".join(cells) + " |")
    lines += ["", *(_told(source, points) for source in dict.fromkeys(point.source for point in points)), ""]
    return "\n".join(lines)


def _told(source: str, points: Sequence[Point]) -> str:
    alone = _first(source, ("random_forest", "boosting"), points)
    together = _first(source, ("grey_box",), points)
    return (
        f"- {source}: history alone (trees) is better than the forecast times one factor from {alone} on, both together"
        f" from {together} on."
    )


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
    return "no number tried" if found is None else f"{found} jobs"
