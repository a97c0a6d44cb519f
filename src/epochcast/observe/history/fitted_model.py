"""A fitted model: sums of stages, on the scale of the target or of its logarithm, upon physics or upon nothing.

    log y = log(physics) + Σ_stages f_s(features)         history corrects physics
    log y = Σ_stages f_s(features)                        a model of the logarithm
    y     = Σ_stages f_s(features)                        a model of the target itself

Most models are one sum. Of several, a row that is like those learned from gets the shares that each sum has earned, and
what is left of 1 is the share of a factor c that is common to all rows (`CorrectionShares`). Of a row that is unlike
them the middle counts, the median, as far as the sums do beside c:

    log y = log(physics) + c + Σ_k s_k·(sum_k − c)        or, of a new row,  log(physics) + c + (Σ_k s_k)·(median − c)

A target is a time or a size and so above 0: what a model of the target itself gives is at least `least`.
"""

from dataclasses import dataclass, field

import numpy as np

from epochcast.base.record import Record, json_key
from epochcast.errors import BadInput
from epochcast.observe.history.design import Design
from epochcast.observe.history.job_table import Array, Flags, Jobs
from epochcast.observe.history.predictors import Predictor
from epochcast.observe.history.seen_columns import SeenColumns

# A logarithm beyond this is no time: exp(±60) s.
MOST_LOG = 60.0


@dataclass(frozen=True)
class Stage(Record):
    """Features and the function of them."""

    design: Design
    predictor: Predictor

    def values(self, jobs: Jobs) -> Array:
        """Of every row."""
        return self.predictor.values(self.design.matrix(jobs))


@dataclass(frozen=True)
class CorrectionShares(Record):
    """What each sum counts for in rows like those learned from; `seen` says which these are."""

    values: tuple[float, ...]
    common: float
    seen: SeenColumns

    def __post_init__(self) -> None:
        is_share = min(self.values, default=-1.0) >= 0 and sum(self.values) <= 1 + 1e-9
        if not np.isfinite(self.common) or not is_share:
            raise BadInput("shares must be at least 0 and at most 1 together, and the common factor a finite number")

    def mixed(self, sums: Array, is_new: Flags) -> Array:
        """Of every row; `sums` has a line for each."""
        above = sums - self.common
        by_shares, by_median = np.asarray(self.values) @ above, sum(self.values) * np.median(above, axis=0)
        return np.asarray(self.common + np.where(is_new, by_median, by_shares))


@dataclass(frozen=True)
class FittedModel(Record):
    """`name` is that of the table of models. `is_log`: stages give the logarithm; `has_physics`: above physics."""

    name: str
    sums: tuple[tuple[Stage, ...], ...]
    is_log: bool = field(metadata=json_key("log"))
    has_physics: bool = field(metadata=json_key("physics"))
    least: float
    shares: CorrectionShares | None = None
    """None: the middle of the sums counts in every row."""

    def __post_init__(self) -> None:
        if self.has_physics and not self.is_log:
            raise BadInput("physics-based models must predict log(target)")
        if not self.sums or not all(self.sums):
            raise BadInput("a model needs a stage in each of its sums")
        if self.shares is not None and len(self.shares.values) != len(self.sums):
            raise BadInput("a model needs a share for each of its sums")
        if not (np.isfinite(self.least) and self.least > 0):
            raise BadInput(f"the least value of a target must be above 0, got {self.least}")

    def predict(self, jobs: Jobs) -> Array:
        """The target of every row, above 0."""
        sums = self._sums(jobs)
        if self.shares is None:
            return self._target(np.median(sums, axis=0), jobs)
        return self._target(self.shares.mixed(sums, self.shares.seen.is_new(jobs)), jobs)

    def each(self, jobs: Jobs) -> Array:
        """What each sum alone says: a line for each, a column for every row."""
        return np.stack([self._target(total, jobs) for total in self._sums(jobs)])

    def _sums(self, jobs: Jobs) -> Array:
        rows = jobs.with_physics_columns() if self.has_physics else jobs
        return np.stack([np.sum([stage.values(rows) for stage in stages], axis=0) for stages in self.sums])

    def _target(self, total: Array, jobs: Jobs) -> Array:
        if not self.is_log:
            return np.maximum(total, self.least)
        if self.has_physics:
            if jobs.physics is None:
                raise BadInput(f"the model {self.name} needs the physics of every row")
            total = total + np.log(jobs.physics.values)
        return np.exp(np.clip(total, -MOST_LOG, MOST_LOG))
