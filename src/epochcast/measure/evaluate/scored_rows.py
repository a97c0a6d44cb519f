"""The rows of a table with their forecasts, however many: in memory while they are few, beyond that in files of a
temporary folder, so that memory does not grow with the table. What is asked of them reads the columns it needs.

    row, device, family       where in the table, and what to group by
    …                         columns of the table that identify a row
    measured_seconds, low_seconds, predicted_seconds, high_seconds, is_forecast
    measured_bytes, …         the same of the memory of rows that have it, and the verdict (`MEMORY`)
    reason, refused, …        why a row failed, its model or what stands for it, and the error (`FAILURE`)
    by:NAME                   columns of the table to group by
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from epochcast.measure.evaluate.predicted import Predicted, PredictedMemory
from epochcast.measure.tables.row_errors import FailedRow
from epochcast.measure.tables.table_chunks import CHUNK_ROWS, polars
from epochcast.measure.tables.table_files import mixed_kinds

if TYPE_CHECKING:
    from polars import DataFrame, LazyFrame

# Columns of a table that identify a row; they are copied to the file of results.
ROW_COLUMNS = (
    "source",
    "system",
    "model",
    "op",
    "phase",
    "dtype",
    "batch_per_gpu",
    "gpus",
    "nodes",
    "precision",
    "mode",
)
SECONDS = ("measured_seconds", "low_seconds", "predicted_seconds", "high_seconds")
BYTES = ("measured_bytes", "low_bytes", "predicted_bytes", "high_bytes")
MEMORY = (*BYTES, "memory_kind", "memory_verdict", "fits_probability", "ran_out")
"""Columns of rows that say something of memory, in a table in which any does."""
LABELS = ("device", "family")
FAILURE = {"refused": "model", "reason": "reason", "error_class": "error_class", "about": "about"}
"""Columns of a row that failed, and the fields of `FailedRow` that they hold."""


def by_column(name: str) -> str:
    """The column with the values to group by: our labels, else those of the table."""
    return name if name in LABELS else f"by:{name}"


def scored(part: Predicted, table: "DataFrame", by: Sequence[str], first_row: int) -> "DataFrame":
    """A piece of a table with its forecasts; its rows are counted from `first_row`."""
    pl = polars()
    failed: dict[int, FailedRow] = {failure.row_index: failure for failure in part.failures}
    failures = [failed.get(row_index) for row_index in range(len(part))]
    seconds = (part.measured_seconds, part.low_seconds, part.mid_seconds, part.high_seconds)
    columns: dict[str, Any] = {"row": pl.int_range(first_row, first_row + len(part), eager=True)}
    columns |= {name: pl.Series(labels, dtype=pl.String) for name, labels in part.labels.items()}
    columns |= {name: table[name] for name in ROW_COLUMNS if name in table.columns}
    columns |= dict(zip(SECONDS, seconds, strict=True))
    columns |= {"is_forecast": part.is_forecast} | _memory_columns(part.memory)
    columns |= {
        name: pl.Series([failure and getattr(failure, field) for failure in failures], dtype=pl.String)
        for name, field in FAILURE.items()
    }
    columns |= {by_column(name): table[name] for name in by if name not in part.labels}
    frame: DataFrame = pl.DataFrame(columns)
    return frame


def _memory_columns(memory: PredictedMemory | None) -> dict[str, Any]:
    """What `MEMORY` names; nothing where no row has it."""
    if memory is None:
        return {}
    pl = polars()
    sizes = (memory.measured_bytes, memory.low_bytes, memory.mid_bytes, memory.high_bytes)
    words = (pl.Series(values, dtype=pl.String) for values in (memory.kinds, memory.verdicts))
    return dict(zip(MEMORY, (*sizes, *words, memory.probabilities, memory.ran_out), strict=True))


@dataclass
class ScoredRows:
    """Pieces of scored rows, in order; in memory up to `most_kept` rows."""

    most_kept: int = CHUNK_ROWS
    notes: dict[str, int] = field(default_factory=dict)
    _count: int = 0
    _frames: "list[DataFrame]" = field(default_factory=list)
    _files: list[Path] = field(default_factory=list)
    _schemas: list[Mapping[str, Any]] = field(default_factory=list)
    _folder: TemporaryDirectory[str] | None = None

    def __len__(self) -> int:
        return self._count

    def add(self, frame: "DataFrame", notes: Mapping[str, int]) -> None:
        """One more piece, and what was assumed for so many of its rows."""
        for note, rows in notes.items():
            self.notes[note] = self.notes.get(note, 0) + rows
        self._count += len(frame)
        self._schemas.append(frame.schema)
        self._frames.append(frame)
        if self._count > self.most_kept:
            self._spill()

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="epochcast-rows-")
        for frame in self._frames:
            file = Path(self._folder.name) / f"{len(self._files)}.parquet"
            frame.write_parquet(file, compression="lz4")
            self._files.append(file)
        self._frames.clear()

    def lazy(self) -> "LazyFrame":
        """All of them, read as far as they are needed; a column that is of several kinds is text."""
        pl = polars()
        pieces = [*(pl.scan_parquet(file, glob=False) for file in self._files), *(f.lazy() for f in self._frames)]
        mixed = mixed_kinds(self._schemas)
        if mixed:
            pieces = [
                piece.with_columns(pl.col(sorted(mixed & set(schema))).cast(pl.String))
                for piece, schema in zip(pieces, self._schemas, strict=True)
            ]
        frame: LazyFrame = pl.concat(pieces, how="diagonal_relaxed")
        return frame

    def columns(self, *names: str) -> "Iterator[DataFrame]":
        """Some columns, piece by piece."""
        pl = polars()
        for file in self._files:
            yield pl.read_parquet(file, columns=list(names), glob=False)
        for frame in self._frames:
            yield frame.select(names)

    def numbers(self, name: str) -> np.ndarray[Any, Any]:
        """One column as an array."""
        column: np.ndarray[Any, Any] = self.lazy().select(name).collect()[name].to_numpy()
        return column

    def failures(self) -> Iterator[FailedRow]:
        """The rows that could not be forecast, in order."""
        pl = polars()
        for piece in self.columns("row", *FAILURE):
            for row in piece.filter(pl.col("reason").is_not_null()).iter_rows():
                yield FailedRow(*row)

    def results(self) -> "LazyFrame":
        """What the file of results holds: rows that were forecast or failed, with error and reason."""
        pl = polars()
        measured, low, mid, high = (pl.col(name) for name in SECONDS)
        inside = (low <= measured) & (measured <= high)
        answered = pl.col("is_forecast") | pl.col("reason").is_not_null()
        if self.has_memory:
            answered |= pl.col("memory_kind").is_not_null()
        rows = self.lazy().filter(answered)
        rows = rows.with_columns(
            ((mid - measured).abs() / measured).alias("ape"),
            pl.when("is_forecast").then(inside).alias("inside"),
        )
        present = {name for schema in self._schemas for name in schema}
        shown = [name for name in ("row", *LABELS, *ROW_COLUMNS, *SECONDS) if name in present]
        memory = MEMORY if self.has_memory else ()
        numbers = [*SECONDS, "ape", *(name for name in memory if name in (*BYTES, "fits_probability"))]
        frame: LazyFrame = rows.select(*shown, "ape", "inside", *memory, "reason").with_columns(
            pl.col(*numbers).fill_nan(None)
        )
        return frame

    @property
    def has_memory(self) -> bool:
        """Whether any row says something of memory."""
        return any(MEMORY[0] in schema for schema in self._schemas)

    def memory_rows(self, by: Sequence[str]) -> "DataFrame":
        """The rows whose memory was forecast, with the columns to group by."""
        pl = polars()
        rows = self.lazy().filter(pl.col("memory_kind").is_not_null())
        frame: DataFrame = rows.select(*MEMORY, *(by_column(name) for name in by)).collect()
        return frame
