"""Seconds of 3x3 convolutions by Winograd's method, F(4x4, 3x3), as cuDNN trains them in fp32 (Lavin & Gray 2016).

A tile of 4x4 outputs needs 6x6 transformed inputs and 36 products of every input with every output channel instead of
144; the transforms go through memory:

    T       = N · ⌈H/4⌉²                                            tiles
    product = 72 · T · C_in · C_out / (e · peak)                    36 products of matrices
    moves   = (x + y + 2 · 144 · T · (C_in + C_out)) / (f · bandwidth)  bytes: data read, transformed, and back
    layer   = 3 · (product + moves) + 8 · y / (f · bandwidth)       forward and both gradients; bias and activation

Few channels make the transforms dominate, many the products: at 256 channels and more a P100 trains at about twice the
peak of its multiply units. f is three quarters, as of other streams. e = 0.8 is fitted on VGG-16 in TensorFlow on a
P100 (`tf_benchmarks_2017`: 144 and 154 images/s at batch 32 and 64; 148 and 152 if its other layers take what memory
needs). It holds for channels in multiples of 32: others are padded and copied.
"""

import numpy as np
from numpy.typing import NDArray

from epochcast.hardware.device import Device
from epochcast.predict.cost.single_layer import ELEMENT_BYTES, LayerRows

Array = NDArray[np.float64]

TILE, TILE_PRODUCTS = 4, 36
PRODUCT_FRACTION, STREAM_FRACTION = 0.8, 0.75
# Passes over the output: bias and activation read and write it, the activation's gradient reads two and writes one, the
# bias' gradient reads it.
POINTWISE_PASSES = 8
CHANNELS = 32
# cuDNN has no such kernels for older multiprocessors.
_BEFORE_WINOGRAD = frozenset({"fermi", "kepler"})


def winograd_seconds(rows: LayerRows, device: Device) -> Array:
    """Of a layer's kernels in training; infinite where it does not run by this method with full tiles of channels."""
    x, y = ELEMENT_BYTES * rows.input_elements, ELEMENT_BYTES * rows.output_elements
    tiles = rows.batch * np.ceil(rows.output_size / TILE) ** 2
    flops = 2 * TILE_PRODUCTS * tiles * rows.channels_in * rows.channels_out
    transformed = 2 * ELEMENT_BYTES * TILE_PRODUCTS * tiles * (rows.channels_in + rows.channels_out)
    stream = STREAM_FRACTION * device.memory_bytes_per_second
    products = flops / (PRODUCT_FRACTION * device.peak("fp32")) + (x + y + transformed) / stream
    seconds: Array = 3 * products + POINTWISE_PASSES * y / stream
    is_full = (rows.channels_in % CHANNELS == 0) & (rows.channels_out % CHANNELS == 0)
    runs = is_full & (rows.kernel == 3) & (rows.stride == 1) & (device.generation not in _BEFORE_WINOGRAD)
    return np.where(runs, seconds, np.inf)
