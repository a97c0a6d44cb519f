"""Every forecast of the page beside its measurement, as one table: predicted ÷ measured, and both ends of the interval.

No forecast is of a row that the model was trained on. What a forecast was made without is its `left_out`:

    family      the networks of its family, on any device (`left_out.csv`, which `make model` writes)
    source      all that its source measured; preferred where others measured such steps on that device
    device      all that was measured on its chip
    everything  no training reads its source: the shipped model, as `epochcast evaluate` asks it

So a step of a trained source counts up to twice, once as of a known device and once as of one not measured. Of a source
that is trained on, other rows (several GPUs, compiled) are not scored. At most MOST_ROWS steps of a source, a device, a
format and a mode count, and as many of a source and a question: no GPU and no source decides a figure alone.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import EpochcastError
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.sustained import sustained
from epochcast.measure.evaluate.scored_rows import SECONDS
from epochcast.measure.tables.row_names import is_good
from epochcast.measure.tables.run_placement import run_placement
from epochcast.measure.tables.run_table import MeasuredRun, read_runs
from epochcast.measure.tables.table_files import with_known_columns
from epochcast.predict.cost.launch import launch_interval
from epochcast.predict.cost.spreads import RECURRENT, evidence
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.framework import setting_of
from epochcast.predict.forecast.session import Session
from epochcast.predict.forecast.step_margins import (
    ADAPTERS,
    CONVOLUTIONS,
    PRODUCTS,
    group_name,
    step_group,
    step_margin,
)
from studies.accuracy.intervals import ScoredIntervals
from studies.accuracy.left_out_table import LeftOutTable
from studies.accuracy.margins import without_margin
from studies.accuracy.questions import (
    ADAPTERS as FINE_TUNING,
)
from studies.accuracy.questions import (
    KNOWLEDGE,
    KNOWN,
    NOT_MEASURED,
    OTHER,
    SISTER_BOARD,
    asked_in,
    question_of,
)
from training.spreads import KNOWN_RUNS, cells_of

MOST_ROWS = 60
USERS = "user_runs"
"""A table in which nearly every row has a source of its own."""
FRESH_TABLES = ("runs", "runs_more", "runs_2026", "llm_runs", USERS)
EVERYTHING = "everything"
# Its runs over several nodes were disturbed, by its authors' own account.
DISTURBED = "ultrascale_playbook"
COLUMNS = ("source", "model", "device", "gpus", "nodes", "precision", "mode", "batch", "question", "gpu", "left_out")
_ALIKE = ["source", "device", "precision", "mode", "layout"]

Mask = NDArray[np.bool_]


def left_out_steps(
    table: LeftOutTable, scored: Mapping[str, ScoredIntervals], questions: Mapping[tuple[str, str], str]
) -> pl.DataFrame:
    """Steps of trained sources, by nets that had not seen them: with the device known, and with it left out."""
    frames = [
        _of_split(table, split, scored[split], mask, gpu, questions)
        for split, mask, gpu in (
            ("source", _is_by_source(scored), KNOWN),
            ("family", ~_is_by_source(scored) & _is_known(table), KNOWN),
            ("family", ~_is_by_source(scored) & ~_is_known(table), SISTER_BOARD),
            ("device", np.isfinite(table.ratios["device"]), NOT_MEASURED),
        )
    ]
    return _thinned(pl.concat(frames), [*_ALIKE, "gpu"])


def new_networks(
    table: LeftOutTable, scored: Mapping[str, ScoredIntervals], questions: Mapping[tuple[str, str], str]
) -> pl.DataFrame:
    """Steps of known devices and formats whose family was left out."""
    frame = _of_split(table, "family", scored["family"], _is_known(table), KNOWN, questions)
    return _thinned(frame, _ALIKE)


def with_seconds(frame: pl.DataFrame, folder: Path) -> pl.DataFrame:
    """Left-out steps with `true_seconds`, which `left_out.csv` does not have: found in the tables where one row alone
    has that source, device, network, batch, precision, mode and layout; other steps are left out.
    """
    keys = ("source", "device", "model", "batch", "precision", "mode", "layout")
    seconds: dict[tuple[object, ...], list[float]] = {}
    for table in trained_tables(folder, set(frame["source"]), set(frame["model"])):
        for run in read_runs(table.to_dicts())[0]:
            layout = "channels_last" if run.job.channels_last else "nchw"
            kind = (run.recipe.precision, run.job.mode, layout)
            seconds.setdefault((run.source, run.device.name, run.model, run.job.batch, *kind), []).append(
                run.step_seconds
            )
    measured = [seconds.get(key, []) for key in frame.select(keys).iter_rows()]
    alone = [each[0] if len(each) == 1 else None for each in measured]
    return frame.with_columns(true_seconds=pl.Series(alone, dtype=pl.Float64)).drop_nulls("true_seconds")


def trained_tables(folder: Path, sources: set[str], models: set[str]) -> Iterator[pl.DataFrame]:
    """Single-GPU rows of the tables that training reads."""
    for name in ("runs", "runs_more", "runs_2026", "inference_runs", "transformer_runs"):
        table = pl.read_parquet(folder / f"{name}.parquet")
        yield table.filter(
            pl.col("source").is_in(sources) & pl.col("model").is_in(models) & (pl.col("gpus").fill_null(1) == 1)
        )


def _is_by_source(scored: Mapping[str, ScoredIntervals]) -> Mask:
    """Steps whose device others measured in that kind, scored without their source."""
    by_source: Mask = np.isfinite(scored["source"].low)
    return by_source


def _is_known(table: LeftOutTable) -> Mask:
    """Whether there are enough measured steps of that kind on the device for it to count as known."""
    _, place, count = np.unique(cells_of(table.device, table.kind), return_inverse=True, return_counts=True)
    known: Mask = count[place] >= KNOWN_RUNS
    return known


def _of_split(
    table: LeftOutTable,
    split: str,
    intervals: ScoredIntervals,
    mask: Mask,
    gpu: str,
    questions: Mapping[tuple[str, str], str],
) -> pl.DataFrame:
    names = zip(table.source.tolist(), table.model.tolist(), table.mode.tolist(), strict=True)
    low, high = _ends(table, intervals)
    ratio = table.ratios[split]
    frame = pl.DataFrame(
        {
            "place": np.arange(len(table)),
            "source": table.source.tolist(),
            "model": table.model.tolist(),
            "device": table.device.tolist(),
            "gpus": 1,
            "nodes": 1,
            "precision": table.precision.tolist(),
            "mode": table.mode.tolist(),
            "layout": table.layout.tolist(),
            "batch": [int(batch) for batch in table.batch.tolist()],
            "question": [asked_in(mode, questions.get((source, model), OTHER)) for source, model, mode in names],
            "gpu": gpu,
            "group": _groups(table, questions, is_known=gpu == KNOWN),
            "left_out": split,
            **dict(zip(SECONDS, (1.0, ratio * low, ratio, ratio * high), strict=True)),
            "is_forecast": True,
            "reason": pl.Series([None] * len(table), dtype=pl.String),
        }
    )
    return frame.filter(mask & np.isfinite(ratio))


def _groups(table: LeftOutTable, questions: Mapping[tuple[str, str], str], *, is_known: bool) -> list[str | None]:
    """The group of every step (`predict.forecast.step_margins`); None of a forward pass."""
    groups: list[str | None] = []
    steps = zip(table.source.tolist(), table.model.tolist(), table.device.tolist(), table.kind.tolist(), strict=True)
    for source, model, device, kind in steps:
        _, work, mode = kind.split("-")
        work = PRODUCTS if work in (PRODUCTS, RECURRENT) else CONVOLUTIONS
        work = ADAPTERS if questions.get((source, model)) == FINE_TUNING else work
        name = group_name(find_device(device).vendor, work, 1, 1, is_known=is_known)
        groups.append(name if mode == "training" else None)
    return groups


def _ends(table: LeftOutTable, intervals: ScoredIntervals) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Factors of the middle. Launches decide where kernels do not: their interval is that of a host nobody named."""
    trace = zoo_model("mnist_cnn").trace(Recipe(1))
    launch = launch_interval(trace, find_device(str(table.device[0])))
    is_host = table.bound == "host"
    low = np.where(is_host, launch.low / launch.mid, np.exp(intervals.low))
    return low, np.where(is_host, launch.high / launch.mid, np.exp(intervals.high))


