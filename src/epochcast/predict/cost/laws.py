"""Laws that every answer keeps, whatever was learnt:

    seconds ≥ flops / (w · peak)         no product runs above the peak of the format it really runs in
    seconds in half ≤ seconds in float32  of any op, where tensor cores multiply halves
    seconds in half ≥ seconds in float32  of products, where the device has no such half: it computes them in float32

w is 1 but for convolutions that Winograd's method may do: F(2x2, 3x3) multiplies 2.25 times less than is counted (Lavin
& Gray 2016). Boost clocks above the data sheet's are not counted on. An answer that breaks a law is moved to its bound,
with its interval.
"""

from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from epochcast.describe.graph.math_modes import op_math_index
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.trace import CLASSES, Columns
from epochcast.hardware.device import Device
from epochcast.predict.cost.cost_model import Array, Costs
from epochcast.predict.cost.op_bounds import as_run
from epochcast.predict.cost.roofline import peaks
from epochcast.predict.cost.software_setting import SoftwareSetting

WINOGRAD = 2.25
WINOGRAD_WINDOW = 9
SINGLE_BYTES = 4.0
_CONVOLUTIONS = np.array([c in (OpClass.CONV, OpClass.CONV_TRANSPOSED, OpClass.CONV_GROUPED) for c in CLASSES])
_HALVES = {op_math_index(math): math for math in ("fp16", "bf16")}
_SINGLE = op_math_index("fp32")


def least_seconds(columns: Columns, device: Device) -> Array:
    """Of every product at the peak of the format that the device computes it in; 0 for other ops."""
    run = as_run(columns, device)
    seconds: Array = np.where(run.is_matrix, run.flops / peaks(run, device), 0.0)
    return np.where(_by_winograd(run), seconds / WINOGRAD, seconds)


def _by_winograd(columns: Columns) -> NDArray[np.bool_]:
    """Convolutions of at least 3x3 with stride 1."""
    is_convolution = _CONVOLUTIONS[columns.op_class]
    is_winograd: NDArray[np.bool_] = is_convolution & (columns.kernel >= WINOGRAD_WINDOW) & (columns.stride == 1)
    return is_winograd


class Middles(Protocol):
    """Who gives middle seconds alone."""

    def seconds(self, columns: Columns, device: Device, setting: SoftwareSetting) -> Array:
        """Of every op; NaN where there is no answer."""
        ...


def bounds_by_single(
    columns: Columns, device: Device, setting: SoftwareSetting, model: Middles
) -> tuple[Array | float, Array | float]:
    """The least and the most seconds of every op in half, by the same in float32: at most as long where the device
    multiplies that half on tensor cores, and a product at least as long where it has no such half.
    """
    lacking = [math for math, name in _HALVES.items() if name not in device.peak_flops_per_second]
    own = [math for math in _HALVES if math not in lacking] if device.tensor_cores else []
    is_half = columns.element_bytes < SINGLE_BYTES
    is_quicker = is_half & np.isin(columns.math, own)
    is_slower = is_half & columns.is_matrix & np.isin(columns.math, lacking)
    places = np.flatnonzero(is_quicker | is_slower)
    if not len(places):
        return 0.0, np.inf
    in_single = np.full(len(columns), np.nan)
    in_single[places] = model.seconds(_in_single(columns.at(places)), device, setting)
    is_known = ~np.isnan(in_single)
    return np.where(is_slower & is_known, in_single, 0.0), np.where(is_quicker & is_known, in_single, np.inf)


def _in_single(columns: Columns) -> Columns:
    wider = SINGLE_BYTES / columns.element_bytes
    return replace(
        columns,
        math=np.full_like(columns.math, _SINGLE),
        read_bytes=columns.read_bytes * wider,
        written_bytes=columns.written_bytes * wider,
        element_bytes=np.full_like(columns.element_bytes, SINGLE_BYTES),
    )


def lawful(costs: Costs, columns: Columns, device: Device, setting: SoftwareSetting, model: Middles) -> Costs:
    """The costs within the laws; `model` is who answered them."""
    least, most = bounds_by_single(columns, device, setting, model)
    mid = np.maximum(np.minimum(costs.mid, most), np.maximum(least, least_seconds(columns, device)))
    if np.array_equal(mid, costs.mid, equal_nan=True):
        return costs
    moved = mid / costs.mid
    return replace(costs, low=costs.low * moved, mid=mid, high=costs.high * moved)
