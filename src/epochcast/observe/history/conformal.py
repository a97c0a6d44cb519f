"""Intervals that hold the truth as often as they say, whatever the model (Vovk et al. 2005; Papadopoulos 2008).

With scores s_i = |log y_i − log ŷ_i| of rows that a model had not seen, the interval of a new row is

    ŷ/q … ŷ·q,    log q = the ⌈(n + 1)·coverage⌉-th smallest s_i

by group of rows where a group has enough of them (Mondrian), else over all. Rows unlike those learned from (a category
that was not seen, a number beyond the largest) have scores of their own: those of rows predicted without theirs. Where
the past has too few values of a column to try that, other people's past jobs say how far off such rows are (`UNTRIED`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

import numpy as np

from epochcast.base.record import Record
from epochcast.errors import BadInput
from epochcast.interval import COVERAGE
from epochcast.observe.history.job_table import NO_FORECAST, Array, Words

# A group with fewer rows than this has no quantile of its own: at 90 % the largest of 19 is hardly one.
LEAST_GROUP = 30
# What is new is at least so much less sure than the least sure of what is known, even if the past shows no difference.
WIDENED = 1.25
# log q of what is new in a column that could not be tried. Of the grey box on the splits of `studies/history`, 90 %
# of the rows with a faster device than all that were learned from are within exp(0.80) in the median of seven sources,
# and 90 % of those beyond anything within exp(0.72) in three quarters of 35 extrapolations (|log(predicted/measured)|).
UNTRIED_DEVICE, UNTRIED = 0.8, 0.72
# Where too few scores are known for a quantile, the largest of them is stretched by this.
STRETCH = 1.5


def quantile(scores: Array, coverage: float = COVERAGE) -> float:
    """The ⌈(n + 1)·coverage⌉-th smallest; with too few scores more than the largest."""
    if not len(scores):
        raise BadInput("an interval needs at least one score")
    place = ceil((len(scores) + 1) * coverage - 1e-9)
    ordered = np.sort(scores)
    return float(ordered[place - 1]) if place <= len(ordered) else STRETCH * float(ordered[-1])


@dataclass(frozen=True)
class Widths(Record):
    """log q over all rows, by group, and of rows that are new in one respect (the name of a column)."""

    overall: float
    groups: Mapping[str, float] = field(default_factory=dict)
    new: Mapping[str, float] = field(default_factory=dict)
    group_column: str | None = None
    coverage: float = COVERAGE

    def __post_init__(self) -> None:
        values = (self.overall, *self.groups.values(), *self.new.values())
        if not all(np.isfinite(value) and value >= 0 for value in values):
            raise BadInput("widths of intervals are 0 or more")

    def of(self, groups: Sequence[str] | Words, new: Sequence[Sequence[str]]) -> Array:
        """log q of every row: that of its group, and at least that of everything new about it."""
        return np.array(
            [
                max([self.groups.get(str(group), self.overall), *(self.new.get(name, self.widest) for name in names)])
                for group, names in zip(groups, new, strict=True)
            ]
        )

    @property
    def widest(self) -> float:
        """For what is new in a respect that was never tried: more than everything that was, but for rows without a
        forecast.
        """
        tried = [width for name, width in self.new.items() if name != NO_FORECAST]
        return STRETCH * max(self.overall, *tried, *self.groups.values(), 0.0)


def log_scores(target: Array, predicted: Array) -> Array:
    """|log y − log ŷ|."""
    return np.asarray(np.abs(np.log(target) - np.log(predicted)))


def widths(
    scores: Array,
    groups: Words | None = None,
    *,
    group_column: str | None = None,
    new: Mapping[str, Array] | None = None,
    coverage: float = COVERAGE,
) -> Widths:
    """From the scores of rows that were not seen; `new` are those of rows that were new in a respect, none where that
    could not be tried.
    """
    overall = quantile(scores, coverage)
    by_group = {}
    if groups is not None:
        for group in np.unique(groups):
            mine = scores[groups == group]
            if len(mine) >= LEAST_GROUP:
                by_group[str(group)] = quantile(mine, coverage)
    least = WIDENED * max(overall, *by_group.values(), 0.0)
    tried = {
        name: max(least, quantile(values, coverage) if len(values) else _untried(name))
        for name, values in (new or {}).items()
    }
    return Widths(overall, by_group, tried, group_column, coverage)


def _untried(column: str) -> float:
    return UNTRIED_DEVICE if column == "device" else UNTRIED
