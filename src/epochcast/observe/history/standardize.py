"""Numbers with mean 0 and deviation 1."""

from dataclasses import dataclass

import numpy as np

from epochcast.base.record import Record
from epochcast.errors import BadInput
from epochcast.observe.history.job_table import Array


@dataclass(frozen=True)
class Standardization(Record):
    """z = (x − mean) / scale."""

    mean: Array
    scale: Array

    def __post_init__(self) -> None:
        check_finite("scaling", self.mean, self.scale)
        if len(self.mean) != len(self.scale) or not (self.scale > 0).all():
            raise BadInput("a scaling needs a mean and a scale above 0 for every feature")

    @classmethod
    def of(cls, rows: Array) -> "Standardization":
        """That gives these rows mean 0 and deviation 1; constant columns stay."""
        deviation = rows.std(axis=0)
        return cls(rows.mean(axis=0), np.where(deviation > 1e-12, deviation, 1.0))

    def scaled(self, rows: Array) -> Array:
        """Of every row."""
        return np.asarray((rows - self.mean) / self.scale)


def check_finite(kind: str, *arrays: Array) -> None:
    """Raise where a number is none."""
    if not all(np.isfinite(array).all() for array in arrays):
        raise BadInput(f"a predictor of kind {kind} has numbers that are not finite")
