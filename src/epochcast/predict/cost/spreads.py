"""How wide the interval of a step's kernels is: made of parts that were measured on what was left out of the training.

    variance  = device(evidence, hardware) + framework(generation) + Σ_c share_c² · kernels(c, format)
    low, high = e^(-z_low · √variance), e^(z_high · √variance)                     factors of the middle

Variances are of log(predicted/measured). share_c is the part of the kernels' seconds that kernels of class c take: the
errors of one class are the same throughout a step, those of two classes are independent. The evidence for a device is
one of

    measured   steps of that kind (format; recurrent cells, other products, or convolutions in a layout; with or
               without backward) were measured on it
    sister     they were measured on another board with the same chip
    operators  only single products in that format were measured on it or its sister, or steps of another kind
    unseen     neither

z_low and z_high come from a conformal step by group (hardware, and whether the step trains): 90 % of the left-out steps
of a group, every device and kind counted alike, lie between low and high. `training.spreads` fits all of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochcast.describe.graph.math_modes import OP_MATHS
from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.trace import CLASSES, PHASES, Columns
from epochcast.hardware.device import Device
from epochcast.hardware.sustained import sustained
from epochcast.predict.cost.software_setting import GENERATIONS, SoftwareSetting

Array = NDArray[np.float64]

_BACKWARD = PHASES.index(Phase.BACKWARD)
# The widths of formats, by the bytes of an element: up to 2, up to 4, more.
_WIDTHS, _WIDTH_BYTES = ("half", "full", "double"), (2.0, 4.0)

MEASURED, SISTER, OPERATORS, UNSEEN = "measured", "sister", "operators", "unseen"
EVIDENCE = (MEASURED, SISTER, OPERATORS, UNSEEN)
"""What is known of a device for a kind of step, from best to least."""

TENSOR_CORES, NO_TENSOR_CORES, OTHER_VENDOR = "nvidia", "nvidia before tensor cores", "other vendors"
"""Hardware whose kernels are written, and err, alike."""

KERNEL_CLASSES = ("convolution", "grouped convolution", "product", "attention", "recurrent", "vector")
RECURRENT = "recurrent"
_CLASS_OF = {
    OpClass.CONV: "convolution",
    OpClass.CONV_POINTWISE: "convolution",
    OpClass.CONV_TRANSPOSED: "convolution",
    OpClass.CONV_GROUPED: "grouped convolution",
    OpClass.CONV_DEPTHWISE: "grouped convolution",
    OpClass.LINEAR: "product",
    OpClass.BATCHED_MATMUL: "product",
    OpClass.ATTENTION: "attention",
    OpClass.RECURRENT: "recurrent",
}
_CLASS_PLACES = np.array([KERNEL_CLASSES.index(_CLASS_OF.get(c, "vector")) for c in CLASSES])
KERNEL_PARTS = tuple(f"{name}, {width}" for name in KERNEL_CLASSES for width in _WIDTHS)
"""Classes of kernel by format: half and narrower, full (four bytes an element), double."""
_IS_RECURRENT = np.array([c is OpClass.RECURRENT for c in CLASSES])
_IS_PRODUCT = np.array([_CLASS_OF.get(c) in ("product", "attention", "recurrent") for c in CLASSES])


class Spread(NamedTuple):
    """The factors of the middle between which 90 % of steps are, and the variances that make them so wide, by part:
    gpu, framework, network.
    """

    low: float
    high: float
    variances: Mapping[str, float]


def step_kind(columns: Columns, setting: SoftwareSetting) -> str:
    """Format, work and mode of a step, as measured devices list them: fp16-nchw-training, bf16-products-training."""
    return f"{main_math(columns)}-{_main_work(columns, setting)}-{'training' if trains(columns) else 'forward'}"


def _main_work(columns: Columns, setting: SoftwareSetting) -> str:
    """What most of the flops are: recurrent cells, other products, or convolutions in a layout."""
    if mostly_recurrent(columns):
        return RECURRENT
    if mostly_products(columns):
        return "products"
    return "channels_last" if setting.channels_last else "nchw"


def mostly_products(columns: Columns) -> bool:
    """Whether more of the flops are of products (attention and recurrent cells among them) than of convolutions."""
    is_product = _IS_PRODUCT[columns.op_class] & columns.is_matrix
    return bool(columns.flops[is_product].sum() > columns.flops[columns.is_matrix & ~is_product].sum())


def mostly_recurrent(columns: Columns) -> bool:
    """Whether most of the flops are of recurrent cells, whose kernels no other product shares."""
    is_recurrent = _IS_RECURRENT[columns.op_class] & columns.is_matrix
    return bool(2 * columns.flops[is_recurrent].sum() > columns.flops[columns.is_matrix].sum())


def main_math(columns: Columns) -> str:
    """The format that most of the flops of products are in."""
    flops = np.bincount(columns.math[columns.is_matrix], columns.flops[columns.is_matrix], len(OP_MATHS))
    return OP_MATHS[int(flops.argmax())]


def trains(columns: Columns) -> bool:
    """Whether a step has a backward pass."""
    return bool((columns.phase == _BACKWARD).any())


def kernel_shares(columns: Columns, seconds: Array) -> Array:
    """The parts of the kernels' seconds by KERNEL_PARTS."""
    width = np.searchsorted(_WIDTH_BYTES, columns.element_bytes)
    place = len(_WIDTHS) * _CLASS_PLACES[columns.op_class] + width
    sums = np.bincount(place, np.nan_to_num(seconds), len(KERNEL_PARTS))
    shares: Array = sums / max(float(sums.sum()), 1e-30)
    return shares