def _thinned(frame: pl.DataFrame, keys: list[str], most: int = MOST_ROWS) -> pl.DataFrame:
    """At most so many rows of each group, evenly spaced."""
    parts = frame.partition_by(keys, maintain_order=True)
    return pl.concat([part[evenly(len(part), most)] for part in parts])


def evenly(count: int, most: int) -> list[int]:
    """At most `most` places out of `count`, evenly spaced, the first among them."""
    if count <= most:
        return list(range(count))
    return [place * count // most for place in range(most)]


# ---- sources that no training reads ---------------------------------------------------------------


def fresh_steps(folder: Path, trained: set[str]) -> pl.DataFrame:
    """Rows of all sources but those that were trained on, forecast from nothing; a refused row has its reason."""
    rows: list[dict[str, Any]] = []
    for name in FRESH_TABLES:
        table = with_known_columns(pl.read_parquet(folder / f"{name}.parquet"))
        if name == USERS:
            rows += _source_rows(USERS, _timed(table))
            continue
        for source in sorted(set(table["source"]) - trained):
            rows += _source_rows(source, _timed(table.filter(pl.col("source") == source)))
    return pl.DataFrame(rows, infer_schema_length=None)


def _timed(table: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows that say a time that may be trusted."""
    times = [name for name in ("step_seconds", "samples_per_second") if name in table.columns]
    rows = table.filter(pl.any_horizontal(pl.col(name).is_not_null() for name in times)).to_dicts()
    return [
        row
        for row in rows
        if is_good(str(row.get("quality") or "")) and not (row["source"] == DISTURBED and (row.get("nodes") or 1) > 1)
    ]


def _source_rows(source: str, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A sample of a source's rows by question, answered or refused. A refused row asks what most others do."""
    runs, failures = read_runs(rows)
    by_question: dict[str, list[MeasuredRun]] = {}
    for run in runs:
        by_question.setdefault(question_of(run), []).append(run)
    usual = Counter({question: len(mine) for question, mine in by_question.items()}).most_common(1)
    asked = usual[0][0] if usual else OTHER
    for failure in (failures[place] for place in evenly(len(failures), MOST_ROWS)):
        row = rows[failure.row_index]
        yield {**_labels(source, row, asked, str(row.get("device"))), **_refused(failure.reason)}
    for question, mine in by_question.items():
        for same in _by_network([mine[place] for place in evenly(len(mine), MOST_ROWS)]):
            yield from _answered(source, rows, question, same)


def _by_network(runs: list[MeasuredRun]) -> Iterator[list[MeasuredRun]]:
    groups: dict[object, list[MeasuredRun]] = {}
    for run in runs:
        groups.setdefault((run.reference, run.input_shape), []).append(run)
    yield from groups.values()


def _answered(
    source: str, rows: list[dict[str, Any]], question: str, runs: list[MeasuredRun]
) -> Iterator[dict[str, Any]]:
    session = Session(with_own_profiles=False)
    for run in runs:
        labels = _labels(source, rows[run.row_index], question, run.device.name)
        try:
            forecast = forecast_job(run.job, run_placement(run), session, step_only=True)
        except EpochcastError as error:
            yield {**labels, **_refused(str(error))}
            continue
        gpu = KNOWLEDGE[evidence(forecast.details.trace.columns, run.device, run.setting)]
        group = step_group(forecast.details.trace, run_placement(run), setting_of(run.job, run.device))
        # The margin is fitted to these rows.
        step, measured = without_margin(forecast.step_seconds, step_margin(group)), run.step_seconds
        seconds = dict(zip(SECONDS, (1.0, *(s / measured for s in (step.low, step.mid, step.high))), strict=True))
        seen = {
            "gpu": gpu,
            "group": group,
            "gpus": run.gpus,
            "nodes": run.nodes,
            "mode": run.job.mode,
            "batch": run.job.batch,
        }
        yield {**labels, **seen, **seconds, "is_forecast": True, "reason": None, "true_seconds": measured}


def _labels(source: str, row: Mapping[str, Any], question: str, device: str) -> dict[str, Any]:
    return {
        "source": source,
        "model": str(row.get("model")),
        "device": device,
        "gpus": row.get("gpus") or 1,
        "nodes": row.get("nodes") or 1,
        "precision": str(row.get("precision") or "fp32"),
        "mode": str(row.get("mode") or "training"),
        "batch": None,
        "question": question,
        "gpu": _knowledge(device),
        "left_out": EVERYTHING,
    }


def _refused(reason: str) -> dict[str, Any]:
    return {**dict.fromkeys(SECONDS, None), "is_forecast": False, "reason": reason, "true_seconds": None}


def _knowledge(device: str) -> str:
    """Of a row that could not be asked: whether its device is one that training measured in some kind of step."""
    try:
        return KNOWN if sustained(find_device(device)).known_kinds else NOT_MEASURED
    except EpochcastError:
        return NOT_MEASURED
