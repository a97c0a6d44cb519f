"""Steps on several GPUs forecast from nothing: no measured step of one GPU is given.

Of every source at most `MOST` rows are asked, evenly spaced in its table. Beside ours stands the bare roofline with
perfect scaling: the longer of flops / peak and bytes / bandwidth of every op, summed, whatever the number of GPUs; of a
model that several GPUs share, the part of one.
Where a row of one GPU was measured too, our error of that and ours once it is given are beside: what is one GPU's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from epochcast.describe.capture.resolve import find_model
from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.trace import PHASES
from epochcast.interval import Interval
from epochcast.measure.evaluate.evaluate_runs import RunForecast, forecast_group
from epochcast.measure.evaluate.given_single import MeasuredSingle, SingleSteps
from epochcast.measure.evaluate.refusals import refusals
from epochcast.measure.tables.run_placement import run_placement
from epochcast.measure.tables.run_table import MeasuredRun, read_runs
from epochcast.measure.tables.table_files import read_table
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.cost.roofline import Roofline

SOURCES = ("nvidia_dle", "pollux_osdi21", "tf_benchmarks_2017", "mlperf_training", "megatron_bridge")
MOST = 120
UPDATE = PHASES.index(Phase.UPDATE)


@dataclass(frozen=True)
class ForecastRun:
    """A run, our forecast, the roofline's step of one GPU; where that was measured, our error of it and our forecast
    given it.
    """

    run: MeasuredRun
    seconds: Interval
    roofline_seconds: float
    single_error: float | None
    given_seconds: float | None

    def error(self, seconds: float) -> float:
        """|seconds - measured|/measured."""
        return abs(seconds / self.run.step_seconds - 1)


@dataclass(frozen=True)
class Source:
    """What a source has: rows on several GPUs, those that were asked, and why others cannot be, by kind."""

    name: str
    rows: int
    asked: Sequence[ForecastRun]
    reasons: Mapping[str, int]


def from_nothing(data: Path, model: CostModel, sources: Sequence[str] = SOURCES, most: int = MOST) -> list[Source]:
    """Every source, forecast."""
    table = read_table(data / "runs.parquet").to_dicts()
    return [_source(name, [row for row in table if row["source"] == name], model, most) for name in sources]


def _source(name: str, table: list[dict[str, Any]], model: CostModel, most: int) -> Source:
    runs, failures = read_runs(table)
    several = [row for row in table if (row["gpus"] or 1) > 1]
    failed = [failure for failure in failures if (table[failure.row_index]["gpus"] or 1) > 1]
    singles = SingleSteps(runs).of(runs)
    groups: dict[Any, list[MeasuredRun]] = {}
    for run in spaced([run for run in runs if run.gpus > 1], most):
        groups.setdefault((run.reference, run.input_shape), []).append(run)
    asked: list[ForecastRun] = []
    for group in groups.values():
        answers, refused = forecast_group(group, model)
        failed += refused
        forecasts = {answer.row_index: answer.seconds for answer in answers}
        forecast_runs = [run for run in group if run.row_index in forecasts]
        measured_singles = {run.row_index: singles[run.row_index] for run in forecast_runs if run.row_index in singles}
        alone = [
            _alone(run, measured_singles[run.row_index]) for run in forecast_runs if run.row_index in measured_singles
        ]
        own = {
            a.row_index: abs(a.seconds.mid / measured_singles[a.row_index].seconds - 1)
            for a in _answers(alone, model, {})
        }
        given = {
            a.row_index: a.seconds.mid
            for a in _answers(
                [run for run in forecast_runs if run.row_index in measured_singles], model, measured_singles
            )
        }
        asked += [
            ForecastRun(run, forecasts[run.row_index], seconds, own.get(run.row_index), given.get(run.row_index))
            for run, seconds in zip(forecast_runs, _rooflines(forecast_runs), strict=True)
        ]
    return Source(name, len(several), asked, {group.reason: group.rows for group in refusals(failed)})


def _alone(run: MeasuredRun, single: MeasuredSingle) -> MeasuredRun:
    """The measured run on one GPU."""
    return replace(run, job=replace(run.job, accumulate=single.accumulate), gpus=1, nodes=1, strategy=None)


def _answers(
    runs: list[MeasuredRun], model: CostModel, measured_singles: Mapping[int, MeasuredSingle]
) -> list[RunForecast]:
    return forecast_group(runs, model, singles=measured_singles)[0] if runs else []


def spaced(runs: Sequence[MeasuredRun], most: int) -> list[MeasuredRun]:
    """At most so many, evenly spaced."""
    return list(runs) if len(runs) <= most else [runs[i * len(runs) // most] for i in range(most)]


def _rooflines(runs: Sequence[MeasuredRun]) -> list[float]:
    """The bare roofline's step of one GPU; runs are of one network."""
    if not runs:
        return []
    network = find_model(runs[0].reference, runs[0].input_shape, allow_code=False)
    forecast_runs: dict[Any, float] = {}
    for run in runs:
        key = (run.recipe, run.device.name)
        if key not in forecast_runs:
            trace = network.trace(run.recipe)
            seconds, is_update = (
                Roofline().costs(trace.columns, run.device, run.setting).mid,
                trace.columns.phase == UPDATE,
            )
            forecast_runs[key] = float(run.recipe.accumulate * seconds[~is_update].sum() + seconds[is_update].sum())
    return [forecast_runs[(run.recipe, run.device.name)] * _model_fraction(run) for run in runs]


def _model_fraction(run: MeasuredRun) -> float:
    """The part of the model that one GPU computes."""
    placement = run_placement(run)
    return placement.replicas / placement.gpus


def table_of(sources: Sequence[Source]) -> list[str]:
    """The rows of the page's table."""
    lines = [
        "| source | rows | asked | ours | ours, median | inside our interval | roofline, perfect scaling "
        "| 1-GPU step also measured | ours on these | that 1-GPU step, ours | ours with it given |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for source in sources:
        cells = [source.name, str(source.rows), str(len(source.asked)), *_cells(source.asked)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _cells(asked: Sequence[ForecastRun]) -> list[str]:
    if not asked:
        return ["–"] * 4 + ["0"] + ["–"] * 3
    ours = [a.error(a.seconds.mid) for a in asked]
    roofline = [a.error(a.roofline_seconds) for a in asked]
    inside = np.mean([a.seconds.holds(a.run.step_seconds) for a in asked])
    cells = [_percent(ours), f"{100 * np.median(ours):.1f}", f"{100 * inside:.0f}", _percent(roofline)]
    measured_singles = [(a, a.single_error, a.given_seconds) for a in asked]
    both = [(a, single, given) for a, single, given in measured_singles if single is not None and given is not None]
    if not both:
        return [*cells, "0", "–", "–", "–"]
    return [
        *cells,
        str(len(both)),
        _percent([a.error(a.seconds.mid) for a, _, _ in both]),
        _percent([single for _, single, _ in both]),
        _percent([a.error(given) for a, _, given in both]),
    ]


def _percent(errors: Sequence[float]) -> str:
    return f"{100 * np.mean(errors):.1f}"


def reasons_of(sources: Sequence[Source]) -> list[str]:
    """Why rows cannot be forecast, by kind."""
    lines = ["| source | rows | why they cannot be asked |", "|---|---|---|"]
    for source in sources:
        ordered = sorted(source.reasons.items(), key=lambda item: (-item[1], item[0]))
        lines += [f"| {source.name} | {count} | {kind} |" for kind, count in ordered]
    return lines
