"""A fitted model: sums of stages, on the scale of the target or of its logarithm, upon physics or upon nothing.

    log y = log(physics) + middle of Σ_stages f_s(features)     grey box: history corrects physics
    log y = Σ_stages f_s(features)                              a model of the logarithm
    y     = Σ_stages f_s(features)                              a model of the target itself

Most models are one sum. Of several the middle counts, row by row: the median. Where rows are too few, or tell too
little, only a share s of it does, beside a factor c that is common to all: log y = log(physics) + c + s·(middle − c).

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
    sums: tuple[tuple[Stage, ...], ...]
    is_log: bool
    has_physics: bool
    least: float
    common: float = 0.0
    share: float = 1.0

    def __post_init__(self) -> None:
        if self.has_physics and not self.is_log:
            raise BadInput("a model above physics is one of the logarithm")
        if not self.sums:
            raise BadInput("a model needs a stage")
        if not (np.isfinite(self.common) and 0 <= self.share <= 1):
            raise BadInput(f"a share lies between 0 and 1, beside a number, got {self.share} and {self.common}")
        if not (np.isfinite(self.least) and self.least > 0):
            raise BadInput(f"the least value of a target must be above 0, got {self.least}")

    def predict(self, jobs: Jobs) -> Array:
        """The target of every row, above 0."""
        rows = jobs.with_physics_columns() if self.has_physics else jobs
        sums = [np.sum([stage.values(rows) for stage in stages], axis=0) for stages in self.sums]
        total: Array = self.common + self.share * (np.median(sums, axis=0) - self.common)
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
            "common": self.common,
            "share": self.share,
            "sums": [[stage.as_dict() for stage in stages] for stages in self.sums],
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "Fitted":
        """Back from JSON."""
        sums = tuple(tuple(Stage.from_dict(stage) for stage in stages) for stages in document["sums"])
        is_log, has_physics = bool(document["log"]), bool(document["physics"])
        least, common, share = (float(document[name]) for name in ("least", "common", "share"))
        return cls(str(document["name"]), sums, is_log, has_physics, least, common, share)
