"""The quantiles of `observe/runs/remaining_spread.toml`: fitted on logs of others and on the trainings that were run
here.

Logs are runs of minutes to days, the trainings of seconds to minutes; one table serves both, since the scale of a score
knows for how long a run was watched. Both are cut in halves, and coverage is that of each half under quantiles of the
other. What the trainings said is read from the table that `studies trainings` wrote.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import hypot, log
from pathlib import Path

import numpy as np

from studies.track.replay import PERCENTS, Case

FLOOR = 0.02
COVERAGE = 0.9
TRAININGS = Path(__file__).parents[1] / "trainings" / "result.csv"


@dataclass(frozen=True)
class Scored:
    """One answer: how far off against its scale; `of` is logs, or what told of a training: its log or callback."""

    run: str
    of: str
    format: str
    percent: int
    half: int
    score: float


@dataclass(frozen=True)
class Fitted:
    """|score| within which nine of ten lie, by percent; and coverage of each half under the other's quantiles."""

    quantiles: dict[int, float]
    coverage: dict[str, dict[int, float]]
    format_left_out: dict[int, float]
    logs: int
    trainings: int

    def held(self, of: str) -> str:
        return in_words(self.coverage[of])


def in_words(coverage: dict[int, float]) -> str:
    return ", ".join(f"{100 * share:.0f} % at {percent} %" for percent, share in coverage.items())


def usable(found: Sequence[Case]) -> list[Case]:
    """Runs without restarts that have an answer, and whose clock was read rightly."""
    return [c for c in found if c.restarts == 0 and c.doubt is not None and c.told_seconds["epochcast"] and is_open(c)]


def is_open(case: Case) -> bool:
    return case.left_seconds > 0 and not case.is_misread


def fit(found: Sequence[Case], trainings: Path = TRAININGS) -> Fitted:
    rows = [*(_of_log(case) for case in usable(found)), *_of_trainings(trainings)]
    by_half = {
        (percent, part): _quantile([row for row in rows if row.percent == percent and row.half != part])
        for percent in PERCENTS
        for part in (0, 1)
    }
    coverage = {
        of: {
            percent: float(np.mean([row.score <= by_half[percent, row.half] for row in rows_of(rows, of, percent)]))
            for percent in PERCENTS
        }
        for of in sorted({row.of for row in rows})
    }
    return Fitted(
        quantiles={percent: _quantile([row for row in rows if row.percent == percent]) for percent in PERCENTS},
        coverage=coverage,
        format_left_out={percent: _format_left_out(rows, percent) for percent in PERCENTS},
        logs=len({row.run for row in rows if row.of == "logs"}),
        trainings=len({row.run for row in rows if row.of != "logs"}),
    )


def _format_left_out(rows: Sequence[Scored], percent: int) -> float:
    """Coverage of logs under quantiles of all that are of another format."""
    here = [row for row in rows if row.percent == percent]
    limits = {name: _quantile([row for row in here if row.format != name]) for name in {row.format for row in here}}
    return float(np.mean([row.score <= limits[row.format] for row in rows_of(rows, "logs", percent)]))


def rows_of(rows: Sequence[Scored], of: str, percent: int) -> list[Scored]:
    return [row for row in rows if (row.of, row.percent) == (of, percent)]


def half(case: Case) -> int:
    """Files in two halves by their number; the same model trained twice is often in both neighbours, so in one half."""
    return int(case.log.removeprefix("L")) // 2 % 2


def _of_log(case: Case) -> Scored:
    told, doubt = case.told_seconds["epochcast"], case.doubt
    assert told is not None and doubt is not None
    return Scored(case.log, "logs", case.format, case.percent, half(case), score(case.left_seconds, told, doubt))


def _of_trainings(path: Path) -> Iterator[Scored]:
    """Runs without restarts that have an answer; every other training is of one half, by name."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    names = sorted({row["training"] for row in rows})
    for row in rows:
        told, left = row["epochcast_left_seconds"], float(row["true_seconds"]) - float(row["passed_seconds"])
        if row["restarts"] == "0" and told and float(told) > 0 and left > 0:
            off = score(left, float(told), float(row["doubt"]))
            part = names.index(row["training"]) % 2
            yield Scored(row["training"], row["source"], "", int(row["percent"]), part, off)


def score(left_seconds: float, told_seconds: float, doubt: float) -> float:
    return abs(log(left_seconds / told_seconds)) / hypot(FLOOR, doubt)


def _quantile(rows: Sequence[Scored]) -> float:
    """The finite-sample quantile of split conformal prediction: ⌈0.9·(n + 1)⌉ of n."""
    return float(np.quantile([row.score for row in rows], min(1.0, COVERAGE * (len(rows) + 1) / len(rows))))


def as_toml(fitted: Fitted) -> str:
    quantiles = [round(fitted.quantiles[percent], 2) for percent in PERCENTS]
    coverage = "; ".join(f"{of} {fitted.held(of)}" for of in fitted.coverage)
    return (
        f'source = "python -m studies track: {fitted.logs} real logs and {fitted.trainings} trainings (told by their '
        "log and by the callback) without restarts; coverage of each half under the quantiles of the other: "
        f'{coverage}"\n'
        f"floor = {FLOOR}\n"
        f"fractions = {[percent / 100 for percent in PERCENTS]}\n"
        f"low = {[-value for value in quantiles]}\n"
        f"high = {quantiles}\n"
    )
