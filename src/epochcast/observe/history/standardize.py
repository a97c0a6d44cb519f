"""Numbers with mean 0 and deviation 1."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epochcast.errors import BadInput
from epochcast.observe.history.job_table import Array


@dataclass(frozen=True)
class Standardization:
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

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"mean": self.mean.tolist(), "scale": self.scale.tolist()}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "Standardization":
        """Back from JSON."""
        return cls(np.array(document["mean"], dtype=np.float64), np.array(document["scale"], dtype=np.float64))


def check_finite(kind: str, *arrays: Array) -> None:
    """Raise where a number is none."""
    if not all(np.isfinite(array).all() for array in arrays):
        raise BadInput(f"a predictor of kind {kind} has numbers that are not finite")
