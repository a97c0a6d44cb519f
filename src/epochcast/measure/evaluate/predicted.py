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
class PredictedMemory:
    """One entry per row of the table: the measured peak and its forecast in bytes (NaN where there is none), which
    number it is, the verdict of the forecast with its probability, and whether the run ran out of memory.
    """

    measured_bytes: Array
    low_bytes: Array
    mid_bytes: Array
    high_bytes: Array
    kinds: Sequence[str | None]
    verdicts: Sequence[str | None]
    probabilities: Array
    ran_out: NDArray[np.bool_]


@dataclass(frozen=True)
class Predicted:
    """One entry per row of the table. Rows in `is_forecast` were forecast, those in `failures` could not be. The others
    were not to be forecast (the single-GPU rows that `given_single` uses). `labels` are values to group rows by,
    `notes` what was assumed, with the number of rows of each. `parts` are seconds of a forecast step by name, exposed
    communication and host among them, NaN where a row has none. `memory` is what rows say of memory, if any does.
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
    memory: PredictedMemory | None = None

    def __len__(self) -> int:
        return len(self.measured_seconds)
