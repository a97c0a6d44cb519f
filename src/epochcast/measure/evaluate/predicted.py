"""Forecasts and measurements of the rows of a table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from epochcast.measure.evaluate.scores import Array
from epochcast.measure.tables.row_errors import FailedRow

Progress = Callable[[int, int], None]
"""Called with the number of rows done and the number of all rows."""


@dataclass(frozen=True)
class Predicted:
    """One entry per row of the table. Rows in `is_forecast` were forecast, those in `failures` could not be. The others
    were not to be forecast (the single-GPU rows that `given_single` uses). `labels` are values to group rows by,
    `notes` what was assumed, with the number of rows of each. `parts` are seconds of a forecast step by name, exposed
    communication and host among them, NaN where a row has none.
    """

    measured_seconds: Array
    low_seconds: Array
    mid_seconds: Array
    high_seconds: Array
    failures: tuple[FailedRow, ...]
    labels: Mapping[str, Sequence[str]]
    is_forecast: NDArray[np.bool_]
    notes: Mapping[str, int] = field(default_factory=dict)
    parts: Mapping[str, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.measured_seconds)
