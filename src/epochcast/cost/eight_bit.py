"""Products in eight and four bits, from the seconds of the same product in sixteen.

    t₈ = t₁₆ · r₈/r₁₆        r₁₆ = max(f/P, b₁₆/B)    r₈ = max(f/(g·P), b₈/B)

f flops, b bytes in that format, P the device's peak in bf16, B its bandwidth; t₁₆ is another model's answer for the
product in bf16. g is the measured speed-up of products: NVIDIA's published benchmark of Transformer Engine ("GEMM
profiling", operands quantised beforehand, the twelve products of a layer 4,096 wide on 15,872 tokens) has, over bf16,

    fp8 1.90 (H200), 1.92 (B300)    mxfp8 1.83 (B300)    nvfp4 3.48 (B300)

while data sheets promise 2, 2 and 6. If a data sheet promises less than g, that is the speed-up: 1 without such a
format. None of our measured runs was used for g.

The interval of t₁₆ is widened by SPREAD: in the same benchmark the gain in fp8 goes from 1.33 to 2.13 by shape.
"""

from dataclasses import dataclass, replace

import numpy as np

from epochcast.cost.model import Array, CostModel, Costs
from epochcast.cost.setting import Setting
from epochcast.graph.maths import op_math_index
from epochcast.graph.trace import Columns
from epochcast.hardware.device import Device

FP8_GAIN, FP4_GAIN = 1.88, 3.48
SPREAD = 1.25
NARROW, WIDE = op_math_index("fp8"), op_math_index("bf16")


@dataclass(frozen=True)
class EightBit:
    """Costs narrow products from what `base` says of wide ones; has no answer for other ops."""

    base: CostModel
    name: str = "eight_bit"
    is_monotone: bool = False

    def costs(self, columns: Columns, device: Device, setting: Setting) -> Costs:
        """Seconds of every narrow product."""
        narrow = (columns.math == NARROW) & columns.is_matrix
        low, mid, high = (np.full(len(columns), np.nan) for _ in range(3))
        if narrow.any():
            products = columns.at(narrow)
            wide_products = replace(
                products,
                math=np.full(len(products), WIDE),
                element_bytes=np.full(len(products), 2.0),
                read_bytes=2 * products.read_bytes,  # both operands are a byte an element
            )
            # Such products belong to linear layers: the layout of images does not matter.
            costs = self.base.costs(wide_products, device, replace(setting, channels_last=False))
            wide_bound = _bound(wide_products, device, np.ones(len(products)))
            ratio = _bound(products, device, _gains(products, device)) / wide_bound
            low[narrow], mid[narrow], high[narrow] = (
                costs.low * ratio / SPREAD,
                costs.mid * ratio,
                costs.high * ratio * SPREAD,
            )
        return Costs.by(self.name, low, mid, high)


def _gains(columns: Columns, device: Device) -> Array:
    """How much faster than in bf16 each product is where arithmetic binds."""
    has_four = "fp4" in device.peak_flops_per_second
    eight, four = (device.peak(math) / device.peak("bf16") for math in ("fp8", "fp4"))
    gain = min(FP8_GAIN, max(1.0, eight))
    return np.where(columns.element_bytes < 1, min(FP4_GAIN, four) if has_four else gain, gain)


def _bound(columns: Columns, device: Device, gains: Array) -> Array:
    compute = columns.flops / (gains * device.peak("bf16"))
    bound: Array = np.maximum(compute, columns.bytes / device.memory_bytes_per_second)
    return bound
