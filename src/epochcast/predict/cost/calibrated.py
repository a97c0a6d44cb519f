"""A cost model corrected by measurements on the user's device.

    kernel' = kernel · (compute_factor where arithmetic binds, memory_factor where traffic binds) · class_factor

Which side binds follows from the roofline of the data sheet, so that it does not depend on the corrected model. The
interval of every op becomes the profile's `step_spread`, which was measured on whole steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from epochcast.base.notes import Importance, Note
from epochcast.describe.graph.math_modes import OP_MATHS
from epochcast.describe.graph.trace import CLASSES, Columns
from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.device import Device
from epochcast.hardware.host_device import is_host
from epochcast.hardware.link import to_text
from epochcast.hardware.profile import Profile, user_profile
from epochcast.predict.cost.cost_model import Array, CostModel, Costs
from epochcast.predict.cost.cost_models import Shipped
from epochcast.predict.cost.local_file import load_local, own_model
from epochcast.predict.cost.local_model import Local
from epochcast.predict.cost.roofline import CONVOLUTIONS, Analytic, bounds
from epochcast.predict.cost.software_setting import SoftwareSetting

_IS_CONVOLUTION = np.array([op_class in CONVOLUTIONS for op_class in CLASSES])
# A launch that takes no time: the least that a data sheet may have.
NO_LAUNCH_SECONDS = 1e-8


@dataclass(frozen=True)
class Calibrated:
    """`base`, multiplied by the factors of a profile. On any other device than the profile's, and for steps in a format
    that was not measured, it is `base` itself.
    """

    base: CostModel
    profile: Profile

    def __post_init__(self) -> None:
        classes = {c.value for c in CLASSES}
        for name in self.profile.class_factor:
            if name not in classes:
                raise UnknownName("op class", name, classes)

    @property
    def name(self) -> str:
        """The name of the base model, marked as calibrated."""
        return f"{self.base.name}, calibrated"

    @property
    def is_monotone(self) -> bool:
        """Only if compute and memory have the same factor: an op may change from one bound to the other."""
        return self.base.is_monotone and self.profile.compute_factor == self.profile.memory_factor

    def costs(self, columns: Columns, device: Device, setting: SoftwareSetting) -> Costs:
        """The corrected costs."""
        costs = self.base.costs(columns, device, setting)
        math, is_convolution = main_math(columns)
        if device.name != self.profile.device or not self.profile.is_of(math, of_convolutions=is_convolution):
            return costs
        factor = kernel_factors(columns, device, self.profile)
        low, mid, high = costs.low * factor, costs.mid * factor, costs.high * factor
        if self.profile.step_spread is not None:
            below, above = self.profile.step_spread
            low, high = mid * below, mid * above
        models = tuple(f"{name}, calibrated" for name in costs.models)
        variances = costs.variances if self.profile.step_spread is None else {}
        return Costs(low, mid, high, models, costs.answered, is_calibrated=True, variances=variances)


def main_math(columns: Columns) -> tuple[str, bool]:
    """The format in which most flops of the products are, and whether most of those are of convolutions."""
    flops = np.bincount(columns.math[columns.is_matrix], columns.flops[columns.is_matrix], len(OP_MATHS))
    main = int(np.argmax(flops))
    is_convolution = columns.is_matrix & (columns.math == main) & _IS_CONVOLUTION[columns.op_class]
    return OP_MATHS[main], bool(columns.flops[is_convolution].sum() > 0.5 * flops[main])


def is_compute_bound(columns: Columns, device: Device) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Whether arithmetic takes longer than traffic by the data sheet."""
    bound = bounds(columns, device)
    return bound.compute >= bound.memory


def kernel_factors(columns: Columns, device: Device, profile: Profile) -> Array:
    """What each kernel's seconds are multiplied by."""
    classes = np.array([_class_factor(profile.class_factor, c.value) for c in CLASSES])
    bound = np.where(is_compute_bound(columns, device), profile.compute_factor, profile.memory_factor)
    factors: Array = bound * classes[columns.op_class]
    return factors


def _class_factor(factors: Mapping[str, float], name: str) -> float:
    return factors.get(name, 1.0)


def with_profile(model: CostModel, device: Device) -> CostModel:
    """The model with the user's measurements of the device, if there are any for this model.

    The fitted model of a device (`epochcast fit`) replaces the default model. A host without one uses the analytic
    model: the learned model was trained on accelerators only.
    """
    if isinstance(model, Shipped):
        fitted_model = own_model(device)
        if fitted_model is not None:
            return fitted_model
        if is_host(device):
            return Analytic()
    profile = user_profile(device)
    return Calibrated(model, profile) if profile is not None and profile.relative_to == model.name else model


def calibrated_device(model: CostModel, device: Device) -> Device:
    """The device with the launch seconds of its profile, and the measured link; the rest is the data sheet.

    A CPU launches nothing ahead: the seconds of an op include its start.
    """
    fitted_model = own_model(device) if isinstance(model, Shipped) else model if isinstance(model, Local) else None
    if fitted_model is not None and fitted_model.device == device.name:
        return measured_device(fitted_model, device)
    profile = user_profile(device)
    if profile is None or profile.relative_to != model.name or profile.launch_seconds is None:
        return device
    return replace(device, launch_seconds=profile.launch_seconds)


def measured_device(model: Local, device: Device) -> Device:
    """The device as the model of it was measured."""
    link = device.interconnect if model.link is None else to_text(model.link)
    launch_seconds = NO_LAUNCH_SECONDS if device.kind == "cpu" else device.launch_seconds
    return replace(device, interconnect=link, launch_seconds=launch_seconds)


def model_in(path: Path, device: Device) -> Local:
    """The model in a file of `epochcast fit`, which must be of this device."""
    model = load_local(path)
    if model.device != device.name:
        raise BadInput(f"{path.name} is a profile of {model.device}, the forecast is for {device.name}")
    return model


def hints(model: CostModel, device: Device, math: str) -> tuple[str, ...]:
    """Suggestions that would make the answer more accurate, for products in a math."""
    profile = user_profile(device)
    if profile is not None and profile.relative_to == model.name and not profile.is_of(math):
        measured = ", ".join(profile.precisions)
        return (
            Note(
                f"Your profile of {device.name} was measured in {measured}: it is not used for {math}.",
                Importance.EVIDENCE,
            ),
        )
    if not isinstance(model, Shipped) or not is_host(device) or own_model(device) is not None:
        return ()
    return (
        Note(
            "No measurements for this host: estimated by a formula. To measure it, run "
            "`epochcast bench ops --out ops.jsonl` and `epochcast fit ops.jsonl`.",
            Importance.EVIDENCE,
        ),
    )
