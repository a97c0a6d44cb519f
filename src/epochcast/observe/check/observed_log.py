"""The speed of a run in its log, be it one pasted bar: the parsers of `observe.logs` read it.

The pace is the median over spans of steps, without start-up and pauses; those become signs of their own. Its interval
is that of a median, ±1.645 · 1.2533 · σ/√n with σ from the quartiles, and holds what the last line prints as well where
the log is a single line. A log that counts nothing but epochs gives seconds per epoch.
"""

from collections.abc import Iterable
from dataclasses import replace
from math import sqrt
from pathlib import Path
from statistics import median

import numpy as np

from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.observe.check.observation import EPOCH, LOG, STEP, Observation, RunSigns
from epochcast.observe.logs.log_reader import LogReader, read_log
from epochcast.observe.runs.report import Report
from epochcast.observe.runs.report_spans import Spans, find_pauses, start_spans, weighted_median
from epochcast.observe.runs.run_history import History

# Of the standard error of a median over that of a mean, and of 90 % of a normal distribution.
_MEDIAN, _NINETY = 1.2533, 1.645
_QUARTILES_OF_SIGMA = 1.349
# A printed time is known to half a percent: most loggers give three digits.
_PRINTED = 0.005
# Fewer spans say nothing of start-up and pauses.
_LEAST_SPANS = 3


def observed_file(path: Path) -> Observation:
    """The speed in a file."""
    return observed_reports(read_log(path).reports, str(path))


def observed_text(text: str, name: str) -> Observation:
    """The speed in pasted lines."""
    reader = LogReader()
    reports = [*reader.feed(f"{text}\n".encode()), *reader.close()]
    if not any(report.phase == "train" for report in reports):
        raise BadInput(f"{name} has no line that reports training: paste a progress bar, lines of a log, or a speed")
    return observed_reports(reports, name)


def observed_reports(reports: Iterable[Report], name: str) -> Observation:
    """The speed that reports of a run come to."""
    history, last = History(), None
    for report in reports:
        history.add(report)
        last = report if report.phase == "train" else last
    if last is None:
        raise BadInput(f"{name} reports no training")
    unit = EPOCH if last.epoch is not None and last.epoch == last.step and last.total_steps is None else STEP
    seconds, signs = _pace(history, last, name)
    if len(history.rank_seconds) > 1:  # where ranks time their own work, a step takes as long as the slowest
        seconds = seconds.scaled(max(1.0, max(history.rank_seconds.values()) / seconds.mid))
    return Observation(name, seconds, unit, LOG, signs=replace(signs, steps=last.step if unit == STEP else None))


def _pace(history: History, last: Report, name: str) -> tuple[Interval, RunSigns]:
    signs = RunSigns(data_fraction=history.data_fraction, rank_factor=_rank_factor(history))
    spans = history.spans()
    is_timed = len(spans) > 0 and spans.seconds.sum() > 0
    if is_timed and len(spans) >= _LEAST_SPANS:
        return _steady(spans, signs)
    printed = history.printed_step_seconds
    mean = _mean_seconds(spans if is_timed else None, last)
    each = sorted(value for value in (printed, mean) if value)
    if not each:
        raise BadInput(f"{name} has no times: no date, no seconds of a step, no steps per second")
    middle = printed or each[0]
    return Interval(each[0] * (1 - _PRINTED), middle, each[-1] * (1 + _PRINTED)), signs


def _mean_seconds(spans: Spans | None, last: Report) -> float | None:
    """Of few spans, or of a bar that was seen once: its time over its steps."""
    if spans is not None:
        return float(spans.seconds.sum() / spans.steps.sum())
    steps = last.step if last.steps_per_epoch is None else (last.step % last.steps_per_epoch or last.steps_per_epoch)
    return last.clock_seconds / steps if last.clock_seconds and steps else None


def _steady(spans: Spans, signs: RunSigns) -> tuple[Interval, RunSigns]:
    """The pace of the spans behind start-up, and what start-up and pauses took."""
    start = start_spans(spans)
    steady = spans.after(start)
    pauses = find_pauses(steady)
    pace = (steady.seconds - pauses.span_seconds) / steady.steps
    middle = weighted_median(pace, steady.steps)
    low, high = np.quantile(pace, (0.25, 0.75))
    half = _NINETY * _MEDIAN * float(high - low) / _QUARTILES_OF_SIGMA / sqrt(len(pace))
    known_seconds = sum(pause.seconds for pause in steady.known_pauses)
    paused_seconds = float(pauses.span_seconds.sum()) + known_seconds
    all_seconds = float(steady.seconds.sum()) + known_seconds
    first = float(spans.seconds[:start].sum() / spans.steps[:start].sum()) if start else middle
    half = min(max(half, _PRINTED * middle), middle / 2)
    signs = replace(signs, pause_fraction=paused_seconds / all_seconds, first_factor=max(1.0, first / middle))
    return Interval(middle - half, middle, middle + half), signs


def _rank_factor(history: History) -> float | None:
    """The slowest rank over the median of the others; None where fewer than two report."""
    *others, slowest = sorted(history.rank_seconds.values()) or [0.0]
    return slowest / median(others) if others else None
