"""Forecasts against measurements: errors, and coverage and width of intervals, overall and by group; of times, and of
the peak memory of runs that have it.

A table of measured runs, single ops or single layers is recognised by its columns (`table.TABLE_COLUMNS`). Every row is
forecast as a user's job would be. A row that cannot be forecast is a failure with a reason, and is counted. Errors are
over the rows that were forecast.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from epochcast.base.frames import as_pandas
from epochcast.base.record import Record, paths, record_fields
from epochcast.errors import BadInput, EpochcastError, UnknownName
from epochcast.hardware.catalogue import find_device
from epochcast.measure.evaluate.memory_evaluation import MemoryEvaluation, memory_evaluation
from epochcast.measure.evaluate.op_layouts import with_op_columns
from epochcast.measure.evaluate.predicted import Predicted, Progress
from epochcast.measure.evaluate.refusals import RefusedRows, refusals
from epochcast.measure.evaluate.scored_rows import LABELS, SECONDS, ScoredRows, by_column, scored
from epochcast.measure.evaluate.scores import Scores, grouped_scores, scores
from epochcast.measure.evaluate.scoring_profile import scoring_profile
from epochcast.measure.tables.row_errors import FailedRow
from epochcast.measure.tables.table_chunks import CHUNK_ROWS, chunks_of, polars
from epochcast.measure.tables.table_files import kind_of, with_known_columns, write_table
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.cost.cost_models import find_cost_model

if TYPE_CHECKING:
    from polars import DataFrame

    from epochcast.measure.evaluate.given_single import SingleSteps


@dataclass(frozen=True, slots=True)
class NoteCount(Record):
    """What was assumed to answer so many rows."""

    note: str
    rows: int


@dataclass(frozen=True)
class Evaluation(Record):
    """Predicted and measured seconds of every row; `by` names the columns to group by."""

    kind: str
    rows: ScoredRows
    by: tuple[str, ...]

    @property
    def failures(self) -> tuple[FailedRow, ...]:
        """The rows that could not be forecast."""
        return tuple(self.rows.failures())

    @property
    def refusals(self) -> tuple[RefusedRows, ...]:
        """The same rows, grouped by reason."""
        return refusals(self.rows.failures())

    @property
    def notes(self) -> dict[str, int]:
        """What was assumed to answer rows, and how many rows of each, the most frequent first."""
        return dict(sorted(self.rows.notes.items(), key=lambda note: -note[1]))

    @property
    def predicted(self) -> Predicted:
        """All rows as arrays."""
        measured, low, mid, high = (self.rows.numbers(name) for name in SECONDS)
        labels = {name: self.rows.lazy().select(name).collect()[name].to_list() for name in LABELS}
        is_forecast = self.rows.numbers("is_forecast")
        return Predicted(measured, low, mid, high, self.failures, labels, is_forecast, self.notes)

    @property
    def scores(self) -> Scores:
        """The scores over all rows."""
        is_forecast, failed = self.rows.numbers("is_forecast"), sum(1 for _ in self.rows.failures())
        measured, low, mid, high = (self.rows.numbers(name)[is_forecast] for name in SECONDS)
        return scores(measured, low, mid, high, failed)

    def groups(self) -> dict[str, Scores]:
        """The scores of each group of `by`, its values joined by " / "; the largest group first."""
        return grouped_scores(self.rows.lazy(), [by_column(name) for name in self.by]) if self.by else {}

    @property
    def note_counts(self) -> tuple[NoteCount, ...]:
        """The notes as the JSON form has them."""
        return tuple(NoteCount(note, rows) for note, rows in self.notes.items())

    @property
    def group_scores(self) -> dict[str, Scores]:
        """The groups as the JSON form has them."""
        return self.groups()

    @property
    def memory(self) -> MemoryEvaluation | None:
        """The same of memory; None if no row says anything of it."""
        return memory_evaluation(self.rows, self.by)

    json_paths: ClassVar[Mapping[str, str]] = {
        **{name: f"scores.{name}" for name in record_fields(Scores)},
        **paths("refusals", failed="failures", notes="note_counts", groups="group_scores", memory="memory"),
    }

    def frame(self) -> "DataFrame":
        """A row for each row of the table that was forecast or failed: measured, predicted, error or reason."""
        frame: DataFrame = self.rows.results().collect()
        return frame

    def to_polars(self) -> "DataFrame":
        """The same as `frame`, by the name that all answers have."""
        return self.frame()

    def to_pandas(self) -> Any:
        """The same as a pandas table."""
        return as_pandas(self.frame().to_dicts())

    def save(self, path: str | Path) -> None:
        """Write `frame` as .csv, .parquet or .jsonl, never half written."""
        write_table(self.rows.results(), path)


def evaluate(
    table: "str | Path | DataFrame",
    *,
    by: Sequence[str] = (),
    given_single: bool = False,
    with_doubtful: bool = False,
    cost_model: CostModel | None = None,
    profile: str | Path | None = None,
    allow_code: bool = False,
    workers: int = 1,
    progress: Progress | None = None,
) -> Evaluation:
    """Forecast every row of a table and compare.

    `with_doubtful` takes rows whose `quality` says that they are not to be trusted, too. `profile` is a calibration
    (`epochcast calibrate`) or a fitted model (`epochcast fit`) of a device, which answers for that device.

    `allow_code` lets a row's model be `file.py:factory`, which runs it; a table from elsewhere should not. `workers`
    processes capture networks at the same time.
    """
    polars()
    chunks = _chunks(table)
    first = next(chunks)
    kind = kind_of(first.columns)
    if given_single and kind not in ("runs", "report"):
        raise BadInput(f"given_single needs runs on several GPUs; this is a table of {kind}")
    columns = {*first.columns, "device", "family"}
    for name in by:
        if name not in columns:
            raise UnknownName("column to group by", name, columns)
    model = cost_model or find_cost_model()
    corrected = None if profile is None else scoring_profile(Path(profile), model)
    if corrected is not None and kind not in ("runs", "report"):
        raise BadInput(f"profile scores runs; this is a table of {kind}")
    options: dict[str, Any] = {
        "with_doubtful": with_doubtful,
        "profile": corrected,
        "allow_code": allow_code,
        "workers": workers,
    }
    if given_single:
        options["singles"] = _singles(_chunks(table), kind, with_doubtful=with_doubtful, allow_code=allow_code)
    rows = ScoredRows()
    for chunk in chain([first], chunks):
        report = None if progress is None else _counted_on(progress, len(rows))
        part = _PREDICTORS[kind](chunk, model if corrected is None else corrected.model, progress=report, **options)
        rows.add(scored(part, chunk, by, len(rows)), part.notes)
    evaluation = Evaluation(kind, rows, tuple(by))
    if given_single and not rows.numbers("is_forecast").any() and not evaluation.failures:
        raise BadInput("given_single needs runs on several GPUs; no row of this table is one")
    return evaluation


def _chunks(table: "str | Path | DataFrame") -> "Iterator[DataFrame]":
    """The table piece by piece, its columns by our names."""
    pieces = chunks_of(table) if isinstance(table, str | Path) else _slices(table)
    for piece in pieces:
        yield with_known_columns(with_op_columns(piece))


def _slices(frame: "DataFrame") -> "Iterator[DataFrame]":
    return frame.iter_slices(CHUNK_ROWS) if len(frame) else iter([frame])


def _counted_on(progress: Progress, before: int) -> Progress:
    return lambda done, total: progress(before + done, before + total)


def _singles(chunks: "Iterator[DataFrame]", kind: str, *, with_doubtful: bool, allow_code: bool) -> "SingleSteps":
    """The measured steps on one GPU, of all pieces."""
    from epochcast.measure.evaluate.given_single import SingleSteps
    from epochcast.measure.tables.run_table import read_runs

    singles = SingleSteps()
    for chunk in chunks:
        rows = _run_rows(chunk, kind)
        runs, _ = read_runs(rows, with_bare=True, with_doubtful=with_doubtful, allow_code=allow_code)
        singles.add(runs)
    return singles


def _run_rows(frame: "DataFrame", kind: str) -> list[dict[str, Any]]:
    from epochcast.measure.evaluate.report_table import as_run

    rows: list[dict[str, Any]] = frame.to_dicts()
    return [as_run(row) for row in rows] if kind == "report" else rows


def _runs(frame: "DataFrame", model: CostModel, **options: Any) -> Predicted:
    from epochcast.measure.evaluate.evaluate_runs import forecast_runs

    return forecast_runs(_run_rows(frame, "runs"), model, **options)


def _report(frame: "DataFrame", model: CostModel, **options: Any) -> Predicted:
    from epochcast.measure.evaluate.evaluate_runs import forecast_runs

    return forecast_runs(_run_rows(frame, "report"), model, **options)


def _ops(frame: "DataFrame", model: CostModel, *, progress: Progress | None, **_: Any) -> Predicted:
    from epochcast.measure.evaluate.evaluate_ops import forecast_ops

    return forecast_ops(frame, model, progress)


def _layers(frame: "DataFrame", model: CostModel, **_: Any) -> Predicted:
    """Single-layer benchmarks as `layer_table` predicts them, with what the benchmark itself adds."""
    from epochcast.measure.evaluate.layer_table import FLAGS, SIZES, TEXTS, evaluate_layers
    from epochcast.measure.tables.typed_columns import typed

    frame, errors = typed(frame, sizes=SIZES, seconds=("seconds_median",), texts=TEXTS, flags=FLAGS)
    low, mid, high = evaluate_layers(frame, model)
    measured = frame["seconds_median"].fill_null(np.nan).to_numpy()
    failed_rows = ~(measured > 0)
    if "failed" in frame.columns:
        failed_rows |= frame["failed"].fill_null(False).to_numpy()
    failed_rows[list(errors)] = True
    failed: BadInput = BadInput("the measurement failed")
    failures = [FailedRow.because(int(i), "layer", errors.get(int(i), failed)) for i in np.flatnonzero(failed_rows)]
    failures += [FailedRow(int(i), "layer", "no forecast") for i in np.flatnonzero(np.isnan(mid) & ~failed_rows)]
    family = "conv2d" if "kernel_size" in frame.columns else "dense"
    labels = {"device": _device_names(frame), "family": [family] * len(frame)}
    is_forecast = ~np.isnan(mid) & ~failed_rows
    return Predicted(measured, low, mid, high, tuple(failures), labels, is_forecast)


def _device_names(frame: "DataFrame") -> list[str]:
    """The catalogue's names of the devices of a table; the table's own where it has none."""
    names: dict[str, str] = {}
    for name in frame["device"].unique():
        try:
            names[name] = find_device(str(name)).name
        except EpochcastError:
            names[name] = str(name)
    return [names[name] for name in frame["device"]]


_PREDICTORS: Mapping[str, Any] = {"runs": _runs, "report": _report, "ops": _ops, "layers": _layers}
