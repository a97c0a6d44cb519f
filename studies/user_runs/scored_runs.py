"""Rows of measured trainings with what is forecast for them.

The rows are all of `user_runs`, and those of `runs_2026` whose task is fine-tuning: of everything, by LoRA or by
another adapter. Each is read as `epochcast evaluate` reads it. Rows whose `quality` says that they are not to be
trusted are left out. Of `runs_2026` every row is read, so that all refusals are counted; its sweeps repeat a training
over batches, lengths and formats, of which OF_A_KIND are forecast: evenly spaced among the rows of one source, model
and task.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, isnan
from pathlib import Path
from typing import Any

import polars as pl

from epochcast.measure.evaluate.evaluate_runs import forecast_runs
from epochcast.measure.evaluate.predicted import Predicted
from epochcast.measure.tables.row_errors import DoubtfulRow, FailedRow
from epochcast.measure.tables.run_table import MeasuredRun, read_runs
from epochcast.measure.tables.table_files import read_table, with_known_columns
from epochcast.predict.cost.cost_models import find_cost_model
from studies.user_runs.commands import command_of

USERS, TRAININGS = "user_runs", "runs_2026"
DIFFUSION, SEEING, HEARING = "diffusion", "vision-language", "speech"
BOXES, PICTURES, OTHERS = "detection and segmentation", "images", "other"
LANGUAGE = "language models: "
_TASKS: tuple[tuple[str, str], ...] = (
    (r"text-to-image|diffusion", DIFFUSION),
    (r"vision-language", SEEING),
    (r"speech", HEARING),
    (r"detection|segmentation", BOXES),
    (r"image-classification", PICTURES),
    (r"imitation", OTHERS),
)
_METHODS: tuple[tuple[str, str], ...] = (
    (r"qlora|gptq|nf4|int4|bnb", "LoRA on a quantised base"),
    (r"peft_finetuning", "other adapters of PEFT"),
    (r"lora", "LoRA"),
    (r"pretrain", "from scratch"),
)
FULL = "all parameters"
OF_A_KIND = 2
_KIND = ("source", "model", "task")


@dataclass(frozen=True)
class Ratios:
    """A forecast ÷ what was measured: its low end, its middle and its high end."""

    low: float
    mid: float
    high: float

    @property
    def holds(self) -> bool:
        return self.low <= 1 <= self.high

    @property
    def error(self) -> float:
        """|predicted − measured| ÷ measured."""
        return abs(self.mid - 1)

    @property
    def factor(self) -> float:
        """How many times too large or too small."""
        return max(self.mid, 1 / self.mid)

    @property
    def width(self) -> float:
        return self.high / self.low


@dataclass(frozen=True)
class ScoredRun:
    """One row: its command, and time and memory where it has them; `refused` says why it was not forecast."""

    table: str
    row: str
    source: str
    task: str
    model: str
    device: str
    confidence: str
    command: str = ""
    time: Ratios | None = None
    memory: Ratios | None = None
    refused: str = ""
    is_doubtful: bool = False


def task_of(row: Mapping[str, Any]) -> str:
    """The kind of training, as the page groups rows."""
    words = f"{row.get('task') or ''}".casefold()
    kind = next((kind for pattern, kind in _TASKS if re.search(pattern, words)), None)
    if kind is not None:
        return kind
    how = " ".join(str(row.get(name) or "") for name in ("task", "method", "precision")).casefold()
    return LANGUAGE + next((method for pattern, method in _METHODS if re.search(pattern, how)), FULL)


def tables(folder: Path) -> Iterator[tuple[str, pl.DataFrame]]:
    """The rows of the study, by the table that they are from."""
    yield USERS, read_table(folder / f"{USERS}.parquet")
    trainings = read_table(folder / f"{TRAININGS}.parquet")
    yield TRAININGS, trainings.filter(pl.col("task").str.contains("finetuning"))


def scored_runs(name: str, table: pl.DataFrame) -> list[ScoredRun]:
    """Every row of a table, forecast or refused, or only read where the table repeats its kind."""
    rows = with_known_columns(table).to_dicts()
    read, failures = read_runs(rows, with_memory=True)
    runs = {run.row_index: run for run in read}
    chosen = sorted(runs) if name == USERS else _spaced(rows, sorted(runs))
    predicted = forecast_runs([rows[index] for index in chosen], find_cost_model())
    refusals = {failure.row_index: failure for failure in failures}
    refusals |= {chosen[failure.row_index]: failure for failure in predicted.failures}
    places = {index: place for place, index in enumerate(chosen)}
    return [
        _scored(name, index, row, runs.get(index), predicted, places.get(index), refusals.get(index))
        for index, row in enumerate(rows)
    ]


def _spaced(rows: Sequence[Mapping[str, Any]], indices: Sequence[int]) -> list[int]:
    """OF_A_KIND rows of each kind, evenly spaced, in the order of the table."""
    kinds: dict[tuple[str, ...], list[int]] = {}
    for index in indices:
        kinds.setdefault(tuple(str(rows[index].get(name)) for name in _KIND), []).append(index)
    return sorted(index for members in kinds.values() for index in members[:: ceil(len(members) / OF_A_KIND)])


def _scored(
    table: str,
    index: int,
    row: Mapping[str, Any],
    run: MeasuredRun | None,
    predicted: Predicted,
    place: int | None,
    refusal: FailedRow | None,
) -> ScoredRun:
    scored = ScoredRun(
        table,
        str(row.get("id") or index),
        str(row.get("source") or ""),
        task_of(row),
        str(row.get("model") or ""),
        str(row.get("device") or ""),
        str(row.get("confidence") or ""),
    )
    if refusal is not None:
        is_doubtful = refusal.error_class == DoubtfulRow.__name__
        return replace(scored, refused=refusal.reason, is_doubtful=is_doubtful)
    assert run is not None
    if place is None:
        return replace(scored, command=command_of(run))
    seconds = (predicted.low_seconds, predicted.mid_seconds, predicted.high_seconds, predicted.measured_seconds)
    memory = predicted.memory
    sizes = memory and (memory.low_bytes, memory.mid_bytes, memory.high_bytes, memory.measured_bytes)
    return replace(
        scored,
        command=command_of(run),
        time=_ratios(*(float(values[place]) for values in seconds)),
        memory=_ratios(*(float(values[place]) for values in sizes)) if sizes else None,
    )


def _ratios(low: float, mid: float, high: float, measured: float) -> Ratios | None:
    if isnan(mid) or isnan(measured):
        return None
    return Ratios(low / measured, mid / measured, high / measured)
