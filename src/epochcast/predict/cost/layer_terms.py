"""A single-layer run as a sum of physical terms, and the features of a learned model of it.

    seconds ≈ Σ c_t · term_t,   c_t ≥ 0

A term is the seconds that one part of the run (`single_layer.parts`) would take at the data sheet's peak or
bandwidth, or 1 for the host's share. The coefficients belong to one setup (a GPU and a software stack) and say how
far from the data sheet each part runs: 1.3 on `update_input` means 77 % of the memory bandwidth. The sum alone is
accurate to 20–30 %; the rest (which algorithm cuDNN chooses, how tiles fit) is a ratio that the trees learn from
`features`.
"""

import numpy as np
from numpy.typing import NDArray

from epochcast.errors import BadInput
from epochcast.hardware.device import Device
from epochcast.predict.cost.roofline import bounds
from epochcast.predict.cost.single_layer import ACTIVATIONS, ELEMENT_BYTES, UPDATE_BYTES, LayerRows, parts

Array = NDArray[np.float64]

GENERATIONS = ("kepler", "maxwell", "pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell")
"""NVIDIA's, in order; setups and trees are ordered by it."""

TERMS = (
    "product_compute",
    "product_traffic",
    "weight_traffic",
    "gradient_compute",
    "gradient_traffic",
    "pointwise",
    "loss",
    "update_weights",
    "update_input",
    "update_target",
    "host",
    "host_training",
)
HOST_TERMS = ("host", "host_training")
ARTEFACT_TERMS = ("loss", "update_input", "update_target")
"""The parts that exist only in the benchmark."""
WEIGHT_TERMS = ("weight_traffic", "update_weights")
"""What goes with the weights alone: TensorFlow turns filters into the library's layout in every run."""
KERNEL_TERMS = tuple(name for name in TERMS if name not in HOST_TERMS + ARTEFACT_TERMS)
"""What a layer inside a network has, too."""


def terms(rows: LayerRows, device: Device) -> Array:
    """One row per layer, one column per name of `TERMS`, in seconds; the host's columns are 1 or 0."""
    bound = {name: bounds(columns, device) for name, columns in parts(rows).items()}
    trains = rows.trains.astype(float)
    columns = {
        "product_compute": bound["product"].compute,
        "product_traffic": bound["product"].memory,
        "weight_traffic": ELEMENT_BYTES * rows.weight_elements / device.memory_bytes_per_second,
        "gradient_compute": bound["data_gradient"].compute + bound["weight_gradient"].compute,
        "gradient_traffic": bound["data_gradient"].memory + bound["weight_gradient"].memory,
        "pointwise": bound["pointwise"].memory + bound["pointwise_gradient"].memory,
        **{name: bound[name].memory for name in ("loss", "update_weights", "update_input", "update_target")},
        "host": np.ones(len(rows)),
        "host_training": trains,
    }
    return np.stack([columns[name] for name in TERMS], axis=1)


FEATURES = (
    "setup",
    "age",
    "batch",
    "size",
    "output_size",
    "kernel",
    "stride",
    "channels_in",
    "channels_out",
    "is_same",
    "padding",
    "padding_is_odd",
    "size_is_odd",
    "has_bias",
    "activation",
    "optimizer",
    "update_bytes",
    "trains",
    "log_input",
    "log_output",
    "log_weight",
    "log_flops",
    "log_depth",
    "log_pixels",
    "log_base",
    "log_roofline",
    "log_intensity",
    "log_input_to_output",
    "log_channel_ratio",
    "kernel_to_stride",
    "tile_out_32",
    "tile_out_64",
    "tile_out_128",
    "tile_in_32",
    "out_modulo_32",
    "in_modulo_8",
    "log_waves",
    "wave_fraction",
    "log_fft_elements",
    "is_winograd",
    "is_product",
)
"""Winograd kernels take 3x3 windows of stride 1, a 1x1 window of stride 1 is a plain product; FFT kernels work on whole
images of every channel; implicit GEMM works in tiles of 32 to 128 output channels, in waves of as many tiles as there
are multiprocessors."""


