"""How wide the interval of a step is: as wide as the errors on what was left out of the training.

A device is known for a kind of step (format of its products, layout of images, with or without a backward pass) if
steps of that kind were measured on it. Four cases, from narrow to wide:

    own      so many of its steps were left out in turn that it has an interval of its own for that kind
    known    fewer: the interval of all known devices
    sister   measured on another board with the same chip: between known and unseen
    unseen   nobody measured this kind of step on this chip, whatever else was measured on it

Three groups of steps have their own known and unseen: training steps, forward passes alone, and networks of fp32
products (transformers, mostly), which are forecast better.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from epochcast.describe.graph.math_modes import OP_MATHS
from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.trace import PHASES, Columns
from epochcast.hardware.device import Device
from epochcast.hardware.sustained import sustained
from epochcast.predict.cost.op_bounds import is_fp32_products
from epochcast.predict.cost.software_setting import SoftwareSetting

_BACKWARD = PHASES.index(Phase.BACKWARD)


class Spread(NamedTuple):
    """The factors of the middle between which 90 % of steps lie."""

    low: float
    high: float


def step_kind(columns: Columns, setting: SoftwareSetting) -> str:
    """Format, layout and mode of a step, as measured devices list them: fp16-nchw-training."""
    flops = np.bincount(columns.math[columns.is_matrix], columns.flops[columns.is_matrix], len(OP_MATHS))
    layout = "channels_last" if setting.channels_last else "nchw"
    mode = "training" if (columns.phase == _BACKWARD).any() else "forward"
    return f"{OP_MATHS[int(flops.argmax())]}-{layout}-{mode}"


TRAINING, FORWARD, PRODUCTS = "", ", forward", ", fp32 products"
"""What the names of cases end in, by group of steps."""


def step_group(columns: Columns) -> str:
    """One of the three groups of steps."""
    if is_fp32_products(columns):
        return PRODUCTS
    return TRAINING if (columns.phase == _BACKWARD).any() else FORWARD


@dataclass(frozen=True)
class Spreads:
    """Intervals by case; those of single devices are in their profiles."""

    cases: Mapping[str, Spread] = field(hash=False)

    def of(self, columns: Columns, device: Device, setting: SoftwareSetting) -> Spread:
        """Of one step on a device."""
        own = sustained(device)
        kind, group = step_kind(columns, setting), step_group(columns)
        known, unseen = self.cases[f"known{group}"], self.cases[f"unseen{group}"]
        if kind in own.known_kinds:
            spread = own.known_kinds[kind]
            return known if spread is None else Spread(*spread)
        if kind in own.sister_kinds:
            return Spread(*(float(np.sqrt(a * b)) for a, b in zip(known, unseen, strict=True)))
        return unseen
