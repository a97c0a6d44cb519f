"""Forecasts against measurements: errors and interval coverage, overall and by group.

A table of measured runs, single ops or single layers is recognised by its columns (`table.TABLE_COLUMNS`). Every row is
forecast as a user's job would be. A row that cannot be forecast is a failure with a reason, and is counted. Errors are
over the rows that were forecast.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epochcast.cost.model import CostModel
from epochcast.cost.registry import find_cost_model
from epochcast.errors import BadInput, EpochcastError, UnknownName
from epochcast.fitting.predicted import Predicted, Progress
from epochcast.fitting.refusals import Refusal, refusals
from epochcast.fitting.run_table import Failure
from epochcast.fitting.scores import Scores, absolute_percentage_errors, scores
from epochcast.fitting.scoring_profile import scoring_profile
from epochcast.fitting.table import kind_of, polars, read_table, with_known_columns, write_table
from epochcast.frames import as_pandas
from epochcast.hardware.catalogue import find_device

if TYPE_CHECKING:
    from polars import DataFrame

# Columns of a table that identify a row; they are copied to the file of results.
_ROW_COLUMNS = (
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
SEPARATOR = " / "


@dataclass(frozen=True)
class Evaluation:
    """Predicted and measured seconds of every row; `by` names the columns to group by."""

    kind: str
    predicted: Predicted
    by: tuple[str, ...]
    table: "DataFrame"

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The rows that could not be forecast."""
        return self.predicted.failures

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """The same rows, grouped by reason."""
        return refusals(self.failures)

    @property
    def notes(self) -> dict[str, int]:
        """What was assumed to answer rows, and how many rows of each."""
        return dict(self.predicted.notes)

    @property
    def scores(self) -> Scores:
        """The scores over all rows."""
        return self._scores(self.predicted.is_forecast, len(self.failures))

    def groups(self) -> dict[str, Scores]:
        """The scores of each group of `by`, its values joined by " / "; the largest group first."""
        if not self.by:
            return {}
        columns = [self._label(name) for name in self.by]
        keys = [SEPARATOR.join(values) for values in zip(*columns, strict=True)]
        failed = Counter(keys[failure.row_index] for failure in self.failures)
        places: dict[str, list[int]] = {key: [] for key in failed}
        for row_index in np.flatnonzero(self.predicted.is_forecast):
            places.setdefault(keys[row_index], []).append(int(row_index))
        scores = {key: self._scores(np.array(rows, dtype=int), failed[key]) for key, rows in places.items()}
        return dict(sorted(scores.items(), key=lambda item: (-item[1].n, item[0])))

    def _label(self, name: str) -> list[str]:
        """The values of a column to group by: our labels, else those of the table."""
        if name in self.predicted.labels:
            return self.predicted.labels[name]
        return ["" if value is None else str(value) for value in self.table[name]]

    def _scores(self, is_chosen: Any, failed: int) -> Scores:
        p = self.predicted
        measured, low, mid, high = (
            a[is_chosen] for a in (p.measured_seconds, p.low_seconds, p.mid_seconds, p.high_seconds)
        )
        return scores(measured, low, mid, high, failed)

    def as_dict(self) -> dict[str, Any]:
        """The JSON contract of `epochcast evaluate`."""
        total = self.scores.as_dict()
        return {
            **total,
            "failed": [{"row": f.row_index, "model": f.model, "reason": f.reason} for f in self.failures],
            "refusals": [refusal.as_dict() for refusal in self.refusals],
            "notes": [{"note": note, "rows": rows} for note, rows in self.notes.items()],
            "groups": {name: group.as_dict() for name, group in self.groups().items()},
        }

    def frame(self) -> "DataFrame":
        """A row for each row of the table that was forecast or failed: measured, predicted, error or reason."""
        pl = polars()
        p = self.predicted
        reasons = {f.row_index: f.reason for f in self.failures}
        rows = [i for i in range(len(p)) if p.is_forecast[i] or i in reasons]
        inside = (p.low_seconds <= p.measured_seconds) & (p.measured_seconds <= p.high_seconds)
        columns: dict[str, Any] = {"row": range(len(p)), **p.labels}
        columns |= {name: self.table[name] for name in _ROW_COLUMNS if name in self.table.columns}
        columns["measured_seconds"] = p.measured_seconds
        columns["low_seconds"], columns["predicted_seconds"], columns["high_seconds"] = (
            p.low_seconds,
            p.mid_seconds,
            p.high_seconds,
        )
        columns["ape"] = absolute_percentage_errors(p.measured_seconds, p.mid_seconds)
        columns["inside"] = [bool(inside[i]) if p.is_forecast[i] else None for i in range(len(p))]
        columns["reason"] = [reasons.get(i) for i in range(len(p))]
        result: DataFrame = pl.DataFrame(columns, strict=False)[rows].with_columns(
            pl.col("measured_seconds", "low_seconds", "predicted_seconds", "high_seconds", "ape").fill_nan(None)
        )
        return result

    def to_polars(self) -> "DataFrame":
        """The same as `frame`, by the name that all answers have."""
        return self.frame()

    def to_pandas(self) -> Any:
        """The same as a pandas table."""
        return as_pandas(self.frame().to_dicts())

    def save(self, path: str | Path) -> None:
        """Write `frame` as .csv, .parquet or .jsonl, never half written."""
        write_table(self.frame(), path)


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
    frame = with_known_columns(read_table(table) if isinstance(table, str | Path) else table)
    kind = kind_of(frame.columns)
    if given_single and kind not in ("runs", "report"):
        raise BadInput(f"given_single needs runs on several GPUs; this is a table of {kind}")
    columns = {*frame.columns, "device", "family"}
    for name in by:
        if name not in columns:
            raise UnknownName("column to group by", name, columns)
    model = cost_model or find_cost_model()
    corrected = None if profile is None else scoring_profile(Path(profile), model)
    if corrected is not None and kind not in ("runs", "report"):
        raise BadInput(f"profile scores runs; this is a table of {kind}")
    predicted = _PREDICTORS[kind](
        frame,
        model if corrected is None else corrected.model,
        given_single=given_single,
        with_doubtful=with_doubtful,
        profile=corrected,
        allow_code=allow_code,
        workers=workers,
        progress=progress,
    )
    return Evaluation(kind, predicted, tuple(by), frame)


