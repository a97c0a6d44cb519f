"""What bounds the ops of a step on a device, before anything is learnt: both sides of the roofline, tiles, groups."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from epochcast.base.caching import remembered
from epochcast.describe.graph.math_modes import OP_MATHS, op_math_index
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.trace import CLASSES, Columns
from epochcast.hardware.device import Device
from epochcast.predict.cost.roofline import Bounds, sustained_peaks
from epochcast.predict.cost.software_setting import SoftwareSetting
from epochcast.predict.cost.waves import is_tiled, log_paddings

Array = NDArray[np.float64]

# Winograd F(2x2, 3x3) multiplies 2.25 times less than a convolution is counted with (Lavin & Gray 2016); FFT may do
# better still.
_CONVOLUTION_CAP = float(np.log(2.6))
# Everything else: a little above one, for operands that stay in cache between ops.
_CAP = float(np.log(1.25))
# How much faster an L2 cache is than the memory behind it: 2.4 times on a V100 (Jia et al. 2018), 4.6 on an A100
# (NVIDIA's white paper), about 5 on an RTX 4090.
CACHE_SPEED = 4.0
# Traffic counts from here, about a cache line for each multiprocessor, in MiB as a logarithm.
LEAST_TRAFFIC = -8.0
_WINOGRAD = frozenset({OpClass.CONV, OpClass.CONV_GROUPED, OpClass.CONV_TRANSPOSED, OpClass.CONV_DEPTHWISE})


# Classes of op that a device may run better or worse than others do; convolutions by layout too.
GROUPS = (
    "conv",
    "conv_channels_last",
    "conv_grouped",
    "conv_grouped_channels_last",
    "matmul",
    "attention",
    "norm",
    "elementwise",
)
_GROUP_OF = {
    OpClass.CONV: "conv",
    OpClass.CONV_POINTWISE: "conv",
    OpClass.CONV_TRANSPOSED: "conv",
    OpClass.CONV_GROUPED: "conv_grouped",
    OpClass.CONV_DEPTHWISE: "conv_grouped",
    OpClass.LINEAR: "matmul",
    OpClass.BATCHED_MATMUL: "matmul",
    OpClass.ATTENTION: "attention",
    OpClass.RECURRENT: "matmul",
    OpClass.BATCH_NORM: "norm",
    OpClass.LAYER_NORM: "norm",
    OpClass.OTHER_NORM: "norm",
}
PLAIN_GROUPS = np.array([GROUPS.index(_GROUP_OF.get(c, "elementwise")) for c in CLASSES])
_CHANNELS_LAST = {"conv": "conv_channels_last", "conv_grouped": "conv_grouped_channels_last"}
_LAYOUT_GROUPS = np.array([GROUPS.index(_CHANNELS_LAST.get(GROUPS[g], GROUPS[g])) for g in PLAIN_GROUPS])


TOWERS = ("convolutions", "products", "others")
"""Kinds of op that have a net of their own."""
_TOWER_OF = {"conv": 0, "conv_grouped": 0, "matmul": 1, "attention": 1}
CLASS_TOWERS = np.array([_TOWER_OF.get(GROUPS[g], 2) for g in PLAIN_GROUPS])
"""The net of every class of op, as an index of TOWERS."""


def op_groups(columns: Columns, setting: SoftwareSetting) -> NDArray[np.int64]:
    """The group of every op, as an index of GROUPS."""
    table = _LAYOUT_GROUPS if setting.channels_last else PLAIN_GROUPS
    groups: NDArray[np.int64] = table[columns.op_class]
    return groups


def caps(columns: Columns) -> Array:
    """The logarithm of how much faster than its bound each op may be."""
    return _CAPS[columns.op_class]


_CAPS = np.array([_CONVOLUTION_CAP if c in _WINOGRAD else _CAP for c in CLASSES])


def log_bounds(columns: Columns, device: Device, bound: Bounds) -> tuple[Array, Array]:
    """Logarithms of the two sides of the roofline: arithmetic, and memory traffic with the L2 cache considered.

    What fits into the cache was written by the op before, and is read several times faster than from memory.
    """
    memory = bound.memory / cache_gain(columns, device.l2_bytes or 0)
    return np.log(np.maximum(bound.compute, 1e-12)), np.log(np.maximum(memory, 1e-12))


def cache_gain(columns: Columns, l2_bytes: float) -> Array:
    """How much faster than from memory an op's bytes come, of which so many are in the cache."""
    return 1 + (CACHE_SPEED - 1) * np.minimum(1.0, l2_bytes / np.maximum(columns.bytes, 1.0))


def log_traffic(columns: Columns) -> Array:
    """Logarithms of the MiB that each op moves."""
    logs: Array = np.maximum(np.log(np.maximum(columns.bytes, 1.0) / 2**20), LEAST_TRAFFIC)
    return logs


# The peak of each math, and the bandwidth, that the laws of gains start from: about those of a V100 and an A100.
REFERENCE_PEAKS = {"fp32": 15e12, "tf32": 1e14, "fp16": 2e14, "bf16": 2e14, "fp64": 1e12, "fp8": 1e15, "fp4": 4e15}
REFERENCE_BANDWIDTH = 1e12
_REFERENCES = np.array([REFERENCE_PEAKS[math] for math in OP_MATHS])
# Formats that software replaces where the hardware lacks them, as it is the op of the other format that runs.
_REPLACED = {"tf32": "fp32", "bf16": "fp32", "fp8": "bf16", "fp4": "fp8"}
_NARROW = [op_math_index(math) for math in ("fp8", "fp4")]


@dataclass(frozen=True)
class OpBounds:
    """The limits of every op: logarithms of seconds, of paddings by choice of tile, and of how far the device's peak
    and bandwidth are above the reference.
    """

    compute: Array
    memory: Array
    traffic: Array
    paddings: Array
    is_tiled: NDArray[np.bool_]
    peak: Array
    bandwidth_gain: float


def limits(columns: Columns, device: Device) -> OpBounds:
    """Of every op on a device."""
    own_peaks = sustained_peaks(columns, device)
    bound = Bounds(columns.flops / own_peaks, columns.bytes / device.memory_bytes_per_second)
    compute, memory = log_bounds(columns, device, bound)
    peak = np.where(columns.is_matrix, np.log(own_peaks / _REFERENCES[columns.math]), 0.0)
    return OpBounds(
        compute,
        memory,
        log_traffic(columns),
        log_paddings(columns, float(device.compute_units)),
        is_tiled(columns),
        peak,
        float(np.log(device.memory_bytes_per_second / REFERENCE_BANDWIDTH)),
    )


def as_run(columns: Columns, device: Device) -> Columns:
    """The ops in the formats that the device computes in: fp8 on a GPU without it runs as bf16, in two bytes.

    What is moved stays as it is: it is stored in the narrow format.
    """
    math = _run_maths(device)[columns.math]
    if np.array_equal(math, columns.math):
        return columns
    is_widened = np.isin(columns.math, _NARROW) & ~np.isin(math, _NARROW)
    return replace(columns, math=math, element_bytes=np.where(is_widened, 2.0, columns.element_bytes))


@remembered(256)
def _run_maths(device: Device) -> NDArray[np.int64]:
    """By math, the one that runs."""
    return np.array([op_math_index(_run_math(math, device)) for math in OP_MATHS])


def _run_math(math: str, device: Device) -> str:
    while math in _REPLACED and math not in device.peak_flops_per_second:
        math = _REPLACED[math]
    return math
