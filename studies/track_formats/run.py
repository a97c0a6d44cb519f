"""Real training logs: which formats are recognised, and whether steps, totals and seconds agree with what happened.

    EPOCHCAST_LOGS=FOLDER python -m studies track_formats

FOLDER holds gzip logs and an `index.csv` with, per log: file, format, has_timestamps, done_at_end, announced_total,
restarts, true_total_seconds. The logs belong to others and are no part of the repository; nothing is written but the
table on the screen, failures first. A number agrees within 1 %.
"""

import csv
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from epochcast.errors import EpochcastError
from epochcast.observe.logs.log_reader import Log, read_log
from epochcast.observe.runs.report import Report
from studies.track_formats.without import own_format, reader_without

NEEDS_DATA = False
TOLERANCE = 0.01
LEAST_RECOGNISED, LEAST_AGREEING = 1.0, 0.9


@dataclass(frozen=True)
class Row:
    """One log: what was recognised, and which numbers agree."""

    file: str
    format: str
    found: str
    steps_agree: bool = False
    total_agrees: bool = False
    seconds_agree: bool = False
    restarts_agree: bool = False
    note: str = ""

    @property
    def is_right(self) -> bool:
        return self.steps_agree and self.total_agrees and self.seconds_agree


def main() -> int:
    folder = os.environ.get("EPOCHCAST_LOGS")
    if not folder or not (Path(folder) / "index.csv").is_file():
        print("EPOCHCAST_LOGS does not name a folder of logs with an index.csv: nothing to compare")
        return 0
    with (Path(folder) / "index.csv").open(encoding="utf-8") as index:
        rows = [score(Path(folder), entry) for entry in csv.DictReader(index)]
    for row in sorted(rows, key=lambda row: (row.is_right, row.format)):
        marks = [row.steps_agree, row.total_agrees, row.seconds_agree, row.restarts_agree]
        print(f"{row.format:22} {row.found:22} {' '.join('yes' if mark else 'NO ' for mark in marks)}  {row.note}")
    code = report(rows)
    report_without(Path(folder), rows)
    return code


def report_without(folder: Path, rows: Sequence[Row]) -> None:
    """Every log once more, read by all formats but its own."""
    with (folder / "index.csv").open(encoding="utf-8") as index:
        entries = {entry["file"]: entry for entry in csv.DictReader(index)}
    again = [
        score(folder, entries[row.file], reader_without(own))
        for row in rows
        if (own := own_format(row.found)) is not None
    ]
    print(f"\n{len(again)} logs without the parser of their own format:")
    read = sum(bool(row.found) for row in again)
    steps, totals, seconds = (
        sum(getattr(row, name) for row in again) for name in ("steps_agree", "total_agrees", "seconds_agree")
    )
    print(f"  {read} read, last step {steps}, announced total {totals}, seconds {seconds}")


def report(rows: Sequence[Row]) -> int:
    recognised = [row for row in rows if row.found]
    print(f"\n{len(rows)} logs, {len(recognised)} recognised; agreeing within {TOLERANCE:.0%}:")
    shares = {
        "last step": [row.steps_agree for row in rows],
        "announced total": [row.total_agrees for row in rows],
        "seconds": [row.seconds_agree for row in rows],
        "number of restarts": [row.restarts_agree for row in rows],
    }
    for what, marks in shares.items():
        print(f"  {what:20} {sum(marks)} of {len(marks)} ({sum(marks) / len(marks):.1%})")
    is_good = len(recognised) >= LEAST_RECOGNISED * len(rows)
    return 0 if is_good and all(sum(marks) >= LEAST_AGREEING * len(marks) for marks in shares.values()) else 1


def score(folder: Path, entry: dict[str, str], read: Callable[[Path], Log] = read_log) -> Row:
    try:
        log = read(folder / entry["file"])
    except EpochcastError as error:
        return Row(entry["file"], entry["format"], "", note=str(error))
    train = training(log)
    last = train[-1]
    units = [1.0, 1 / last.steps_per_epoch] if last.steps_per_epoch else [1.0]  # the index counts some logs in epochs
    done, total, seconds = (number(entry[name]) for name in ("done_at_end", "announced_total", "true_total_seconds"))
    ours_seconds = run_seconds(log, train, entry["has_timestamps"] == "absolute" or log.started_at_seconds is not None)
    ours_total = next((seen.total_steps for seen in reversed(log.reports) if seen.total_steps is not None), None)
    return Row(
        entry["file"],
        entry["format"],
        log.recognition.name,
        any(agree(last.step * unit, done, slack=1.0) for unit in units),
        total is None or any(ours_total is not None and agree(ours_total * unit, total) for unit in units),
        seconds is None or agree(ours_seconds, seconds),
        last.attempt == int(entry["restarts"]),
        f"step {last.step:g} ({done:g}), total {ours_total} ({total}), seconds {ours_seconds} ({seconds})",
    )


def training(log: Log) -> list[Report]:
    train = [seen for seen in log.reports if seen.phase == "train"]
    return [seen for seen in train if seen.rank == train[0].rank]


def run_seconds(log: Log, train: Sequence[Report], is_stamped: bool) -> float | None:
    """From the first training line to the last where they are dated; all that the log says has passed otherwise."""
    if is_stamped:
        clock = [seen.clock_seconds for seen in train if seen.clock_seconds is not None]
        return clock[-1] - clock[0] if clock else None
    clock = [
        seen.clock_seconds for seen in log.reports if seen.clock_seconds is not None and seen.phase in ("train", "end")
    ]
    return clock[-1] if clock else None


def number(text: str) -> float | None:
    return float(text) if text else None


def agree(ours: float | None, theirs: float | None, slack: float = 0.0) -> bool:
    """Within the tolerance; counts may differ by one where one side counts from 0."""
    if ours is None or theirs is None:
        return ours is None and theirs is None
    return abs(ours - theirs) <= max(TOLERANCE * abs(theirs), slack if abs(theirs) > 20 else 0.0)


if __name__ == "__main__":
    raise SystemExit(main())
