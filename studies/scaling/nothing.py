"""Steps on several GPUs forecast from nothing: no measured step of one GPU is given.

Of every source at most `MOST` rows are asked, evenly spaced in its table. Beside ours stands the bare roofline with
perfect scaling: the longer of flops / peak and bytes / bandwidth of every op, summed, whatever the number of GPUs.
Where a row of one GPU was measured too, its error is beside: what of ours is one GPU's.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from epochcast.capture.resolve import find_model
from epochcast.cost.model import CostModel
from epochcast.cost.roofline import Roofline
from epochcast.fit.evaluate_runs import forecast_group
from epochcast.fit.given_single import single_steps
from epochcast.fit.run_table import Run, read_runs
from epochcast.fit.table import read_table
from epochcast.graph.op import Phase
from epochcast.graph.trace import PHASES
from epochcast.interval import Interval

SOURCES = ("nvidia_dle", "pollux_osdi21", "tf_benchmarks_2017", "mlperf_training", "megatron_bridge")
MOST = 120
UPDATE = PHASES.index(Phase.UPDATE)


@dataclass(frozen=True)
class Asked:
    """A run, our forecast, the roofline's step of one GPU; and of one GPU our step and the measured, where known."""

    run: Run
    seconds: Interval
    roofline_seconds: float
    single_seconds: float
    measured_single_seconds: float | None


@dataclass(frozen=True)
class Source:
    """What a source has: rows on several GPUs, those that were asked, and why others cannot be, by kind."""

    name: str
    rows: int
    asked: Sequence[Asked]
    reasons: Mapping[str, int]


def from_nothing(data: Path, model: CostModel, sources: Sequence[str] = SOURCES) -> list[Source]:
    """Every source, forecast."""
    table = read_table(data / "runs.parquet").to_dicts()
    return [_source(name, [row for row in table if row["source"] == name], model) for name in sources]


def _source(name: str, table: list[dict[str, Any]], model: CostModel) -> Source:
    runs, failures = read_runs(table)
    several = [row for row in table if (row["gpus"] or 1) > 1]
    reasons = Counter(kind_of(f.reason, f.model) for f in failures if (table[f.place]["gpus"] or 1) > 1)
    singles = single_steps(runs)
    groups: dict[Any, list[Run]] = {}
    for run in spaced([run for run in runs if run.gpus > 1], MOST):
        groups.setdefault((run.reference, run.input_shape), []).append(run)
    asked: list[Asked] = []
    for group in groups.values():
        answers, refused = forecast_group(group, model)
        reasons.update(kind_of(f.reason, f.model) for f in refused)
        found = {answer.place: answer.seconds for answer in answers}
        kept = [run for run in group if run.place in found]
        alone = [replace(run, gpus=1, nodes=1, strategy=None) for run in kept]
        own = {answer.place: answer.seconds.mid for answer in forecast_group(alone, model)[0]} if alone else {}
        asked += [
            Asked(run, found[run.place], seconds, own[run.place], singles.get(run.place))
            for run, seconds in zip(kept, _rooflines(kept), strict=True)
            if run.place in own
        ]
    return Source(name, len(several), asked, reasons)


def spaced(runs: Sequence[Run], most: int) -> list[Run]:
    """At most so many, evenly spaced."""
    return list(runs) if len(runs) <= most else [runs[i * len(runs) // most] for i in range(most)]


def kind_of(reason: str, model: str) -> str:
    """A reason without the names and numbers of its row."""
    plain = re.sub(r"[:;] .*", "", reason.removeprefix(f"{model}: "))
    return re.sub(r"\s*\(?\b[A-Z]+=\d+\)?|\d+(?=[ )]|$)| '[^']*'", "", plain).strip()


def _rooflines(runs: Sequence[Run]) -> list[float]:
    """The bare roofline's step of one GPU; runs are of one network."""
    if not runs:
        return []
    network = find_model(runs[0].reference, runs[0].input_shape, allow_code=False)
    kept: dict[Any, float] = {}
    for run in runs:
        key = (run.recipe, run.device.name)
        if key not in kept:
            trace = network.trace(run.recipe)
            seconds, is_update = Roofline().costs(trace, run.device).mid, trace.columns.phase == UPDATE
            kept[key] = float(run.recipe.accumulate * seconds[~is_update].sum() + seconds[is_update].sum())
    return [kept[(run.recipe, run.device.name)] for run in runs]


def table_of(sources: Sequence[Source]) -> list[str]:
    """The rows of the page's table."""
    lines = [
        "| source | rows | asked | ours | ours, median | inside our interval | roofline, perfect scaling "
        "| 1-GPU step also measured | ours on these | ours of the 1-GPU step |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for source in sources:
        if not source.asked:
            lines.append(f"| {source.name} | {source.rows} | 0 | – | – | – | – | 0 | – | – |")
            continue
        measured = np.array([a.run.step_seconds for a in source.asked])
        ours = np.abs(np.array([a.seconds.mid for a in source.asked]) / measured - 1)
        roofline = np.abs(np.array([a.roofline_seconds for a in source.asked]) / measured - 1)
        inside = np.mean([a.seconds.holds(a.run.step_seconds) for a in source.asked])
        cells = [f"{100 * value:.1f}" for value in (ours.mean(), np.median(ours))]
        cells += [f"{100 * inside:.0f}", f"{100 * roofline.mean():.1f}", *_single_cells(source.asked, ours)]
        lines.append(f"| {source.name} | {source.rows} | {len(source.asked)} | {' | '.join(cells)} |")
    return lines


def _single_cells(asked: Sequence[Asked], ours: np.ndarray) -> list[str]:
    known = [(a.single_seconds, a.measured_single_seconds) for a in asked if a.measured_single_seconds is not None]
    if not known:
        return ["0", "–", "–"]
    has_single = np.array([a.measured_single_seconds is not None for a in asked])
    errors = [abs(mine / measured - 1) for mine, measured in known]
    return [str(len(known)), f"{100 * ours[has_single].mean():.1f}", f"{100 * np.mean(errors):.1f}"]


def reasons_of(sources: Sequence[Source]) -> list[str]:
    """Why rows cannot be asked, by kind."""
    lines = ["| source | rows | why they cannot be asked |", "|---|---|---|"]
    for source in sources:
        ordered = sorted(source.reasons.items(), key=lambda item: (-item[1], item[0]))
        lines += [f"| {source.name} | {count} | {kind} |" for kind, count in ordered]
    return lines
