"""The roofline (Williams, Waterman & Patterson 2009), alone and divided by what devices sustain.

    c = flops / peak(math)          m = bytes / bandwidth
    roofline:  max(c, m)                                       no kernel is faster, but for what stays in cache
    analytic:  max(c/e_c, m/e_m) + launches · kernel_seconds   e_c, e_m from `efficiency.toml`

Matrix ops run at the peak of their math (tensor cores where the device has them), convolutions and recurrent layers at
what their library uses of it (`maths.Math.convolution`), everything else on the vector units.
Tiles, waves and the choice of algorithm are not modelled: a convolution by Winograd or FFT can beat its own count of
flops, and a small op does not fill the device. The width of an interval is its class's factor.
"""

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epochcast.base.caching import remembered
from epochcast.describe.graph.math_modes import MATHS, OP_MATHS
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.trace import CLASSES, Columns
from epochcast.errors import EpochcastError
from epochcast.hardware.device import Device
from epochcast.hardware.power_law import clock_fraction
from epochcast.predict.cost.cost_model import Array, Costs
from epochcast.predict.cost.efficiency import Priors, priors
from epochcast.predict.cost.software_setting import SoftwareSetting

CONVOLUTIONS = frozenset(
    (OpClass.CONV, OpClass.CONV_POINTWISE, OpClass.CONV_GROUPED, OpClass.CONV_DEPTHWISE, OpClass.CONV_TRANSPOSED)
)
# Convolutions and recurrent layers: cuDNN's and MIOpen's, where other products are cuBLAS' and rocBLAS'.
_BY_LIBRARY = np.array([c is OpClass.RECURRENT or c in CONVOLUTIONS for c in CLASSES])


@dataclass(frozen=True)
class Bounds:
    """The two sides of the roofline: seconds if only arithmetic, or only memory traffic, took time."""

    compute: Array
    memory: Array


def bounds(columns: Columns, device: Device) -> Bounds:
    """flops / peak(math) and bytes / bandwidth of every op."""
    return Bounds(columns.flops / peaks(columns, device), columns.bytes / device.memory_bytes_per_second)


def peaks(columns: Columns, device: Device) -> Array:
    """The peak that bounds each op. A device may lack maths that do not occur."""
    ways = peak_ways(columns)
    rates: Array = peak_table(device)[ways, columns.math]
    missing = np.flatnonzero(np.isnan(rates))
    if len(missing):
        _peak(device, int(ways[missing[0]]), OP_MATHS[columns.math[missing[0]]])  # raises, and says which
    return rates


def sustained_peaks(columns: Columns, device: Device) -> Array:
    """The same at the clock that the board's power sustains (`hardware.power_law`)."""
    rates: Array = peaks(columns, device) * clock_table(device)[peak_ways(columns), columns.math]
    return rates


# A product by a library of its own, another product, and everything else.
_IN_LIBRARY, _PRODUCT, _VECTOR = range(3)


def peak_ways(columns: Columns) -> NDArray[np.int64]:
    """The row of `peak_table` that bounds each op."""
    ways: NDArray[np.int64] = np.where(
        _BY_LIBRARY[columns.op_class], _IN_LIBRARY, np.where(columns.is_matrix, _PRODUCT, _VECTOR)
    )
    return ways


@remembered(256)
def peak_table(device: Device) -> Array:
    """By way and math; NaN where the device has no peak."""
    table = np.full((3, len(OP_MATHS)), np.nan)
    for way in range(len(table)):
        for index, math in enumerate(OP_MATHS):
            with suppress(EpochcastError):
                table[way, index] = _peak(device, way, math)
    return table


@remembered(256)
def clock_table(device: Device) -> Array:
    """The fraction of the boost clock that products sustain, by way and math; 1 for everything else, which waits for
    memory and leaves power over.
    """
    table = np.ones((3, len(OP_MATHS)))
    for way in (_IN_LIBRARY, _PRODUCT):
        table[way] = [clock_fraction(device, _way_math(device, way, math)) for math in OP_MATHS]
    return table


def _peak(device: Device, way: int, own: str) -> float:
    return device.peak(_way_math(device, way, own))


def _way_math(device: Device, way: int, own: str) -> str:
    in_library = MATHS[own].convolution if MATHS[own].convolution in device.peak_flops_per_second else own
    return (in_library, own, MATHS[own].vector)[way]


@dataclass(frozen=True)
class Roofline:
    """max(flops/peak, bytes/bandwidth): the bound itself. `high` is what the class's least efficient ops need."""

    name: str = "roofline"
    is_monotone: bool = True

    def costs(self, columns: Columns, device: Device, setting: SoftwareSetting) -> Costs:
        """The bound as low and mid."""
        table, bound = priors(), bounds(columns, device)
        longer = np.maximum(bound.compute, bound.memory)
        return Costs.by(
            self.name, longer, longer, _sustained(columns, device, table, bound) * _factors(columns, device, table)
        )


@dataclass(frozen=True)
class Analytic:
    """The roofline divided by prior efficiencies, plus the least a kernel lasts: the answer before any measurement."""

    name: str = "analytic"
    is_monotone: bool = True

    def costs(self, columns: Columns, device: Device, setting: SoftwareSetting) -> Costs:
        """mid/factor, mid, mid·factor."""
        table = priors()
        mid = _sustained(columns, device, table, bounds(columns, device))
        factor = _factors(columns, device, table)
        return Costs.by(self.name, mid / factor, mid, mid * factor)


def _sustained(columns: Columns, device: Device, table: Priors, bound: Bounds) -> Array:
    """max(c/e_c, m/e_m) + launches · kernel_seconds"""
    generation = table.generation(device.generation)
    matrix = np.array([generation.compute_fraction(math) for math in OP_MATHS])
    vector = np.array([generation.compute_fraction("fp64" if math == "fp64" else "fp32") for math in OP_MATHS])
    base = np.where(columns.is_matrix, matrix[columns.math], vector[columns.math])
    compute = bound.compute / (_per_class(columns, table, "compute_ratio") * base)
    memory = bound.memory / (_per_class(columns, table, "memory_ratio") * generation.memory_fraction)
    return np.maximum(compute, memory) + columns.launches * table.kernel_seconds[device.kind]


def _factors(columns: Columns, device: Device, table: Priors) -> Array:
    factor = _per_class(columns, table, "factor")
    return factor if table.knows(device.generation) else factor * table.unknown_factor


def _per_class(columns: Columns, table: Priors, field: str) -> Array:
    values: NDArray[np.float64] = np.array(
        [getattr(table.classes[c], field) if c is not OpClass.VIEW else 1.0 for c in CLASSES], dtype=np.float64
    )
    return values[columns.op_class]
