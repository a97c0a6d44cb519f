"""Tiles and waves: how much more arithmetic a matrix product costs because its kernel runs in whole tiles and waves.

A kernel computes its output in tiles of a × b elements, one tile to a multiprocessor at a time. T tiles on U
multiprocessors take ⌈T/U⌉ waves, and the last one may be nearly empty:

    padding(a, b) = ⌈count·⌈m/a⌉·⌈n/b⌉ / U⌉ · U · a · b / (count·m·n)

A library picks among tiles. Smaller ones fill the device better and run slower; the inner size may be divided, too,
which needs no waves. Each choice has a cost, learnt once for all devices:

    padding = (Σ over tiles (padding(a, b) · cost(a, b))^-20 + cost(divided)^-20)^(-1/20)

which is the least of them, smoothed. ⌈·⌉ never falls, so work·padding never falls when m, n or count grow.
"""

import numpy as np
from numpy.typing import NDArray

from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.trace import CLASSES, Columns

Array = NDArray[np.float64]

TILES = ((256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (64, 32))
"""Rows and columns of the output tiles of CUTLASS' and cuBLAS' kernels."""
_ROWS, _WIDTHS = np.array(TILES, dtype=np.float64).T
CHOICES = len(TILES) + 1
"""The tiles, and dividing the inner size."""
_TILED = np.array(
    [
        c
        in (
            OpClass.LINEAR,
            OpClass.BATCHED_MATMUL,
            OpClass.ATTENTION,
            OpClass.CONV,
            OpClass.CONV_POINTWISE,
            OpClass.CONV_GROUPED,
            OpClass.CONV_TRANSPOSED,
        )
        for c in CLASSES
    ]
)
_ATTENTION = CLASSES.index(OpClass.ATTENTION)


def is_tiled(columns: Columns) -> NDArray[np.bool_]:
    """Which ops run in tiles."""
    has_shape = (columns.m > 0) & (columns.n > 0) & (columns.count > 0)
    tiled: NDArray[np.bool_] = columns.is_matrix & has_shape & _TILED[columns.op_class]
    return tiled


def log_paddings(columns: Columns, units: float) -> Array:
    """log padding(a, b) of every op by tile on so many multiprocessors, 0 for the inner size divided. Fused attention
    has tiles of rows only.
    """
    m, n, count = (np.maximum(values, 1.0)[:, None] for values in (columns.m, columns.n, columns.count))
    wide = np.where((columns.op_class == _ATTENTION)[:, None], n, _WIDTHS)
    tiles = count * np.ceil(m / _ROWS) * np.ceil(n / wide)
    paddings = np.zeros((len(columns), CHOICES))
    paddings[:, : len(TILES)] = np.log(np.ceil(tiles / units) * units * _ROWS * wide / (count * m * n))
    return paddings


# How sharply the least is taken.
SHARPNESS = 20.0


def most_padding(log_costs: Array) -> float:
    """How far the padding of one op on one device can be above that on another: dividing the inner size needs no waves,
    and no choice costs less than the least.
    """
    return float(log_costs[-1] - log_costs.min()) + float(np.log(CHOICES)) / SHARPNESS


def log_padding(paddings: Array, is_tiled: NDArray[np.bool_], log_costs: Array) -> Array:
    """The least padding of every op as a logarithm; 0 for those without tiles."""
    least: Array = -np.log(np.exp(-SHARPNESS * (paddings + log_costs)).sum(axis=1)) / SHARPNESS
    return np.where(is_tiled, least, 0.0)