def hardware_group(device: Device) -> str:
    """TENSOR_CORES, NO_TENSOR_CORES or OTHER_VENDOR."""
    if device.vendor != "NVIDIA":
        return OTHER_VENDOR
    return TENSOR_CORES if device.tensor_cores else NO_TENSOR_CORES


def group_of(columns: Columns, device: Device) -> str:
    """The conformal group of a step: its hardware, and whether it trains."""
    return f"{hardware_group(device)}, {'training' if trains(columns) else 'forward'}"


def evidence(columns: Columns, device: Device, setting: SoftwareSetting) -> str:
    """What is known of the device for this kind of step: one of EVIDENCE."""
    profile, kind = sustained(device), step_kind(columns, setting)
    if kind in profile.known_kinds:
        return MEASURED
    if kind in profile.sister_kinds:
        return SISTER
    return OPERATORS if main_math(columns) in profile.measured_maths else UNSEEN


@dataclass(frozen=True)
class Spreads:
    """The fitted variances by part, and z_low and z_high by group."""

    devices: Mapping[str, float] = field(hash=False)
    frameworks: Mapping[str, float] = field(hash=False)
    kernels: Mapping[str, float] = field(hash=False)
    scales: Mapping[str, tuple[float, float]] = field(hash=False)

    def of(self, columns: Columns, device: Device, setting: SoftwareSetting, seconds: Array) -> Spread:
        """Of one step on a device, whose kernels take so many seconds."""
        shares = kernel_shares(columns, seconds)
        variances = {
            "gpu": self.devices[device_part(evidence(columns, device, setting), device)],
            "framework": self.frameworks[GENERATIONS[setting.generation]],
            "network": float(shares**2 @ [self.kernels[part] for part in KERNEL_PARTS]),
        }
        deviation = float(np.sqrt(sum(variances.values())))
        below, above = self.scales[group_of(columns, device)]
        return Spread(float(np.exp(-below * deviation)), float(np.exp(above * deviation)), variances)


def device_part(known_by: str, device: Device) -> str:
    """The key of a device's variance."""
    return f"{known_by}, {hardware_group(device)}"
