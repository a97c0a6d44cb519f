"""How far forecasts are from measurements.

    APE = |predicted − measured| / measured      MAPE its mean, beside it the median and the 90th percentile
    RMSE = √mean (predicted − measured)²         in seconds, so long rows dominate it
    coverage = fraction of measured values inside low … high
    width = high / low                           the median over rows
    interval score = ln(high/low) + 2/α · (ln(low/measured) if below, ln(measured/high) if above)      the mean

Errors and coverage are fractions, none is a percentage. The interval score (Winkler 1972; Gneiting and Raftery 2007) is
that of the logarithm of the time, so that short and long rows count alike. Smaller is better: an interval is rewarded
neither for being wide nor for missing. 1 − α is what intervals are calibrated to. Without rows all are None.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from epochcast.base.record import Record, record_fields
from epochcast.interval import COVERAGE

if TYPE_CHECKING:
    from polars import LazyFrame

Array = NDArray[np.float64]

SEPARATOR = " / "
MISS_COST = 2 / (1 - COVERAGE)
"""What a value outside its interval costs in the interval score, per unit of its distance."""


@dataclass(frozen=True, slots=True)
class Scores(Record):
    """The figures over `n` rows that were forecast; `failed` more could not be."""

    n: int
    failed: int
    mape: float | None
    median_ape: float | None
    p90_ape: float | None
    rmse_seconds: float | None
    coverage: float | None
    width: float | None
    interval_score: float | None


@dataclass(frozen=True, slots=True)
class MemoryScores(Record):
    """The figures over `n` rows with a measured peak; `bias` is the median of predicted / measured − 1."""

    n: int
    mape: float | None
    median_ape: float | None
    p90_ape: float | None
    bias: float | None
    coverage: float | None
    width: float | None
    interval_score: float | None


def memory_scores(measured: Array, low: Array, mid: Array, high: Array) -> MemoryScores:
    """The figures of peaks that were all forecast."""
    figures = scores(measured, low, mid, high)
    bias = float(np.median(mid / measured) - 1) if len(measured) else None
    shared = {name: getattr(figures, name) for name in record_fields(MemoryScores) if name != "bias"}
    return MemoryScores(bias=bias, **shared)


def absolute_percentage_errors(measured: Array, predicted: Array) -> Array:
    """|predicted − measured| / measured, as fractions."""
    return np.abs(predicted - measured) / measured


def scores(measured: Array, low: Array, mid: Array, high: Array, failed: int = 0) -> Scores:
    """The figures of rows that were all forecast."""
    if not len(measured):
        return Scores(0, failed, *(None,) * 7)
    coverage = float(np.mean((low <= measured) & (measured <= high)))
    errors = absolute_percentage_errors(measured, mid)
    mean = float(errors.mean())
    median, p90 = (float(value) for value in np.quantile(errors, (0.5, 0.9), overwrite_input=True))
    rmse_seconds = float(np.sqrt(np.mean((mid - measured) ** 2)))
    width = float(np.median(high / low))
    score = float(interval_scores(measured, low, high).mean())
    return Scores(len(measured), failed, mean, median, p90, rmse_seconds, coverage, width, score)


def interval_scores(measured: Array, low: Array, high: Array) -> Array:
    """Winkler's score of every interval, of the logarithms."""
    below, above = np.maximum(np.log(low / measured), 0), np.maximum(np.log(measured / high), 0)
    return np.log(high / low) + MISS_COST * (below + above)


def grouped_scores(rows: "LazyFrame", keys: Sequence[str]) -> dict[str, Scores]:
    """The figures of every group of scored rows (`scored_rows`) with the same values in the columns `keys`, joined by
    " / ", the largest first; in one pass over all rows.
    """
    import polars as pl

    measured, low, mid, high = (
        pl.col(name) for name in ("measured_seconds", "low_seconds", "predicted_seconds", "high_seconds")
    )
    chosen, failed = pl.col("is_forecast"), pl.col("reason").is_not_null() & ~pl.col("is_forecast")
    # Words by number: tables of millions of rows have few different ones.
    words = [name for name, dtype in rows.collect_schema().items() if name in keys and dtype == pl.String]
    figures = (
        rows.filter(chosen | failed)
        .select(
            pl.col(*keys),
            chosen.alias("forecast"),
            failed.alias("failed"),
            ((mid - measured).abs() / measured).alias("error"),
            ((mid - measured) ** 2).alias("square"),
            ((low <= measured) & (measured <= high)).alias("inside"),
            (high / low).alias("width"),
            ((low / measured).log().clip(0) + (measured / high).log().clip(0)).alias("missed"),
        )
        .with_columns(pl.col(words).cast(pl.Categorical))
        .group_by(keys, maintain_order=True)
        .agg(
            pl.col("forecast").sum().alias("n"),
            pl.col("failed").sum(),
            pl.col("error").filter("forecast").mean().alias("mape"),
            pl.col("error").filter("forecast").median().alias("median_ape"),
            pl.col("error").filter("forecast").quantile(0.9, "linear").alias("p90_ape"),
            pl.col("square").filter("forecast").mean().sqrt().alias("rmse_seconds"),
            pl.col("inside").filter("forecast").mean().alias("coverage"),
            pl.col("width").filter("forecast").median(),
            (pl.col("width").log() + MISS_COST * pl.col("missed")).filter("forecast").mean().alias("interval_score"),
        )
        .collect()
    )
    groups: dict[str, Scores] = {}
    for row in figures.to_dicts():
        name = SEPARATOR.join("" if value is None else str(value) for value in (row.pop(key) for key in keys))
        groups[name] = Scores(**row)
    return dict(sorted(groups.items(), key=lambda group: (-group[1].n, group[0])))
