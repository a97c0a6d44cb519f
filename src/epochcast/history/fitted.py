"""A fitted model: stages that add up, on the scale of the target or of its logarithm, upon physics or upon nothing.

    log y = log(physics) + Σ_stages f_s(features)         grey box: history corrects physics
    log y = Σ_stages f_s(features)                        a model of the logarithm
    y     = Σ_stages f_s(features)                        a model of the target itself

A target is a time or a size and so above 0: what a model of the target itself gives is at least `least`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epochcast.errors import BadInput
from epochcast.history.design import Design
from epochcast.history.jobs import Array, Jobs
from epochcast.history.predictors import Predictor, predictor_from

# A logarithm beyond this is no time: exp(±60) s.
MOST_LOG = 60.0


@dataclass(frozen=True)
class Stage:
    """Features and the function of them."""

    design: Design
    predictor: Predictor

    def values(self, jobs: Jobs) -> Array:
        """Of every row."""
        return self.predictor.values(self.design.matrix(jobs))

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"design": self.design.as_dict(), "predictor": self.predictor.as_dict()}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "Stage":
        """Back from JSON."""
        return cls(Design.from_dict(document["design"]), predictor_from(document["predictor"]))


@dataclass(frozen=True)
class Fitted:
    """`name` is that of the table of models. `is_log`: stages give the logarithm; `has_physics`: above physics."""

    name: str
    stages: tuple[Stage, ...]
    is_log: bool
    has_physics: bool
    least: float

    def __post_init__(self) -> None:
        if self.has_physics and not self.is_log:
            raise BadInput("a model above physics is one of the logarithm")
        if not (np.isfinite(self.least) and self.least > 0):
            raise BadInput(f"the least value of a target must be above 0, got {self.least}")

    def predict(self, jobs: Jobs) -> Array:
        """The target of every row, above 0."""
        total = np.zeros(len(jobs))
        rows = jobs.with_physics_columns() if self.has_physics else jobs
        for stage in self.stages:
            total = total + stage.values(rows)
        if not self.is_log:
            return np.maximum(total, self.least)
        if self.has_physics:
            if jobs.physics is None:
                raise BadInput(f"the model {self.name} needs the physics of every row")
            total = total + np.log(jobs.physics.values)
        return np.exp(np.clip(total, -MOST_LOG, MOST_LOG))

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name,
            "log": self.is_log,
            "physics": self.has_physics,
            "least": self.least,
            "stages": [stage.as_dict() for stage in self.stages],
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "Fitted":
        """Back from JSON."""
        stages = tuple(Stage.from_dict(stage) for stage in document["stages"])
        return cls(
            str(document["name"]), stages, bool(document["log"]), bool(document["physics"]), float(document["least"])
        )
