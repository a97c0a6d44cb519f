"""What a learned cost model is told about an op on a device: numbers that say how well the op can use it, not how
long it takes.

Sizes enter as logarithms, against the device where that makes sense: how many waves of tiles the op fills, how its
operands compare with the L2 cache, whether its arithmetic or its traffic binds. The device itself is not named: what
it sustains is a number of its own (`learned.Sustained`), and trees or nets that were told data sheets did not
extrapolate to new ones.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epochcast.cost.roofline import limits
from epochcast.graph.trace import CLASSES, MATHS, Columns
from epochcast.hardware.device import Device

Array = NDArray[np.float64]

# The output tile of the GEMM kernels cuBLAS and cuDNN choose for large products (CUTLASS' default threadblock).
TILE = 128


@dataclass(frozen=True, slots=True)
class Setting:
    """What of the software decides kernels: memory layout, framework and its generation (0 old … 1 new)."""

    channels_last: bool = False
    framework: str = "pytorch"
    framework_age: float = 0.0


def features(columns: Columns, device: Device, setting: Setting) -> Array:
    """One row per op, one column per name of `NAMES`."""
    limit = limits(columns, device)
    compute, traffic = limit.compute, limit.memory
    bound = np.maximum(np.maximum(compute, traffic), 1e-9)
    tiles = np.ceil(columns.m / TILE) * np.ceil(columns.n / TILE) * columns.count
    waves = tiles / device.compute_units
    wave_efficiency = waves / np.maximum(np.ceil(waves), 1.0)
    tile_efficiency = columns.m * columns.n * columns.count / np.maximum(tiles * TILE * TILE, 1.0)
    is_matrix = columns.is_matrix.astype(np.float64)
    l2_bytes = float(device.l2_bytes or 4 * 2**20)
    size = len(columns)
    # Windows that do not overlap (patches) read each input once, as a 1x1 does; beyond 11x11 nothing changes.
    window = np.where(columns.stride >= columns.kernel, 1.0, np.minimum(columns.kernel, 121.0))

    def log(values: Array) -> Array:
        logs: Array = np.log(np.maximum(values, 1e-12))
        return logs

    def aligned(values: Array, to: int) -> Array:
        fits: Array = (np.mod(values, to) == 0).astype(np.float64)
        return fits

    into = columns.channels_in / np.maximum(columns.groups, 1.0)
    out = columns.channels_out / np.maximum(columns.groups, 1.0)
    numbers = [
        log(bound / 1e-5) / 3,
        np.clip(log(np.maximum(compute, 1e-12) / np.maximum(traffic, 1e-12)), -8, 8) / 3,
        log(columns.bytes / l2_bytes) / 4,
        log(waves) / 3 * is_matrix,
        wave_efficiency * is_matrix,
        tile_efficiency * is_matrix,
        log(columns.m + 1) / 8,
        log(columns.n + 1) / 8,
        log(columns.k + 1) / 8,
        log(columns.count + 1) / 6,
        aligned(columns.n, 8) * is_matrix,
        aligned(columns.k, 8) * is_matrix,
        aligned(columns.n, 64) * is_matrix,
        log(window) / 2,
        log(columns.stride / np.maximum(columns.kernel, 1.0) * window),
        log(columns.groups) / 4,
        log(into + 1) / 6,
        log(out + 1) / 6,
        columns.read_bytes / np.maximum(columns.bytes, 1.0),
        (columns.element_bytes == 2).astype(np.float64),
    ]
    constants = [
        float(setting.channels_last),
        setting.framework_age,
        float(setting.framework == "tensorflow"),
    ]
    both = float(setting.channels_last) * np.stack(
        [(columns.kernel > 1).astype(float), (columns.groups > 1).astype(float)]
    )
    hot_class = np.eye(len(CLASSES))[columns.op_class]
    hot_math = np.eye(len(MATHS))[columns.math]
    hot_pass = np.eye(4)[columns.gradient]
    hot_phase = np.eye(3)[columns.phase]
    return np.concatenate(
        [np.stack(numbers, axis=1), np.tile(constants, (size, 1)), both.T, hot_class, hot_math, hot_pass, hot_phase],
        axis=1,
    )
