"""The margins of the intervals on the page: fitted without the source that is scored.

A user is a source that nobody has seen, so the steps of a source get the margins (`predict.forecast.step_margins`)
that all other sources give. The shipped ones are fitted to all of them: `python -m studies.accuracy.run --margins`.
"""

from dataclasses import replace
from math import exp, log, sqrt

import polars as pl

from epochcast.interval import Interval
from epochcast.predict.forecast.step_margins import NO_MARGIN, StepMargin
from training.files import write
from training.step_margins import TOML, fitted_margins, toml

_LOW, _MIDDLE, _HIGH = pl.col("low_seconds"), pl.col("predicted_seconds"), pl.col("high_seconds")


def without_margin(seconds: Interval, margin: StepMargin) -> Interval:
    """What `widened` made an interval of."""
    below, above = log(seconds.mid / seconds.low), log(seconds.high / seconds.mid)
    bare = [sqrt(max(0.0, end**2 - by**2)) for end, by in ((below, margin.below), (above, margin.above))]
    return replace(seconds, low=seconds.mid * exp(-bare[0]), high=seconds.mid * exp(bare[1]))


def scored(steps: pl.DataFrame) -> pl.DataFrame:
    """Answered training steps with log_error, log_low and log_high, all over the forecast."""
    answered = steps.filter(pl.col("is_forecast") & pl.col("group").is_not_null())
    return answered.with_columns(
        log_error=(pl.col("measured_seconds") / _MIDDLE).log(),
        log_low=(_LOW / _MIDDLE).log(),
        log_high=(_HIGH / _MIDDLE).log(),
    )


def without_own_source(steps: pl.DataFrame, bare: pl.DataFrame) -> pl.DataFrame:
    """The steps with the margins that all sources but their own give; `bare` are all steps without margins."""
    fitted_to = scored(bare)
    parts = []
    for (source,), mine in steps.partition_by("source", maintain_order=True, as_dict=True).items():
        margins = fitted_margins(fitted_to.filter(pl.col("source") != source))
        each = [margins.get(group, NO_MARGIN) for group in mine["group"].to_list()]
        below, above = (pl.Series([margin[end] for margin in each], dtype=pl.Float64) for end in (0, 1))
        low = _MIDDLE * (-((_MIDDLE / _LOW).log() ** 2 + below**2).sqrt()).exp()
        high = _MIDDLE * ((_HIGH / _MIDDLE).log() ** 2 + above**2).sqrt().exp()
        parts.append(mine.with_columns(low_seconds=low, high_seconds=high))
    return pl.concat(parts, how="diagonal_relaxed")


def ship(bare: pl.DataFrame) -> None:
    """Write the margins that all sources together give."""
    steps = scored(bare)
    write(TOML, toml(fitted_margins(steps), steps).encode())
