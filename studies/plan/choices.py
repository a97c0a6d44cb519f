"""Choices that measurements decide: one network, measured alike on several kinds or numbers of GPUs.

A *choice* is everything that one source measured of a network with the same precision, mode, layout, software and batch
per GPU; its *options* are the places (device, GPUs, nodes). An option that was measured several times has the median.
The fastest takes the least seconds per sample, the cheapest the least dollars per sample at the shipped prices; without
a price an option does not count for the cheapest.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean, median
from typing import Any

from epochcast.hardware.price import price_dollars_per_hour
from epochcast.interval import Interval
from epochcast.measure.evaluate.evaluate_runs import forecast_runs
from epochcast.measure.tables.run_table import MeasuredRun, read_runs
from epochcast.predict.cost.cost_model import CostModel

Key = tuple[str, ...]
Rows = list[dict[str, Any]]
Place = tuple[str, int, int]


@dataclass(frozen=True)
class Option:
    """A place: measured and forecast seconds per sample, and its price where there is one."""

    place: Place
    measured: float
    forecast: Interval
    dollars_per_hour: float | None

    @property
    def label(self) -> str:
        """8 × A100-SXM4-40GB"""
        device, gpus, nodes = self.place
        return f"{gpus} × {device}" + (f" in {nodes} nodes" if nodes > 1 else "")


@dataclass(frozen=True)
class Choice:
    """One network and its options. `kind` is what differs: the device, the number of GPUs, or both."""

    key: Key
    options: tuple[Option, ...]

    @property
    def source(self) -> str:
        """Who measured."""
        return self.key[0]

    @property
    def model(self) -> str:
        """The network."""
        return self.key[1]

    @property
    def kind(self) -> str:
        """What differs between its options."""
        devices = {one.place[0] for one in self.options}
        counts = {one.place[1] for one in self.options}
        if len(devices) > 1 and len(counts) > 1:
            return "both"
        return "device" if len(devices) > 1 else "number of GPUs"

    def priced(self) -> "Choice | None":
        """With the options that have a price; None where fewer than two have."""
        kept = tuple(one for one in self.options if one.dollars_per_hour is not None)
        return Choice(self.key, kept) if len(kept) > 1 else None


@dataclass(frozen=True)
class Verdict:
    """What was picked against what is best; `excess` is by how much the picks cost (or take) more. Options with equal
    forecasts are one pick: any of them might be taken.
    """

    choice: Choice
    picked: Option
    best: Option
    excesses: tuple[float, ...]

    @property
    def excess(self) -> float:
        """On average over equal picks."""
        return fmean(self.excesses)

    def right(self, within: float = 0.0) -> float:
        """The part of equal picks that is the best, or no more than `within` above it."""
        return fmean(one <= within + 1e-12 for one in self.excesses)


def judged(choice: Choice, goal: str, told: Callable[[Interval], float] = lambda forecast: forecast.mid) -> Verdict:
    """The option of the least forecast value, measured; `told` is what counts of a forecast."""

    def value(one: Option, seconds: float) -> float:
        return seconds * (one.dollars_per_hour or 0.0) if goal == "cheapest" else seconds

    least = min(value(one, told(one.forecast)) for one in choice.options)
    picked = [one for one in choice.options if value(one, told(one.forecast)) <= least * (1 + 1e-9)]
    best = min(choice.options, key=lambda one: value(one, one.measured))
    excesses = tuple(value(one, one.measured) / value(best, best.measured) - 1 for one in picked)
    return Verdict(choice, picked[0], best, excesses)


def choices(rows: Rows, cost_model: CostModel) -> list[Choice]:
    """The choices of a table; only rows that take part in one are forecast."""
    runs, _ = read_runs(rows)
    grouped: dict[Key, list[MeasuredRun]] = defaultdict(list)
    for run in runs:
        grouped[_key(run, rows)].append(run)
    taking_part = [run for group in grouped.values() if len({_place(run) for run in group}) > 1 for run in group]
    wanted = [run.row_index for run in taking_part]
    answered = forecast_runs([rows[index] for index in wanted], cost_model)
    forecast = {
        index: Interval(
            float(answered.low_seconds[place]), float(answered.mid_seconds[place]), float(answered.high_seconds[place])
        )
        for place, index in enumerate(wanted)
        if answered.is_forecast[place]
    }
    found = []
    for key, group in grouped.items():
        options = _options([run for run in group if run.row_index in forecast], forecast)
        if len(options) > 1:
            found.append(Choice(key, options))
    return found


def left_out_choices(rows: Rows, ratios: Callable[[MeasuredRun], float | None], split: str) -> list[Choice]:
    """The same for one GPU, where the forecast is the measured time times what a model was off that had not seen it."""
    runs, _ = read_runs(rows)
    grouped: dict[Key, list[tuple[MeasuredRun, float]]] = defaultdict(list)
    for run in runs:
        ratio = ratios(run) if run.gpus == 1 else None
        if ratio is not None:
            grouped[(*_key(run, rows), split)].append((run, ratio))
    found = []
    for key, group in grouped.items():
        forecast = {run.row_index: Interval.exact(run.step_seconds * ratio) for run, ratio in group}
        options = _options([run for run, _ in group], forecast)
        if len(options) > 1:
            found.append(Choice(key, options))
    return found


def _options(runs: Sequence[MeasuredRun], forecast: dict[int, Interval]) -> tuple[Option, ...]:
    by_place: dict[Place, list[MeasuredRun]] = defaultdict(list)
    for run in runs:
        by_place[_place(run)].append(run)
    return tuple(_option(place, same, forecast) for place, same in sorted(by_place.items()))


def _option(place: Place, same: Sequence[MeasuredRun], forecast: dict[int, Interval]) -> Option:
    device, gpus, nodes = place
    samples = (same[0].job.batch or 1) * gpus
    price = price_dollars_per_hour(device, gpus, nodes)
    middle = sorted(same, key=lambda run: run.step_seconds)[len(same) // 2]
    return Option(
        place,
        median(run.step_seconds for run in same) / samples,
        forecast[middle.row_index].scaled(1 / samples),
        None if price is None else price[0],
    )


def _place(run: MeasuredRun) -> Place:
    return run.device.name, run.gpus, run.nodes


def _key(run: MeasuredRun, rows: Rows) -> Key:
    """What must be alike; the version of the software as the source writes it (cuDNN's with old frameworks)."""
    job, version = run.job, str(rows[run.row_index].get("framework_version"))
    return (
        *(run.source, run.model, str(run.input_shape), job.precision, job.mode, str(job.channels_last)),
        *(run.framework, version, job.optimizer, str(job.batch), str(job.accumulate), job.compile),
        *(run.data, run.strategy or "", str(job.checkpointing)),
    )


def share_right(verdicts: Sequence[Verdict], within: float = 0.0) -> float:
    """How often the pick is the best, or no more than `within` above it."""
    return fmean(one.right(within) for one in verdicts)


def mean_excess(verdicts: Sequence[Verdict]) -> float:
    """By how much the picks are above the best on average."""
    return fmean(one.excess for one in verdicts)


def by_chance(choices: Iterable[Choice], goal: str) -> tuple[float, float]:
    """The same two of a pick at random."""
    right, excess = [], []
    for one in choices:
        values = [each.measured * ((each.dollars_per_hour or 0.0) if goal == "cheapest" else 1) for each in one.options]
        right.append(1 / len(values))
        excess.append(fmean(values) / min(values) - 1)
    return fmean(right), fmean(excess)


def correlation(found: Iterable[Choice], *, same_device: bool) -> tuple[float, int]:
    """How much two options share of their errors, ln(forecast/measured): 1 − Var(difference)/2Var, over all pairs on
    one device or on two.
    """
    errors: list[float] = []
    differences: list[float] = []
    for choice in found:
        logs = [(one.place[0], log(one.forecast.mid / one.measured)) for one in choice.options]
        errors += [error for _, error in logs]
        pairs = [(a, b) for i, a in enumerate(logs) for b in logs[i + 1 :] if (a[0] == b[0]) == same_device]
        # Every choice counts once, however many options it has.
        if pairs:
            differences.append(fmean((a[1] - b[1]) ** 2 for a, b in pairs))
    if not differences:
        return 0.0, 0
    mean = fmean(errors)
    spread = fmean((error - mean) ** 2 for error in errors)
    return 1 - fmean(differences) / (2 * spread), len(differences)


def geometric(values: Sequence[float]) -> float:
    """Their geometric mean."""
    return exp(fmean(log(value) for value in values))