def _runs(frame: "DataFrame", model: CostModel, **options: Any) -> Predicted:
    from epochcast.fitting.evaluate_runs import forecast_runs

    return forecast_runs(frame.to_dicts(), model, **options)


def _report(frame: "DataFrame", model: CostModel, **options: Any) -> Predicted:
    from epochcast.fitting.evaluate_runs import forecast_runs
    from epochcast.fitting.report_table import as_run

    return forecast_runs([as_run(row) for row in frame.to_dicts()], model, **options)


def _ops(frame: "DataFrame", model: CostModel, *, progress: Progress | None, **_: Any) -> Predicted:
    from epochcast.fitting.evaluate_ops import forecast_ops

    return forecast_ops(frame, model, progress)


def _layers(frame: "DataFrame", model: CostModel, **_: Any) -> Predicted:
    """Single-layer benchmarks as `layer_table` predicts them, with what the benchmark itself adds."""
    try:
        from epochcast.fitting.layer_table import evaluate_layers
    except ImportError:
        raise BadInput("single-layer tables are not supported yet") from None
    low, mid, high = evaluate_layers(frame, model)
    measured = frame["seconds_median"].cast(polars().Float64).to_numpy()
    failed_rows = ~(measured > 0)
    if "failed" in frame.columns:
        failed_rows |= frame["failed"].fill_null(False).to_numpy()
    failures = [Failure(int(i), "layer", "the measurement failed") for i in np.flatnonzero(failed_rows)]
    failures += [Failure(int(i), "layer", "no forecast") for i in np.flatnonzero(np.isnan(mid) & ~failed_rows)]
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
