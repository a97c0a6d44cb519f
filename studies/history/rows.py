"""The measured runs of each source as a table of past jobs, with the forecast of each row.

Rows count if their quality is "ok" and they can be forecast. Forecasts take long (an hour for all tables on two slow
cores), so they are kept in a folder. They are those of the shipped cost model, which has seen single-GPU steps of some
of these sources while it was trained (`docs/model-card.md`); black boxes have not.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from epochcast.cost.registry import find_cost_model
from epochcast.fitting.evaluate_runs import forecast_runs
from epochcast.fitting.table import read_table
from epochcast.history.jobs import Physics
from epochcast.history.learning_set import LearningSet, learning_set
from epochcast.history.physics import FORECAST, alone_of
from epochcast.history.reading import named

# Table, source, and the splits that it has rows for.
SOURCES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("runs_more", "lambda_tensorflow", ("random", "batch>60%", "gpus>50%", "power>60%")),
    ("runs_more", "kernelbench_level3", ("random", "power>60%")),
    ("llm_runs", "dgxc_benchmarking", ("random", "batch>60%", "gpus>50%", "power>60%", "deeper")),
    ("llm_runs", "bigscience_tr11", ("random", "gpus>50%")),
    ("llm_runs", "ultrascale_playbook", ("random", "batch>60%", "gpus>50%", "deeper")),
    ("llm_runs", "vtrain_single", ("random", "batch>60%", "gpus>50%", "deeper")),
    ("runs", "nvidia_dle", ("random", "batch>60%", "gpus>50%", "power>60%")),
    ("runs", "pollux_osdi21", ("random", "batch>60%", "gpus>50%")),
    ("runs", "timm", ("random", "batch>60%", "deeper")),
    ("runs", "torchvision_gpu_bench", ("random", "gpus>50%", "power>60%", "deeper")),
    ("runs", "tf_benchmarks_2017", ("random", "gpus>50%", "power>60%")),
)
EVERY = {"pollux_osdi21": 4, "timm": 2}
"""Of the sources with thousands of rows every so many."""


def jobs_of(data: Path, forecasts: Path, table: str, source: str) -> LearningSet:
    """The rows of one source to learn from."""
    frame = read_table(data / f"{table}.parquet")
    frame = frame.filter((pl.col("source") == source) & (pl.col("quality") == "ok"))[:: EVERY.get(source, 1)]
    kept = _forecast(frame, forecasts, source)
    is_known = np.isfinite(kept["measured"]) & np.isfinite(kept["seconds"])
    frame = frame.with_columns(pl.Series("step_seconds", kept["measured"])).filter(is_known)
    seconds, overheads = kept["seconds"][is_known], kept["overhead"][is_known]
    physics = Physics(seconds, np.full(len(seconds), FORECAST), overheads)
    found = learning_set(named(frame), "step_seconds", physics=physics)
    return replace(found, features=tuple(name for name in found.features if name not in ("unit", "note")))


def _forecast(frame: pl.DataFrame, forecasts: Path, source: str) -> dict[str, np.ndarray]:
    """Measured and forecast seconds of every row, and what several GPUs add; kept in a file."""
    file = forecasts / f"{source}.csv"
    if file.exists():
        kept = pl.read_csv(file)
        if len(kept) == len(frame):
            return {name: kept[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in kept.columns}
    rows = frame.to_dicts()
    model = find_cost_model()
    found = forecast_runs(rows, model)
    alone = [alone_of(row) for row in rows]
    asked = [place for place, row in enumerate(alone) if row is not None]
    singles = found.mid_seconds.copy()
    if asked:
        singles[asked] = forecast_runs([alone[place] or {} for place in asked], model).mid_seconds
    with np.errstate(invalid="ignore"):
        overhead = np.maximum(found.mid_seconds / singles, 1.0)
    columns = {
        "measured": found.measured_seconds,
        "seconds": found.mid_seconds,
        "overhead": np.where(np.isfinite(overhead), overhead, 1.0),
    }
    forecasts.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(columns).write_csv(file)
    return columns
