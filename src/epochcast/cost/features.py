"""What a learned cost model is told about an op: numbers that say how well a device can run it, not how long it takes.

Sizes enter as logarithms: work, traffic, tiles of the result, channels. The device is not among them. What it sustains
is a number of its own (`hardware.sustained`), trees and nets that were told data sheets did not extrapolate to new
ones, and a model that cannot see the device cannot make a faster one slower.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epochcast.graph.trace import CLASSES, MATHS, Columns

Array = NDArray[np.float64]

# The output tile of the GEMM kernels cuBLAS and cuDNN choose for large products (CUTLASS' default threadblock).
TILE = 128


@dataclass(frozen=True, slots=True)
class Setting:
    """What of the software decides kernels: memory layout, framework and its generation (0 old … 1 new)."""

    channels_last: bool = False
    framework: str = "pytorch"
    framework_age: float = 0.0


def features(columns: Columns, setting: Setting) -> Array:
    """One row per op."""
    tiles = np.ceil(columns.m / TILE) * np.ceil(columns.n / TILE) * columns.count
    tile_efficiency = columns.m * columns.n * columns.count / np.maximum(tiles * TILE * TILE, 1.0)
    is_matrix = columns.is_matrix.astype(np.float64)
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
    is_conv = (columns.channels_in > 0).astype(np.float64)
    even = aligned(columns.channels_in, 8) * aligned(columns.channels_out, 8) * is_conv
    last = float(setting.channels_last)
    is_grouped = (columns.groups > 1).astype(np.float64)
    thin = log(np.minimum(into, out) + 1) / 6
    numbers = [
        log(columns.flops / 1e8 + 1e-4) / 5,
        log(columns.bytes / 2**20) / 4,
        np.clip(log(np.maximum(columns.flops, 1.0) / np.maximum(columns.bytes, 1.0)), -3, 8) / 3,
        log(tiles) / 3 * is_matrix,
        tile_efficiency * is_matrix,
        even,
        even * last,
        last * is_grouped * log(window) / 2,
        last * is_grouped * thin,
        last * is_grouped * (out * into == 1),
        is_grouped * (out * into == 1) * log(window) / 2,
        last * is_conv * thin,
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
        last,
        setting.framework_age,
        last * setting.framework_age,
        float(setting.framework == "tensorflow"),
    ]
    both = last * np.stack([(columns.kernel > 1).astype(float), is_grouped])
    hot_class = np.eye(len(CLASSES))[columns.op_class]
    hot_math = np.eye(len(MATHS))[columns.math]
    hot_pass = np.eye(4)[columns.gradient]
    hot_phase = np.eye(3)[columns.phase]
    return np.concatenate(
        [np.stack(numbers, axis=1), np.tile(constants, (size, 1)), both.T, hot_class, hot_math, hot_pass, hot_phase],
        axis=1,
    )
