"""What a cost model is: from the columns of a step, a device and a setting to low ≤ mid ≤ high seconds per op.

Contract (`cost_contract.check_op_cost` runs it): pure and deterministic; finite and positive wherever an op has work;
ordered. A model may answer NaN, meaning "no answer"; `fill_gaps` takes those ops from another model. Unknown never
means zero: the forecast of a step raises `Unanswered` and names the op.

low … high should contain the truth for `interval.COVERAGE` of ops. The caller decides how errors of ops combine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from epochcast.describe.graph.trace import CLASSES, PHASES, Columns
from epochcast.errors import EpochcastError
from epochcast.hardware.device import Device
from epochcast.predict.cost.software_setting import SoftwareSetting

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Costs:
    """Seconds per entry of some columns; NaN in all three where the model has no answer.

    `answered` indexes `models`, the names of the models that answered; it is -1 where none did. `is_calibrated`:
    whether the user's measurements of the device correct them. `variances` say what makes low … high as wide as it is,
    by part (gpu, framework, network); without them it is the network.
    """

    low: Array
    mid: Array
    high: Array
    models: tuple[str, ...]
    answered: NDArray[np.int64]
    is_calibrated: bool = False
    variances: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for array in (self.low, self.high, self.answered):
            if array.shape != self.mid.shape or array.ndim != 1:
                raise ValueError(f"costs need arrays of one length, got {array.shape} beside {self.mid.shape}")
        if ((self.low <= self.mid) & (self.mid <= self.high) & (self.answered >= 0)).all():
            return  # an answer for every op, which is the rule
        is_answered = ~np.isnan(self.mid)
        if not all(np.array_equal(is_answered, ~np.isnan(end)) for end in (self.low, self.high)):
            raise ValueError("costs need all three of low, mid and high, or none, for an op")
        if not np.all((self.low <= self.mid) & (self.mid <= self.high) | ~is_answered):
            raise ValueError("costs need low <= mid <= high for every op")
        if not np.array_equal(is_answered, self.answered >= 0):
            raise ValueError("costs need a model's name exactly where there is an answer")

    @classmethod
    def by(cls, name: str, low: Array, mid: Array, high: Array) -> "Costs":
        """All answers of one model; NaN where it has none."""
        return cls(low, mid, high, (name,), np.where(np.isnan(mid), -1, 0).astype(np.int64))

    def __len__(self) -> int:
        return len(self.mid)

    @property
    def answered_by(self) -> tuple[str, ...]:
        """The name of the model that answered, op by op; empty where none did."""
        names = (*self.models, "")
        return tuple(names[i] for i in self.answered)

    def time_fractions(self) -> Mapping[str, float]:
        """Which part of the middle seconds each model answered for; models without a part are left out."""
        total = float(np.nansum(self.mid))
        sums = {name: float(self.mid[self.answered == i].sum()) for i, name in enumerate(self.models)}
        return {name: seconds / total for name, seconds in sums.items() if seconds > 0}


class CostModel(Protocol):
    """Anything that costs ops. `is_monotone` claims that more work on the same device is never cheaper."""

    @property
    def name(self) -> str:
        """The name shown in `answered_by`."""
        ...

    @property
    def is_monotone(self) -> bool:
        """Whether an op with more flops and bytes never costs less."""
        ...

    def costs(self, columns: Columns, device: Device, setting: SoftwareSetting) -> Costs:
        """Seconds of every entry of `columns` on `device`, as the software of `setting` runs it."""
        ...


class Unanswered(EpochcastError):
    """A cost model has no answer for an op of a step."""


def fill_gaps(first: Costs, second: Costs) -> Costs:
    """`first`, with its gaps taken from `second`."""
    names = (*first.models, *(name for name in second.models if name not in first.models))
    places = np.array([*(names.index(name) for name in second.models), -1], dtype=np.int64)
    gaps = first.answered < 0
    return Costs(
        np.where(gaps, second.low, first.low),
        np.where(gaps, second.mid, first.mid),
        np.where(gaps, second.high, first.high),
        names,
        np.where(gaps, places[second.answered], first.answered),
        is_calibrated=first.is_calibrated or second.is_calibrated,
        variances=first.variances or second.variances,
    )


def describe_op(columns: Columns, index: int) -> str:
    """An entry of the columns in words, for messages."""
    phase, op_class = PHASES[columns.phase[index]], CLASSES[columns.op_class[index]]
    return f"op {index} (a {phase.value} {op_class.value})"
