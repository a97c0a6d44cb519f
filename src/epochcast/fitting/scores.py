"""How far forecasts are from measurements.

    APE = |predicted − measured| / measured      MAPE its mean, beside it the median and the 90th percentile
    RMSE = √mean (predicted − measured)²         in seconds, so long rows dominate it
    coverage = fraction of measured values inside low … high

All are fractions, none is a percentage. Without rows all are None.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scores:
    """The figures over `n` rows that were forecast; `failed` more could not be."""

    n: int
    failed: int
    mape: float | None
    median_ape: float | None
    p90_ape: float | None
    rmse_seconds: float | None
    coverage: float | None

    def as_dict(self) -> dict[str, float | int | None]:
        """With the names of the JSON contract."""
        return {name: getattr(self, name) for name in self.__slots__}


def absolute_percentage_errors(measured: Array, predicted: Array) -> Array:
    """|predicted − measured| / measured, as fractions."""
    return np.abs(predicted - measured) / measured


def scores(measured: Array, low: Array, mid: Array, high: Array, failed: int = 0) -> Scores:
    """The figures of rows that were all forecast."""
    if not len(measured):
        return Scores(0, failed, None, None, None, None, None)
    errors = absolute_percentage_errors(measured, mid)
    return Scores(
        len(measured),
        failed,
        float(errors.mean()),
        float(np.median(errors)),
        float(np.quantile(errors, 0.9)),
        float(np.sqrt(np.mean((mid - measured) ** 2))),
        float(np.mean((low <= measured) & (measured <= high))),
    )


def grouped_scores(
    keys: Sequence[str],
    measured: Array,
    low: Array,
    mid: Array,
    high: Array,
    is_forecast: NDArray[np.bool_],
    is_failed: NDArray[np.bool_],
) -> dict[str, Scores]:
    """The figures of every group of rows with the same key, the largest first; in one pass over all rows."""
    import polars as pl

    frame = pl.DataFrame(
        {"key": pl.Series(keys, dtype=pl.String), "forecast": is_forecast, "failed": is_failed & ~is_forecast}
        | {"error": absolute_percentage_errors(measured, mid), "square": (mid - measured) ** 2}
        | {"inside": (low <= measured) & (measured <= high)}
    )
    chosen = pl.col("forecast")
    found = (
        frame.filter(chosen | pl.col("failed"))
        .group_by("key")
        .agg(
            chosen.sum().alias("n"),
            pl.col("failed").sum(),
            pl.col("error").filter(chosen).mean().alias("mape"),
            pl.col("error").filter(chosen).median().alias("median_ape"),
            pl.col("error").filter(chosen).quantile(0.9, "linear").alias("p90_ape"),
            pl.col("square").filter(chosen).mean().sqrt().alias("rmse_seconds"),
            pl.col("inside").filter(chosen).mean().alias("coverage"),
        )
        .sort("n", "key", descending=[True, False])
    )
    return {str(row.pop("key")): Scores(**row) for row in found.to_dicts()}
