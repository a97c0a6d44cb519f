"""Real logs, cut where 1, 5, 10, 25 and 50 % of their time had passed, asked when they will end. Rivals ask likewise.

Every log is fed as bytes up to each cut, as `epochcast track` would have seen it then. The number of steps is
given, to all alike: announced totals mislead (stopped early, at a target), and that is no question of time.

A log with restarts is asked three times. *To the end of the file*: time between attempts and all later attempts are in
the truth, and nobody can know them at 10 %. *Work*: the steps still to be made, replayed ones and those of later
attempts among them, are given as they are to runs without restarts, and time between attempts is left out of the truth.
*Attempt*: when will the attempt under way have made its steps, asked at 1 to 50 % of each attempt (`attempts`).
"""

import csv
import gzip
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Literal

from epochcast.errors import EpochcastError
from epochcast.observe.logs.log_reader import LogReader
from epochcast.observe.runs.remaining_time import doubt_of, remaining
from epochcast.observe.runs.report import Report
from epochcast.observe.runs.run_history import History

PERCENTS = (1, 5, 10, 25, 50)
WINDOW = 20
Reports = Sequence[tuple[float, float]]
Asked = Literal["end", "work", "attempt"]


@dataclass(frozen=True)
class Case:
    """One log at one cut: the true total and what each method says; None where a method says nothing."""

    log: str
    format: str
    percent: int
    restarts: int
    true_seconds: float
    passed_seconds: float
    told_seconds: Mapping[str, float | None]
    low_seconds: float | None
    high_seconds: float | None
    asked: Asked
    doubt: float | None
    fraction: float | None
    read_seconds: float
    """What the log's own clock says from its first report to its last; far from the truth where it was misread."""

    def error(self, method: str) -> float | None:
        """(told total / true total) − 1."""
        told = self.told_seconds[method]
        return None if told is None else (self.passed_seconds + told) / self.true_seconds - 1

    @property
    def left_seconds(self) -> float:
        return self.true_seconds - self.passed_seconds

    @property
    def is_misread(self) -> bool:
        """Whether the clock that was read is off by a quarter or more: no question of what is still to come."""
        return abs(self.read_seconds / self.true_seconds - 1) > 0.25

    @property
    def is_inside(self) -> bool | None:
        if self.low_seconds is None or self.high_seconds is None:
            return None
        return self.low_seconds <= self.left_seconds <= self.high_seconds


def logs_folder() -> Path:
    """The folder of logs: beside the data, or EPOCHCAST_LOGS."""
    return Path(os.environ.get("EPOCHCAST_LOGS") or Path(os.environ["EPOCHCAST_DATA"]).parent / "logs")


@dataclass(frozen=True)
class Log:
    """One log of the index: what was read of it, and how many of its reports were known at each cut."""

    row: Mapping[str, str]
    seen: Sequence[Report]
    known: Mapping[int, int]


