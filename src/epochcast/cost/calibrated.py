"""A cost model corrected by what was measured on the user's own device.

    kernel' = kernel · (compute_factor where arithmetic binds, memory_factor where traffic binds) · class_factor

Which limb binds is read off the data sheet's roofline, so that it does not depend on the model that is corrected. The
interval of every op becomes the profile's `step_spread`, which was found on whole steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from epochcast.cost.columns import column_costs
from epochcast.cost.features import Setting
from epochcast.cost.model import Array, CostModel, Costs
from epochcast.cost.roofline import limits
from epochcast.errors import UnknownName
from epochcast.graph.trace import CLASSES, Columns, Trace
from epochcast.hardware.device import Device
from epochcast.hardware.profile import Profile, user_profile


@dataclass(frozen=True)
class Calibrated:
    """`base`, multiplied by the factors of a profile. On any other device than the profile's it is `base` itself."""

    base: CostModel
    profile: Profile

    def __post_init__(self) -> None:
        known = {c.value for c in CLASSES}
        for name in self.profile.class_factor:
            if name not in known:
                raise UnknownName("op class", name, known)

    @property
    def name(self) -> str:
        """The model's own, marked."""
        return f"{self.base.name}, calibrated"

    @property
    def is_monotone(self) -> bool:
        """Not where an op may change from one limb to the other, unless both have one factor."""
        return self.base.is_monotone and self.profile.compute_factor == self.profile.memory_factor

    def costs(self, trace: Trace, device: Device) -> Costs:
        """The corrected answer."""
        return self._corrected(self.base.costs(trace, device), trace.columns, device)

    def column_costs(self, columns: Columns, device: Device, setting: Setting) -> Costs:
        """The corrected answer for bare columns."""
        return self._corrected(column_costs(self.base, columns, device, setting), columns, device)

    def _corrected(self, costs: Costs, columns: Columns, device: Device) -> Costs:
        if device.name != self.profile.device:
            return costs
        factor = kernel_factors(columns, device, self.profile)
        low, mid, high = costs.low * factor, costs.mid * factor, costs.high * factor
        if self.profile.step_spread is not None:
            below, above = self.profile.step_spread
            low, high = mid * below, mid * above
        return Costs(low, mid, high, tuple(f"{name}, calibrated" for name in costs.models), costs.answered)


def is_compute_bound(columns: Columns, device: Device) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Whether arithmetic takes longer than traffic by the data sheet."""
    limit = limits(columns, device)
    return limit.compute >= limit.memory


def kernel_factors(columns: Columns, device: Device, profile: Profile) -> Array:
    """What each kernel's seconds are multiplied by."""
    classes = np.array([_class_factor(profile.class_factor, c.value) for c in CLASSES])
    bound = np.where(is_compute_bound(columns, device), profile.compute_factor, profile.memory_factor)
    factors: Array = bound * classes[columns.op_class]
    return factors


def _class_factor(factors: Mapping[str, float], name: str) -> float:
    return factors.get(name, 1.0)


def with_profile(model: CostModel, device: Device) -> CostModel:
    """The model under the user's own profile of the device, where there is one that was made for this model."""
    profile = user_profile(device)
    return Calibrated(model, profile) if profile is not None and profile.relative_to == model.name else model


def calibrated_device(model: CostModel, device: Device) -> Device:
    """The device with the launch seconds of that profile; the data sheet is left alone."""
    profile = user_profile(device)
    if profile is None or profile.relative_to != model.name or profile.launch_seconds is None:
        return device
    return replace(device, launch_seconds=profile.launch_seconds)
