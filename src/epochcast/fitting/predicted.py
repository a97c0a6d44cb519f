"""Forecasts of the rows of a table beside what was measured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epochcast.fitting.run_table import Failure
from epochcast.fitting.scores import Array

Progress = Callable[[int, int], None]
"""Called with how many rows are done and how many there are."""


@dataclass(frozen=True)
class Predicted:
    """One entry per row of the table. `asked` rows were forecast, `failures` could not be; a row that is neither was
    not part of the question (the single-GPU rows that `given_single` takes as known). `labels` are what rows are
    grouped by.
    """

    measured_seconds: Array
    low_seconds: Array
    mid_seconds: Array
    high_seconds: Array
    failures: tuple[Failure, ...]
    labels: Mapping[str, list[str]]
    asked: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.measured_seconds)
