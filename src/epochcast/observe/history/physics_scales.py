"""Physics of several kinds on one scale.

A forecast is in seconds. A roofline, and sizes even more so, are right up to a factor that only their kind decides. A
table may have rows of several kinds, and all are brought to the scale of the most frequent one, before anything learns:

    physics' = physics · exp(m_kind − m_main)        m_k = median of log(target / physics of kind k)

Sizes may say less than nothing: the batches of different networks have nothing to do with their times. Where targets
spread less than their ratios to sizes do, sizes of a step are one number for all (`is_flat`), and columns do the rest.

A new row may be of a kind that no row had: a network that cannot be built, after a past of networks that can. Then
rooflines and sizes of the rows that were learned from say m_k, although these rows have something better. How far off
sizes alone were on those rows is how wide the interval of such a row is. Of a forecast, or a part that was run, m is 0:
it is in seconds already.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from epochcast.base.record import Record, json_name
from epochcast.errors import BadInput
from epochcast.observe.history.job_table import Array, Flags, Physics
from epochcast.observe.history.learning_set import LearningSet
from epochcast.observe.history.physics import FORECAST, PARTIAL, ROOFLINE, SIZES


@dataclass(frozen=True)
class Scales(Record):
    """`learned` are the kinds of the rows that were learned from, `main` that of most, `offsets` are m by kind.
    `is_flat`: sizes say nothing.
    """

    main: str = FORECAST
    learned: tuple[str, ...] = (FORECAST,)
    offsets: Mapping[str, float] = field(default_factory=dict)
    is_flat: bool = json_name("flat", default=False)

    def __post_init__(self) -> None:
        if not all(np.isfinite(value) for value in self.offsets.values()):
            raise BadInput("the scales of physics are numbers")

    @classmethod
    def of(cls, target: Array, physics: Physics) -> "Scales":
        """Of the rows that are learned from."""
        kinds, counts = np.unique(physics.kinds, return_counts=True)
        shifts = {FORECAST: 0.0, PARTIAL: 0.0}
        for kind, values in physics.stand_ins.items():
            ratios = target / values
            if np.isfinite(ratios).any():
                shifts[kind] = float(np.log(np.median(ratios[np.isfinite(ratios)])))
        by_sizes = physics.kinds == SIZES
        steps = target[by_sizes] / physics.times[by_sizes]
        is_flat = _spread(steps) < _spread(target[by_sizes] / physics.values[by_sizes])
        for kind in kinds:
            mine = physics.kinds == kind
            ratios = steps if kind == SIZES and is_flat else target[mine] / physics.values[mine]
            shifts[str(kind)] = float(np.median(np.log(ratios)))
        return cls(str(kinds[np.argmax(counts)]), tuple(map(str, kinds)), shifts, is_flat)

    def applied(self, physics: Physics) -> tuple[Physics, Flags]:
        """On one scale, and which rows are of a kind that was not learned from; these count as of the main kind."""
        is_new: Flags = ~np.isin(physics.kinds, self.learned)
        values, kinds = physics.values.copy(), physics.kinds.astype(object)
        for place in np.flatnonzero((physics.kinds != self.main) | (self.is_flat & (physics.kinds == SIZES))):
            values[place] = self._scaled(physics, int(place))
        kinds[is_new] = self.main
        return replace(physics, values=values, kinds=kinds.astype(np.str_)), is_new

    def _scaled(self, physics: Physics, place: int) -> float:
        kind, value = str(physics.kinds[place]), float(physics.values[place])
        if kind == ROOFLINE and kind not in self.offsets and SIZES in physics.stand_ins:
            kind, value = SIZES, float(physics.stand_ins[SIZES][place])
        if kind == SIZES and self.is_flat:
            value = float(physics.times[place])
        return float(
            np.clip(value * np.exp(self.offsets.get(kind, 0.0) - self.offsets.get(self.main, 0.0)), 1e-30, 1e30)
        )


def on_one_scale(past: LearningSet) -> tuple[LearningSet, Scales]:
    """Rows to learn from, with their physics on one scale."""
    physics = past.jobs.physics
    if physics is None:
        return past, Scales()
    scales = Scales.of(past.target, physics)
    return replace(past, jobs=replace(past.jobs, physics=scales.applied(physics)[0])), scales


def _spread(values: Array) -> float:
    """How far logarithms are from their median, on average."""
    logs = np.log(values)
    return float(np.abs(logs - np.median(logs)).mean()) if len(logs) else 0.0


def stand_in_scores(target: Array, physics: Physics) -> Array:
    """|log y − log of what sizes alone say|: how far off a row without a forecast is."""
    if SIZES not in physics.stand_ins:
        return np.zeros(0)
    logs = np.log(target / physics.stand_ins[SIZES])
    logs = logs[np.isfinite(logs)]
    return np.asarray(np.abs(logs - np.median(logs))) if len(logs) else np.zeros(0)
