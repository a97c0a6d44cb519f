"""The features of an op for the learned cost model: its kind, and those of its sizes that the batch does not change.

The size of an op enters the model by one number only, the least seconds that its work needs (`predict.cost.learned`),
which always grows with flops and bytes. None of the features grows with the batch: not the rows of a product, not the
inner size where the gradient of a weight is summed over rows, not the number of elements. The device is not a feature
either.
What it sustains is a separate number (`hardware.sustained`): trees and nets with data sheets as features did not
extrapolate to new devices, and a model without them cannot make a faster device slower. So a step has the same features
at every batch and on every device: they are a function of its `Outline`.
"""

from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochcast.describe.graph.math_modes import OP_MATHS
from epochcast.describe.graph.op import Gradient, Phase
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.trace import CLASSES, PHASES, Columns
from epochcast.predict.cost.software_setting import SoftwareSetting

Array = NDArray[np.float64]

# The output tile of the GEMM kernels cuBLAS and cuDNN choose for large products (CUTLASS' default threadblock).
TILE = 128
LARGE_WINDOW, WIDE_GROUP = 49, 32

_OF_WEIGHTS = tuple(Gradient).index(Gradient.WEIGHTS)
# A larger batch means more of these products, not larger ones.
_PER_SAMPLE = np.array([c in (OpClass.BATCHED_MATMUL, OpClass.ATTENTION) for c in CLASSES])
# Vector ops whose rows are within a sample.
_BY_ROW = np.array([c in (OpClass.LAYER_NORM, OpClass.OTHER_NORM, OpClass.SOFTMAX) for c in CLASSES])
# An update streams through memory as any elementwise op does. In a measured step it cannot be told from other kernels,
# so it has no features of its own: a net would put the errors of other kernels there.
_UPDATE, _ELEMENTWISE = CLASSES.index(OpClass.UPDATE), CLASSES.index(OpClass.ELEMENTWISE)
_FORWARD = PHASES.index(Phase.FORWARD)


class Outline(NamedTuple):
    """The columns that features are computed from; sizes that grow with the batch are 0."""

    m: Array
    n: Array
    k: Array
    op_class: NDArray[np.int64]
    phase: NDArray[np.int64]
    math: NDArray[np.int64]
    gradient: NDArray[np.int64]
    element_bytes: Array
    kernel: Array
    stride: Array
    groups: Array
    channels_in: Array
    channels_out: Array
    is_matrix: NDArray[np.bool_]

    @classmethod
    def of(cls, columns: Columns) -> "Outline":
        """Of every op."""
        is_of_weights = columns.gradient == _OF_WEIGHTS
        m = np.where(columns.is_matrix & (_PER_SAMPLE[columns.op_class] | is_of_weights), columns.m, 0.0)
        n = np.where(columns.is_matrix | _BY_ROW[columns.op_class], columns.n, 0.0)
        k = np.where(columns.is_matrix & ~is_of_weights, columns.k, 0.0)
        is_update = columns.op_class == _UPDATE
        op_class = np.where(is_update, _ELEMENTWISE, columns.op_class)
        phase = np.where(is_update, _FORWARD, columns.phase)
        return cls(m, n, k, op_class, phase, *(getattr(columns, name) for name in cls._fields[5:]))

    @property
    def digest(self) -> bytes:
        """A key for caches: the same for the same ops."""
        return blake2b(b"".join(array.tobytes() for array in self), digest_size=16).digest()

    def distinct(self) -> tuple["Outline", NDArray[np.int64]]:
        """Each distinct op once, and for every op its index among them."""
        rows = zip(*(array.tolist() for array in self), strict=True)
        places: dict[tuple[float, ...], int] = {}
        index = np.array([places.setdefault(row, len(places)) for row in rows], dtype=np.int64)
        firsts = np.unique(index, return_index=True)[1]
        return Outline._make(array[firsts] for array in self), index


def features(columns: Columns, setting: SoftwareSetting) -> Array:
    """One row per op."""
    return outline_features(Outline.of(columns), setting)


def outline_features(ops: Outline, setting: SoftwareSetting) -> Array:
    """One row per op."""
    m, n, k = ops.m, ops.n, ops.k
    is_matrix = ops.is_matrix.astype(np.float64)
    # Windows that do not overlap (patches) read each input once, as a 1x1 does; beyond 11x11 nothing changes.
    window = np.where(ops.stride >= ops.kernel, 1.0, np.minimum(ops.kernel, 121.0))
    tiles = np.ceil(n / TILE)
    rows, row_tiles = np.maximum(m, 1.0), np.where(m > 0, np.ceil(m / TILE) * TILE, 1.0)
    tile_efficiency = rows * n / np.maximum(row_tiles * tiles * TILE, 1.0)

    def log(values: Array) -> Array:
        logs: Array = np.log(np.maximum(values, 1e-12))
        return logs

    def aligned(values: Array, to: int) -> Array:
        fits: Array = (np.mod(values, to) == 0).astype(np.float64)
        return fits

    into = ops.channels_in / np.maximum(ops.groups, 1.0)
    out = ops.channels_out / np.maximum(ops.groups, 1.0)
    is_conv = (ops.channels_in > 0).astype(np.float64)
    even = aligned(ops.channels_in, 8) * aligned(ops.channels_out, 8) * is_conv
    last = float(setting.channels_last)
    is_grouped = (ops.groups > 1).astype(np.float64)
    is_depthwise = is_grouped * (out * into == 1)
    thin = log(np.minimum(into, out) + 1) / 6
    # Libraries have other kernels for depthwise windows beyond 7x7, and for groups as wide as a tile.
    is_large_depthwise = is_depthwise * (ops.kernel > LARGE_WINDOW)
    width = np.maximum(log(np.minimum(into, out) / WIDE_GROUP), 0.0)
    numbers = [
        log(tiles) / 3 * is_matrix,
        tile_efficiency * is_matrix,
        even,
        even * last,
        last * is_grouped * log(window) / 2,
        last * is_grouped * thin,
        last * is_depthwise,
        is_depthwise * log(window) / 2,
        is_large_depthwise,
        last * is_large_depthwise,
        is_grouped * width,
        last * is_grouped * width,
        last * is_conv * thin,
        log(m + 1) / 8,
        log(n + 1) / 8,
        log(k + 1) / 8,
        aligned(n, 8) * is_matrix,
        aligned(k, 8) * is_matrix,
        aligned(n, 64) * is_matrix,
        log(window) / 2,
        log(ops.stride / np.maximum(ops.kernel, 1.0) * window),
        log(ops.groups) / 4,
        log(into + 1) / 6,
        log(out + 1) / 6,
        (ops.element_bytes == 2).astype(np.float64),
    ]
    constants = [
        last,
        setting.framework_age,
        last * setting.framework_age,
    ]
    both = last * np.stack([(ops.kernel > 1).astype(float), is_grouped])
    hot_class = np.eye(len(CLASSES))[ops.op_class]
    hot_math = np.eye(len(OP_MATHS))[ops.math]
    hot_pass = np.eye(4)[ops.gradient]
    hot_phase = np.eye(3)[ops.phase]
    return np.concatenate(
        [np.stack(numbers, axis=1), np.tile(constants, (len(n), 1)), both.T, hot_class, hot_math, hot_pass, hot_phase],
        axis=1,
    )


# Behind the maths stand the four kinds of gradient and the three phases.
_BEHIND_MATHS = 4 + 3


def math_features(row: Array) -> Array:
    """The part of a row of features that says in which math an op runs."""
    end = len(row) - _BEHIND_MATHS
    return row[end - len(OP_MATHS) : end]