def features(rows: LayerRows, device: Device, setup_place: int, generation: str, base_seconds: Array) -> Array:
    """One row per layer, one column per name of `FEATURES`.

    `setup_place` and `generation` are those of the setup whose kernels are assumed, which may differ from `device`.
    """
    table = terms(rows, device)
    compute, traffic = table[:, TERMS.index("product_compute")], table[:, TERMS.index("product_traffic")]
    pixels = rows.batch * rows.output_size**2
    depth = rows.channels_in * rows.kernel**2
    waves = np.ceil(pixels / 128) * np.ceil(rows.channels_out / 64) / device.compute_units
    images = rows.batch * (rows.channels_in + rows.channels_out) + rows.channels_in * rows.channels_out
    columns = {
        "setup": np.full(len(rows), float(setup_place)),
        "age": np.full(len(rows), float(age(generation))),
        "batch": rows.batch,
        "size": rows.size,
        "output_size": rows.output_size,
        "kernel": rows.kernel,
        "stride": rows.stride,
        "channels_in": rows.channels_in,
        "channels_out": rows.channels_out,
        "is_same": rows.is_same,
        "padding": rows.padding,
        "padding_is_odd": rows.padding % 2,
        "size_is_odd": rows.size % 2,
        "has_bias": rows.has_bias,
        "activation": _places(rows.activation, ACTIVATIONS),
        "optimizer": _places(rows.optimizer, tuple(UPDATE_BYTES)),
        "update_bytes": rows.update_bytes_per_element,
        "trains": rows.trains,
        "log_input": np.log(rows.input_elements),
        "log_output": np.log(rows.output_elements),
        "log_weight": np.log(rows.weight_elements),
        "log_flops": np.log(rows.product_flops),
        "log_depth": np.log(depth),
        "log_pixels": np.log(pixels),
        "log_base": np.log(base_seconds),
        "log_roofline": np.log(np.maximum(compute, traffic)),
        "log_intensity": np.log(compute / traffic),
        "log_input_to_output": np.log(rows.input_elements / rows.output_elements),
        "log_channel_ratio": np.log(rows.channels_in / rows.channels_out),
        "kernel_to_stride": np.minimum(rows.kernel / rows.stride, 4.0),
        "tile_out_32": _filled(rows.channels_out, 32),
        "tile_out_64": _filled(rows.channels_out, 64),
        "tile_out_128": _filled(rows.channels_out, 128),
        "tile_in_32": _filled(rows.channels_in, 32),
        "out_modulo_32": rows.channels_out % 32,
        "in_modulo_8": rows.channels_in % 8,
        "log_waves": np.log(waves),
        "wave_fraction": waves / np.ceil(waves),
        "log_fft_elements": np.log(images * rows.size**2),
        "is_winograd": (rows.kernel == 3) & (rows.stride == 1),
        "is_product": (rows.kernel == 1) & (rows.stride == 1),
    }
    # Single precision, as the trees were grown on: a threshold between two values then divides the same rows.
    return np.stack([np.asarray(columns[name], dtype=np.float32) for name in FEATURES], axis=1).astype(np.float64)


def _filled(size: Array, tile: int) -> Array:
    """Which part of its tiles a dimension fills."""
    return np.asarray(size / (np.ceil(size / tile) * tile))


def _places(names: NDArray[np.str_], table: tuple[str, ...]) -> Array:
    unknown = sorted(set(names) - set(table))
    if unknown:
        raise BadInput(f"single layers have {', '.join(table)}; got {unknown[0]!r}")
    places: Array = np.select([names == name for name in table], range(len(table))).astype(np.float64)
    return places


def age(generation: str) -> int:
    """The place of a generation; others come last."""
    return GENERATIONS.index(generation) if generation in GENERATIONS else len(GENERATIONS)
