"""What the study found, as lines of files."""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from epochcast.observe.history.history_compare import Tested

RESULT = Path(__file__).with_name("result.csv")
SOURCES = Path(__file__).with_name("sources.csv")
COLUMNS = ("source", "split", "rows", "model", "n", "mape", "median_ape", "p90_ape", "coverage", "reason")
SOURCES_COLUMNS = ("table", "source", "timed", "rows", "forecast", "left_out", "is_trained", "reason")

T = TypeVar("T")


@dataclass(frozen=True)
class Line:
    """One model on one split of one source; `mape` None where it could not be fitted, for a `reason`."""

    source: str
    split: str
    rows: int
    model: str
    n: int
    mape: float | None
    median_ape: float | None
    p90_ape: float | None
    coverage: float | None
    reason: str = ""

    @classmethod
    def of(cls, source: str, split: str, rows: int, model: str, tested: Tested) -> "Line":
        """What a model predicted."""
        s = tested.scores
        errors = (s.mape, s.median_ape, s.p90_ape, s.coverage)
        return cls(source, split, rows, model, s.n, *errors, tested.reason or "")

    @property
    def without_intervals(self) -> "Line":
        """Of a model that was asked for none."""
        return replace(self, coverage=None)

    @property
    def told(self) -> str:
        """On one line."""
        error = self.reason if self.mape is None else f"{self.mape:.1%} (median {self.median_ape:.1%})"
        return f"{self.source:24} {self.split:10} {self.model:14} {error}"


def line_of(row: Mapping[str, str]) -> Line:
    """Of a row of a file."""
    names = ("mape", "median_ape", "p90_ape", "coverage")
    mape, median, p90, coverage = (float(row[name]) if row[name] else None for name in names)
    counts = int(row["rows"]), int(row["n"])
    return Line(
        row["source"], row["split"], counts[0], row["model"], counts[1], mape, median, p90, coverage, row["reason"]
    )


@dataclass(frozen=True)
class Used:
    """What was used of a source: rows that were timed, those learned from and tested, how many of them have a forecast,
    and how many were left out. `reason` where none was used.
    """

    table: str
    source: str
    timed: int
    rows: int
    forecast: int
    left_out: int
    is_trained: bool
    reason: str

    @classmethod
    def of(cls, row: Mapping[str, str]) -> "Used":
        """Of a row of a file."""
        timed, rows, forecast, left_out = (int(row[name]) for name in ("timed", "rows", "forecast", "left_out"))
        is_trained = row["is_trained"] == "True"
        return cls(row["table"], row["source"], timed, rows, forecast, left_out, is_trained, row["reason"])


def read_lines(path: Path, make: Callable[[Mapping[str, str]], T]) -> list[T]:
    """All lines of a file; none where there is no file. A line that was not written to its end is none."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as stream:
        return [make(row) for row in csv.DictReader(stream) if None not in row.values()]


def append_line(path: Path, columns: Sequence[str], line: Any) -> None:
    """One more line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        if is_new:
            writer.writerow(columns)
        writer.writerow(_cells(columns, line))


def write_lines(path: Path, columns: Sequence[str], lines: Sequence[Any]) -> None:
    """All lines of a file anew."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(_cells(columns, line) for line in lines)


def _cells(columns: Sequence[str], line: Any) -> list[Any]:
    values = asdict(line)
    return [f"{v:.4f}" if isinstance(v := values[name], float) else v for name in columns]


def percent(share: float | None) -> str:
    """As the pages write it; a dash where nothing is known."""
    return "–" if share is None else f"{share:.1%}".replace("%", " %")
