"""Reading tables of past jobs: CSV, JSON lines, Parquet, a polars or pandas table, or the runs of a store.

Columns are found by their type: numbers are numbers, texts and true/false are categories. The end of a name says its
unit (`epoch_ms`, `host_memory_gb`) and becomes the base unit (`epoch_seconds`, `host_memory_bytes`); usual names become
ours (`gpu_type` → `device`). What a job only shows once it has run (`OUTCOMES`) never predicts another outcome.
"""

import csv
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epochcast.errors import BadInput
from epochcast.measure.tables.cells import EMPTY
from epochcast.measure.tables.row_names import listed
from epochcast.measure.tables.table_chunks import polars
from epochcast.measure.tables.table_files import read_table
from epochcast.observe.history.job_table import MISSING, Array, Jobs, Words
from epochcast.units import base_column

if TYPE_CHECKING:
    from polars import DataFrame, Series

    from epochcast.observe.store.store import Store

TARGETS = ("epoch_seconds", "total_seconds", "step_seconds", "peak_bytes")
OUTCOMES = frozenset(
    {
        *TARGETS,
        "samples_per_second",
        "tokens_per_second",
        "sync_seconds",
        "forward_seconds",
        "backward_seconds",
        "elapsed_seconds",
        "down_seconds",
        "remaining_seconds",
        "loss",
        "accuracy",
        "dollars",
        "memory_kind",
        "quality",
    }
)
"""Columns that are known after a job has run and not before."""
_SAME = {"peak_memory_bytes": "peak_bytes", "epoch_time": "epoch_seconds", "total_time": "total_seconds"}
# A column of numbers in which fewer cells than this can be read as numbers is one of categories.
MOSTLY = 0.9


def read_frame(table: "str | Path | DataFrame | Any") -> "DataFrame":
    """The whole table, its columns by our names and in base units."""
    polars()
    if isinstance(table, str | Path):
        _check_header(Path(table))
        table = read_table(table)
    elif not hasattr(table, "get_columns"):
        table = polars().from_pandas(table) if hasattr(table, "iloc") else polars().DataFrame(table)
    return named(table)


def _check_header(file: Path) -> None:
    """Raise for a CSV that has two columns of one name: which of them is meant, nobody knows."""
    if file.suffix.lower() != ".csv" or not file.is_file():
        return
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
        header = next(csv.reader(stream), [])
    _check_unique([name.strip() for name in header], file.name)


def _check_unique(names: list[str], table: str) -> None:
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise BadInput(f"{table} has more than one column called {', '.join(map(repr, sorted(twice)))}; rename one")


def named(frame: "DataFrame") -> "DataFrame":
    """Columns by our names and in base units; raises where two columns become one."""
    pl = polars()
    columns: dict[str, Series] = {}
    for column in frame.get_columns():
        base, factor = base_column(column.name.strip())
        name = listed("column", base) or base
        name = _SAME.get(name, name)
        if name in frame.columns and name != column.name:
            continue  # the table has the base unit beside it
        if name in columns:
            raise BadInput(f"two columns of the table mean {name!r}: {columns[name].name!r} and {column.name!r}")
        columns[name] = column if factor == 1.0 else column.cast(pl.Float64, strict=False) * factor
    result: DataFrame = pl.DataFrame([column.alias(name) for name, column in columns.items()])
    return result


def as_jobs(frame: "DataFrame", categories_of: Collection[str] = (), numbers_of: Collection[str] = ()) -> Jobs:
    """Every column of a table as numbers or as categories: as its cells are, or as it was when a model was fitted."""
    numbers: dict[str, Array] = {}
    categories: dict[str, Words] = {}
    for column in frame.get_columns():
        least = 0.0 if column.name in numbers_of else MOSTLY
        values = None if column.name in categories_of else _as_numbers(column, least)
        if values is not None:
            numbers[column.name] = values
        else:
            categories[column.name] = _as_words(column)
    return Jobs(numbers, categories)


def _as_numbers(column: "Series", least: float) -> Array | None:
    """The numbers of a column, NaN for an empty cell; None where fewer cells than `least` are numbers."""
    pl = polars()
    if column.dtype == pl.Boolean and least:
        return None
    cells = column
    if not column.dtype.is_numeric():
        texts = column.cast(pl.String, strict=False).str.strip_chars()
        cells = texts.set(texts.str.to_lowercase().is_in(list(EMPTY)).fill_null(False), None)
    values = cells.cast(pl.Float64, strict=False)
    filled = len(cells) - cells.null_count()
    if not filled or len(values) - values.null_count() < least * filled:
        return None if filled else np.full(len(column), np.nan)
    floats = values.fill_null(np.nan).to_numpy().astype(np.float64)
    return np.where(np.isfinite(floats), floats, np.nan)


def _as_words(column: "Series") -> Words:
    words = [MISSING if value is None else str(value).strip() for value in column.to_list()]
    return np.array([MISSING if word.casefold() in EMPTY else word for word in words], dtype=np.str_)


def runs_of_store(store: "Store") -> "DataFrame":
    """The runs of a store that have shown their pace, as a table: options of the job, where it ran, what it took."""
    rows: list[dict[str, Any]] = []
    jobs = {job.id: job for job in store.jobs()}
    for run in store.runs():
        job = jobs.get(run.job_id or 0)
        if job is None or not run.step_seconds:
            continue
        options = {name: value for name, value in job.job.items() if isinstance(value, str | int | float | bool)}
        # A run that has ended took what it took; one that is under way has only shown its pace.
        total = run.elapsed_seconds if run.state == "ended" else None
        rows.append(
            {
                **options,
                "batch_per_gpu": options.get("batch"),
                "device": run.place.device,
                "gpus": run.place.gpus,
                "nodes": run.place.nodes,
                "started_at_seconds": run.started_at_seconds or run.added_at_seconds,
                "step_seconds": run.step_seconds,
                "total_seconds": total,
            }
        )
    if not rows:
        raise BadInput("the store has no run whose job is known and that has shown its pace")
    frame: DataFrame = polars().DataFrame(rows, infer_schema_length=None, strict=False)
    return frame.drop("batch", strict=False)