def logs(folder: Path, only: Callable[[str], bool] = lambda _: True) -> Iterator[Log]:
    """Every log of the index that has a clock. Bytes are fed once, up to each cut."""
    with (folder / "index.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["true_total_seconds"] and row["t_at_50"]]
    for row in rows:
        if only(row["id"]):
            yield read(row, gzip.decompress((folder / row["file"]).read_bytes()))


def read(row: Mapping[str, str], data: bytes) -> Log:
    cuts = {
        percent: int(row[f"cut_bytes_{percent}"])
        for percent in PERCENTS
        if row[f"cut_bytes_{percent}"] and row[f"t_at_{percent}"]
    }
    reader, position = LogReader(), 0
    seen: list[Report] = []
    known: dict[int, int] = {}
    for percent, cut in cuts.items():
        seen += [*reader.feed(data[position:cut]), *reader.flush()]
        position, known[percent] = cut, len(seen)
    seen += [*reader.feed(data[position:]), *reader.close()]
    return Log(row, seen, known)


def cases(log: Log) -> Iterator[Case]:
    """A log at every cut; what was seen until then is all that an answer there knows."""
    row, seen = log.row, log.seen
    training = [one for one in seen if one.phase == "train"]
    if not training:
        return
    total_steps = max(one.step for one in training if one.attempt == training[-1].attempt)
    clocks = [one.clock_seconds for one in training if one.clock_seconds is not None]
    read_seconds = clocks[-1] - clocks[0] if clocks else 0.0
    whole = _history(seen)
    history, position = History(), 0
    for percent, count in log.known.items():
        for one in seen[position:count]:
            history.add(one)
        position = count
        end = End(float(row["true_total_seconds"]), float(row[f"t_at_{percent}"]), total_steps, read_seconds)
        yield case_at(row, percent, seen[:count], history, end)
        if whole.restarts and int(row["restarts"]):
            total_steps_left = whole.executed_steps - history.executed_steps
            end = End(_worked(whole), _worked(history), history.step + total_steps_left, _worked(whole), "work")
            yield case_at(row, percent, seen[:count], history, end)


def _history(seen: Sequence[Report]) -> History:
    history = History()
    for one in seen:
        history.add(one)
    return history


def _worked(history: History) -> float:
    return history.elapsed_seconds - history.down_seconds - history.start_seconds


@dataclass(frozen=True)
class End:
    """What is asked for: when the total has passed, or the time of steps alone: of all attempts, of the present one."""

    true_seconds: float
    passed_seconds: float
    total_steps: float
    read_seconds: float
    asked: Asked = "end"


def case_at(row: Mapping[str, str], percent: int, seen: Sequence[Report], history: History, end: End) -> Case:
    """What each method says from what was seen."""
    reports, total_steps = _reports(seen), end.total_steps
    told = {name: rival(reports, total_steps) for name, rival in RIVALS.items()}
    told["log's ETA"] = _own_eta(seen, total_steps) if row["eta_scope"] == "run" else None
    low = high = doubt = fraction = ours = None
    try:
        told_now = remaining(history, total_steps)
        left = told_now.remaining_seconds
        ours = left.mid - (0.0 if end.asked == "end" else told_now.interrupted_seconds)
        low, high = left.low, left.high
        doubt, fraction = doubt_of(history, total_steps), min(1.0, history.step / total_steps)
    except EpochcastError:
        pass  # no step was timed yet
    return Case(
        log=row["id"],
        format=row["format"],
        percent=percent,
        restarts=int(row["restarts"]),
        true_seconds=end.true_seconds,
        passed_seconds=end.passed_seconds,
        asked=end.asked,
        told_seconds={"epochcast": ours, **told},
        low_seconds=low,
        high_seconds=high,
        doubt=doubt,
        fraction=fraction,
        read_seconds=end.read_seconds,
    )


def _reports(seen: Sequence[Report]) -> list[tuple[float, float]]:
    """(step, clock) of the training reports of the last attempt, growing in both."""
    found: list[tuple[float, float]] = []
    timed = [one for one in seen if one.phase == "train" and one.clock_seconds is not None]
    for one in timed:
        assert one.clock_seconds is not None
        if one.attempt != timed[-1].attempt or one.rank != timed[0].rank:
            continue
        if found and (one.step <= found[-1][0] or one.clock_seconds < found[-1][1]):
            continue
        found.append((one.step, one.clock_seconds))
    return found


def _own_eta(seen: Sequence[Report], total_steps: float) -> float | None:
    """What the last line expects, for the steps that there really are where it expects another number of them."""
    told = [one for one in seen if one.phase == "train" and one.remaining_seconds is not None]
    if not told or told[-1].remaining_seconds is None:
        return None
    announced = (told[-1].total_steps or total_steps) - told[-1].step
    return told[-1].remaining_seconds * (max(0.0, total_steps - told[-1].step) / announced if announced > 0 else 1.0)


def _rival(pace: Callable[[list[float], list[float]], float]) -> Callable[[Reports, float], float | None]:
    def told(reports: Reports, total_steps: float) -> float | None:
        if len(reports) < 2:
            return None
        steps = [b[0] - a[0] for a, b in itertools.pairwise(reports)]
        seconds = [b[1] - a[1] for a, b in itertools.pairwise(reports)]
        return pace(steps, seconds) * max(0.0, total_steps - reports[-1][0])

    return told


def _mean(steps: list[float], seconds: list[float]) -> float:
    return sum(seconds) / sum(steps)


def _ema(steps: list[float], seconds: list[float]) -> float:
    """tqdm's: both are smoothed by 0.3, and divided."""
    smooth_steps = smooth_seconds = 0.0
    for one, other in zip(steps, seconds, strict=True):
        smooth_steps, smooth_seconds = 0.3 * one + 0.7 * smooth_steps, 0.3 * other + 0.7 * smooth_seconds
    return smooth_seconds / smooth_steps


RIVALS: Mapping[str, Callable[[Reports, float], float | None]] = {
    "tqdm's EMA": _rival(_ema),
    "mean so far": _rival(_mean),
    "window mean": _rival(lambda steps, seconds: _mean(steps[-WINDOW:], seconds[-WINDOW:])),
    "window median": _rival(
        lambda steps, seconds: median(b / a for a, b in zip(steps[-WINDOW:], seconds[-WINDOW:], strict=True))
    ),
}
