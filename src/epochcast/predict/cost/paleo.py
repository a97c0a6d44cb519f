"""PALEO: read, compute, write, each at one fixed percent of peak (Qi, Sparks & Talwalkar 2017, ICLR).

    T(op) = flops / (peak · p) + bytes / (bandwidth · p)

p is the platform's percent of peak, one number for a framework on all its ops: `PLATFORMS`. The parts of an op add up
(mid); with perfect pipelining the longer one is left (low). A series of layers adds; nothing overlaps, launches are
free.

Conventions of the published program, found by comparing its figures with ours (`studies/paleo`):

- The backward pass of a convolution is two products, for the data and for the weights. The first counts as a dense
  convolution that makes the whole input from the padded gradient, 2·N·H·W·C_in·C_out·k² / stride²: a fully connected
  layer written as a k x k convolution without padding costs k² times its forward pass. `dense_data_gradient=False`
  counts only what is needed.
- The update reads the weights, reads the gradients, writes the weights, at the full peak.
- Bias, activation and softmax cost nothing there: its networks are built without them. Here every op counts.

A convolution is a product ("gemm"), or the cheaper of that and, for square windows at stride one and one group,

    "fft"    transforms on tiles of edge t = 32, u = t-k+1 of it useful (Mathieu, Henaff & LeCun 2014):
             5·t²·log₂t flops per plane, 4·t² per tile and pair of channels
    "best"   also Winograd's F(2x2, 3x3) (Lavin & Gray 2016): 32 flops per tile of data, 28 per filter, 24 per tile of
             result, 2·16 per tile and pair of channels

where PALEO asked cuDNN's heuristic, which needs a GPU. Both are optimistic: one percent of peak is used for all
algorithms. Tiles are counted as on square images. Only the number of taps of a window is known: 1x9 counts as 3x3.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.trace import CLASSES, PHASES, Columns
from epochcast.errors import UnknownName
from epochcast.hardware.device import Device
from epochcast.predict.cost.cost_model import Array, Costs
from epochcast.predict.cost.roofline import peaks
from epochcast.predict.cost.software_setting import SoftwareSetting


class Platform(NamedTuple):
    """Percent of peak of a platform: of the device, and of its links."""

    compute_fraction: float
    link_fraction: float


PLATFORMS: Mapping[str, Platform] = {
    "tensorflow": Platform(0.62, 0.72),
    "mxnet": Platform(0.49, 0.72),
    "caffe": Platform(0.21, 0.56),
    "one_weird_trick": Platform(0.46, 0.75),
}
"""As PALEO's section 5 gives them."""

ALGORITHMS = ("gemm", "fft", "best")
FFT_EDGE = 32  # cuDNN's tiled transform

_CONVS = [
    CLASSES.index(c) for c in (OpClass.CONV, OpClass.CONV_POINTWISE, OpClass.CONV_GROUPED, OpClass.CONV_DEPTHWISE)
]
_PLAIN_CONV = CLASSES.index(OpClass.CONV)
_UPDATE = PHASES.index(Phase.UPDATE)
_DATA, _WEIGHTS = 1, 2  # entries of Columns.gradient


@dataclass(frozen=True)
class Paleo:
    """flops/(peak·p) + bytes/(bandwidth·p); low is the longer part alone.

    `high` is mid times `high_factor`: PALEO gives no interval, and its own Table 1 is short by up to 1.31.
    """

    name: str = "paleo"
    algorithm: str = "gemm"
    compute_fraction: float = PLATFORMS["tensorflow"].compute_fraction
    update_fraction: float = 1.0
    dense_data_gradient: bool = True
    high_factor: float = 1.5
    is_monotone: bool = True

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise UnknownName("convolution algorithm", self.algorithm, ALGORITHMS)
        for name, value in (("compute_fraction", self.compute_fraction), ("update_fraction", self.update_fraction)):
            if not 0 < value <= 1:
                raise ValueError(f"{name} must be in (0, 1], got {value}")
        if not self.high_factor >= 1:
            raise ValueError(f"high_factor must be at least 1, got {self.high_factor}")

    def costs(self, columns: Columns, device: Device, setting: SoftwareSetting) -> Costs:
        """Parts added (mid), or the longer one (low)."""
        fraction = np.where(columns.phase == _UPDATE, self.update_fraction, self.compute_fraction)
        peak, bandwidth = peaks(columns, device) * fraction, device.memory_bytes_per_second * fraction
        compute = self._product_flops(columns) / peak
        memory = columns.bytes / bandwidth
        if self.algorithm != "gemm":
            for is_eligible, flops, size_bytes in _alternatives(columns, self.algorithm):
                other_compute, other_memory = flops / peak, size_bytes / bandwidth
                is_better = is_eligible & (other_compute + other_memory < compute + memory)
                compute = np.where(is_better, other_compute, compute)
                memory = np.where(is_better, other_memory, memory)
        mid = compute + memory
        return Costs.by(self.name, np.maximum(compute, memory), mid, mid * self.high_factor)

    def _product_flops(self, columns: Columns) -> Array:
        """The flops of each op as one product; the data gradient of a convolution is dense."""
        if not self.dense_data_gradient:
            return columns.flops
        is_dense = np.isin(columns.op_class, _CONVS) & (columns.gradient == _DATA)
        dense = 2 * columns.m * columns.n * columns.k * columns.count / columns.stride
        return np.where(is_dense, dense, columns.flops)


def _alternatives(columns: Columns, algorithm: str) -> Iterator[tuple[NDArray[np.bool_], Array, Array]]:
    """(where it applies, flops, bytes) of every other algorithm."""
    edge = np.sqrt(columns.kernel)
    is_plain = (columns.op_class == _PLAIN_CONV) & (columns.groups == 1) & (columns.stride == 1)
    positions = np.where(columns.gradient == _WEIGHTS, columns.k, columns.m)  # N·H'·W', what is tiled
    image_edge = np.sqrt(positions / columns.samples)
    into, out = columns.channels_in, columns.channels_out

    useful = np.maximum(FFT_EDGE - edge + 1, 1)
    tiles = columns.samples * np.ceil(image_edge / useful - 1e-9) ** 2
    planes = tiles * (into + out) + into * out
    flops = 5 * FFT_EDGE**2 * np.log2(FFT_EDGE) * planes + 4 * FFT_EDGE**2 * tiles * into * out
    # A real plane's transform is half of t² complex numbers: t² words, written once and read once.
    size_bytes = columns.bytes + 2 * FFT_EDGE**2 * columns.element_bytes * planes
    yield is_plain & (edge == np.rint(edge)) & (2 * edge <= FFT_EDGE), flops, size_bytes

    if algorithm == "best":
        tiles = columns.samples * np.ceil(image_edge / 2 - 1e-9) ** 2
        flops = 2 * 16 * tiles * into * out + 32 * tiles * into + 28 * into * out + 24 * tiles * out
        # The fused kernel keeps transforms on chip: the bytes are the product's. Weight gradients have no such kernel.
        yield is_plain & (columns.kernel == 9) & (columns.gradient != _WEIGHTS), flops, columns.bytes
