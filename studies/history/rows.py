"""The measured runs of each source as a table of past jobs, with the physics of each row.

Rows count if their quality is "ok" and their step was timed. Of a source with more than `MOST_ROWS` so many are drawn
with a seed. Physics is the forecast (`forecasts.py`), as if the cost model had not been trained on the source
(`independent.py`); where a row names no network that can be built it is the roofline of its columns.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from epochcast.measure.tables.table_files import read_table
from epochcast.observe.history.job_table import Array, Physics
from epochcast.observe.history.job_table_reader import as_jobs, named
from epochcast.observe.history.learning_set import LearningSet, learning_set
from epochcast.observe.history.physics import FORECAST, by_columns, overheads_of, stand_ins_of
from epochcast.observe.history.roles import with_devices
from studies.history.forecasts import Kept, forecasts_of
from studies.history.independent import computed_of, trained_sources

TABLES = ("runs", "runs_more", "llm_runs")
LEAST_ROWS, MOST_ROWS = 100, 200
DEVELOPED_ON = (
    "lambda_tensorflow",
    "kernelbench_level3",
    "dgxc_benchmarking",
    "bigscience_tr11",
    "ultrascale_playbook",
    "vtrain_single",
    "pollux_osdi21",
    "tf_benchmarks_2017",
    "jcjohnson",
    "nvidia_dle",
)
"""Sources whose errors were looked at while the grey box was made."""
_NO_FEATURES = ("unit", "note")


@dataclass(frozen=True)
class Source:
    """One source of a table, with the rows that count; `reason` says why it has too few."""

    table: str
    name: str
    rows: pl.DataFrame
    reason: str = ""

    @property
    def is_trained(self) -> bool:
        """Whether the shipped cost model has seen steps of it."""
        return self.name in trained_sources()


def sources(data: Path) -> Iterator[Source]:
    """All of the tables of measured runs, in the order of their tables."""
    for table in TABLES:
        frame = read_table(data / f"{table}.parquet")
        for name in frame["source"].unique(maintain_order=True).to_list():
            mine = frame.filter(pl.col("source") == name)
            good = mine.filter(pl.col("quality") == "ok")
            timed = good.filter(pl.col("step_seconds").is_not_null() | pl.col("samples_per_second").is_not_null())
            yield Source(table, name, timed, _reason(mine, good, timed))


def _reason(mine: pl.DataFrame, good: pl.DataFrame, timed: pl.DataFrame) -> str:
    if len(timed) >= LEAST_ROWS:
        return ""
    if not len(good):
        return f"none of its {len(mine)} rows is of good quality: {mine['quality'].mode().sort()[0]}"
    return f"{len(timed)} of its {len(mine)} rows were timed, fewer than {LEAST_ROWS}"


@dataclass(frozen=True)
class Known:
    """The rows to learn from, and how many have their forecast, their roofline, or were left out and why."""

    jobs: LearningSet
    forecast: int
    roofline: int
    left_out: int


def known_of(source: Source, forecasts: Path, most_rows: int = MOST_ROWS) -> Known:
    """The rows of one source with their physics."""
    frame = _drawn(source.rows, most_rows)
    kept = forecasts_of(frame.to_dicts(), forecasts / f"{source.name}.csv")
    measured = _measured(frame, kept)
    seconds, overheads = _physics(source, frame, kept)
    jobs = with_devices(as_jobs(named(frame)))
    columns, kinds = by_columns(jobs)
    is_forecast = np.isfinite(seconds)
    is_seen = np.array([np.isfinite(one.seconds) for one in kept]) & ~is_forecast
    is_used = np.isfinite(measured) & ~is_seen
    physics = Physics(
        np.where(is_forecast, seconds, columns)[is_used],
        np.where(is_forecast, FORECAST, kinds)[is_used].astype(np.str_),
        np.where(is_forecast, overheads, 1.0)[is_used],
        stand_ins={kind: values[is_used] for kind, values in stand_ins_of(jobs).items()},
    )
    frame = frame.with_columns(pl.Series("step_seconds", measured)).filter(is_used)
    found = learning_set(named(frame), "step_seconds", physics=physics)
    learned_from = replace(found, features=tuple(name for name in found.features if name not in _NO_FEATURES))
    forecast = int((is_forecast & is_used).sum())
    return Known(learned_from, forecast, int(is_used.sum()) - forecast, int((~is_used).sum()))


def _drawn(frame: pl.DataFrame, most_rows: int) -> pl.DataFrame:
    if len(frame) <= most_rows:
        return frame
    return frame[np.sort(np.random.default_rng(0).permutation(len(frame))[:most_rows])]


def _measured(frame: pl.DataFrame, kept: list[Kept]) -> Array:
    """As `epochcast evaluate` reads a step; of rows that it cannot read, the step that the table says itself."""
    said = frame["step_seconds"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    read = np.array([one.measured for one in kept])
    found = np.where(np.isfinite(read), read, said)
    return np.where(found > 0, found, np.nan)


def _physics(source: Source, frame: pl.DataFrame, kept: list[Kept]) -> tuple[Array, Array]:
    """Forecast steps that are independent of the source, NaN where there is none, and their overheads."""
    seconds, exposed = (np.array([getattr(one, name) for one in kept]) for name in ("seconds", "exposed_comm"))
    if source.is_trained:
        rows: list[dict[str, Any]] = source.rows.to_dicts()
        seconds = exposed + computed_of(source.name, rows, frame.to_dicts())
    return seconds, overheads_of(seconds, exposed)
