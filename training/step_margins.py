"""The margins of intervals (`predict.forecast.step_margins`), fitted to measured steps.

All training steps of the accuracy page count: those that were left out of the training, and those of sources that no
training reads, forecast by the shipped model. With e = log(measured/predicted) and lo < 0 < hi the logarithms of the
ends over the middle, a step needs

    below ≥ √(e² - lo²) where e < lo        above ≥ √(e² - hi²) where e > hi

The margin of a group is the one that holds 90 % of its steps with the least width. Each pair of source and device
weighs as the square root of its steps, as in `training.spreads`. Steps on known GPUs also count in the group of their
work and place, which has no smaller a margin than theirs. A group with fewer than LEAST_SOURCES takes the steps of the
same work wherever it ran. To say how well this holds for a source that nobody has seen, the study of accuracy fits it
again without each source.
"""

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from epochcast.interval import COVERAGE
from epochcast.predict.forecast.step_margins import (
    ADAPTERS,
    CONVOLUTIONS,
    FILE,
    KNOWN,
    NO_MARGIN,
    NVIDIA,
    OTHER_VENDORS,
    PRODUCTS,
    StepMargin,
    group_name,
)
from training.files import PACKAGE
from training.spreads import KNOWN_RUNS, weighted_quantile

Array = NDArray[np.float64]

TOML = PACKAGE / "predict" / "forecast" / FILE
LEAST_SOURCES = 4
# No margin is more than a factor of three: beyond it the middle is wrong, and a wider interval says nothing.
MOST_MARGIN = float(np.log(3))
# How the steps outside are divided between both ends.
_TAILS = np.linspace(0, 1 - COVERAGE, 21)
_PLACED = tuple(
    (work, gpus, nodes) for work in (ADAPTERS, PRODUCTS, CONVOLUTIONS) for gpus, nodes in ((1, 1), (2, 1), (2, 2))
)
GROUPS = (
    *dict.fromkeys(group_name(NVIDIA, *placed, is_known=known) for placed in _PLACED for known in (True, False)),
    OTHER_VENDORS,
)
"""Groups of known GPUs come before those of their work and place."""


def fitted_margins(steps: pl.DataFrame) -> dict[str, StepMargin]:
    """The margin of every group with steps: `group`, `source`, `device`, and log_error, log_low, log_high of each."""
    margins: dict[str, StepMargin] = {}
    for group in GROUPS:
        mine = enough(steps, group)
        if len(mine):
            known = margins.get(f"{group}, {KNOWN}", NO_MARGIN)
            margins[group] = StepMargin(*(max(ends) for ends in zip(_margin(mine), known, strict=True)))
    return margins


def enough(steps: pl.DataFrame, group: str) -> pl.DataFrame:
    """The steps of a group, on known GPUs too; if they come from too few sources, those of the same work anywhere."""
    mine = steps.filter(pl.col("group").str.starts_with(group))
    if group == OTHER_VENDORS or mine["source"].n_unique() >= LEAST_SOURCES:
        return mine
    work = group.partition(",")[0]
    return steps.filter(pl.col("group").str.starts_with(work))


def _margin(steps: pl.DataFrame) -> StepMargin:
    counted = steps.with_columns(count=pl.len().over("source", "device"))
    count = counted["count"].to_numpy()
    weights = np.sqrt(count) / np.maximum(count, KNOWN_RUNS)
    error, low, high = (counted[name].to_numpy() for name in ("log_error", "log_low", "log_high"))
    below, above = _lacking(-error, -low), _lacking(error, high)
    candidates = [
        StepMargin(weighted_quantile(below, weights, 1 - tail), weighted_quantile(above, weights, COVERAGE + tail))
        for tail in _TAILS
    ]
    bounded = [StepMargin(*(min(end, MOST_MARGIN) for end in margin)) for margin in candidates]

    def width(margin: StepMargin) -> float:
        ends = np.hypot(low, margin.below) + np.hypot(high, margin.above)
        return float(np.average(ends, weights=weights))

    return min(bounded, key=width)


def _lacking(error: Array, end: Array) -> Array:
    """What the square of an end needs more to reach the error on its side."""
    return np.where(error > 0, np.sqrt(np.maximum(0.0, error**2 - end**2)), 0.0)


def toml(margins: Mapping[str, StepMargin], steps: pl.DataFrame) -> str:
    """The shipped file."""
    parts = [_HEAD]
    for group, margin in margins.items():
        mine = enough(steps, group)
        parts.append(
            f'[[group]]\nname = "{group}"\nbelow = {margin.below:.3f}\nabove = {margin.above:.3f}\n'
            f"rows = {len(mine)}\nsources = {mine['source'].n_unique()}\n"
            'source = "python -m studies.accuracy.run --margins"\n'
        )
    return "\n".join(parts)


_HEAD = """# What is added to the logarithms of mid/low and high/mid of a step, as a square to their squares, by group
# (predict/forecast/step_margins.py). Fitted to measured training steps of public sources that the forecast had
# not seen. Written by `python -m studies.accuracy.run --margins`.
"""
