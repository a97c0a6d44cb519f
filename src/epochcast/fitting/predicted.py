"""Forecasts and measurements of the rows of a table."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from epochcast.fitting.run_table import Failure
from epochcast.fitting.scores import Array

Progress = Callable[[int, int], None]
"""Called with the number of rows done and the number of all rows."""


@dataclass(frozen=True)
class Predicted:
    """One entry per row of the table. Rows in `is_forecast` were forecast, those in `failures` could not be. The others
    were not to be forecast (the single-GPU rows that `given_single` uses). `labels` are values to group rows by,
    `notes` what was assumed, with the number of rows of each.
    """

    measured_seconds: Array
    low_seconds: Array
    mid_seconds: Array
    high_seconds: Array
    failures: tuple[Failure, ...]
    labels: Mapping[str, list[str]]
    is_forecast: NDArray[np.bool_]
    notes: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.measured_seconds)


def joined(parts: Sequence[Predicted]) -> Predicted:
    """All pieces of a table as one; rows are counted on from piece to piece."""
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(len(part) for part in parts)])
    failures = [
        replace(failure, row_index=failure.row_index + int(start))
        for part, start in zip(parts, starts, strict=False)
        for failure in part.failures
    ]
    notes: Counter[str] = Counter()
    for part in parts:
        notes.update(part.notes)
    measured, low, mid, high = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("measured_seconds", "low_seconds", "mid_seconds", "high_seconds")
    )
    labels = {name: [label for part in parts for label in part.labels[name]] for name in parts[0].labels}
    is_forecast = np.concatenate([part.is_forecast for part in parts])
    return Predicted(measured, low, mid, high, tuple(failures), labels, is_forecast, dict(notes.most_common()))
