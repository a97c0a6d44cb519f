"""Tables of single-layer benchmarks (the columns of `layers_conv2d`, `layers_dense`) as rows that a model can forecast.

A table with `features_in` holds dense layers, one with `kernel_size` convolutions. The software stack is read from a
`stack` column where there is one (tensorflow1, tensorflow2); else a table with `source_file` is the report's
(TensorFlow 2), any other Justus' (TensorFlow 1.10).
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from epochcast.errors import BadInput, EpochcastError
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.predict.cost.layers_model import LayersModel, layers_model
from epochcast.predict.cost.single_layer import ACTIVATIONS, UPDATE_BYTES, LayerRows

Array = NDArray[np.float64]

STACKS = ("tensorflow1", "tensorflow2")
_DENSE, _CONV = "features_in", "kernel_size"
SIZES = (
    "batch_size",
    "input_size",
    "kernel_size",
    "stride",
    "channels_in",
    "channels_out",
    "features_in",
    "features_out",
)
TEXTS = ("device", "activation", "optimizer", "padding", "stack")
FLAGS = ("use_bias", "backward_and_update", "failed")
_SHARED = ("device", "batch_size", "activation", "optimizer")


@dataclass(frozen=True)
class LayerTable:
    """The rows of one table with GPU, software stack and seconds (NaN where a run failed or was not measured)."""

    rows: LayerRows
    device: NDArray[np.str_]
    stack: NDArray[np.str_]
    seconds: Array

    @property
    def is_measured(self) -> NDArray[np.bool_]:
        """Whether a row has a time."""
        return np.isfinite(self.seconds) & (self.seconds > 0)

    def at(self, where: NDArray[np.bool_] | NDArray[np.int64]) -> "LayerTable":
        """Some of the rows."""
        return LayerTable(self.rows.at(where), self.device[where], self.stack[where], self.seconds[where])

    def setups(self) -> list[tuple[Device, str, NDArray[np.bool_]]]:
        """Every GPU and stack in the table, with its rows."""
        pairs = sorted(set(zip(self.device.tolist(), self.stack.tolist(), strict=True)))
        return [(find_device(d), s, (self.device == d) & (self.stack == s)) for d, s in pairs]


def is_layer_table(columns: list[str]) -> bool:
    """Whether a table with these columns holds single layers."""
    return all(name in columns for name in _SHARED) and (_DENSE in columns or _CONV in columns)


def read_layers(frame: pl.DataFrame) -> LayerTable:
    """A table with the columns of one of the `layers_*` files; `seconds_median` (or `seconds`) may be missing."""
    missing = [name for name in _SHARED if name not in frame.columns]
    if missing or not is_layer_table(frame.columns):
        wanted = ", ".join(missing) or f"{_DENSE} or {_CONV}"
        raise BadInput(f"a table of single layers needs {wanted}; it has {', '.join(frame.columns)}")
    kind = "dense" if _DENSE in frame.columns else "conv2d"
    size = len(frame)

    def numbers(name: str) -> Array:
        if name not in frame.columns:
            raise BadInput(f"a table of single {kind} layers needs {name}")
        return frame[name].cast(pl.Float64).fill_null(np.nan).to_numpy()

    def texts(name: str) -> NDArray[np.str_]:
        if name not in frame.columns:
            raise BadInput(f"a table of single {kind} layers needs {name}")
        return frame[name].cast(pl.String).fill_null("none").to_numpy().astype(np.str_)

    def flags(name: str, default: NDArray[np.bool_]) -> NDArray[np.bool_]:
        if name not in frame.columns:
            return default
        return frame[name].cast(pl.Boolean).fill_null(pl.Series(default)).to_numpy().astype(np.bool_)

    optimizer = texts("optimizer")
    ones = np.ones(size)
    is_dense = kind == "dense"
    rows = LayerRows(
        kind,
        numbers("batch_size"),
        ones if is_dense else numbers("input_size"),
        ones if is_dense else numbers("kernel_size"),
        ones if is_dense else numbers("stride"),
        np.zeros(size, dtype=np.bool_) if is_dense else texts("padding") == "same",
        numbers("features_in" if is_dense else "channels_in"),
        numbers("features_out" if is_dense else "channels_out"),
        flags("use_bias", np.ones(size, dtype=np.bool_)),
        texts("activation"),
        optimizer,
        flags("backward_and_update", optimizer != "none"),
    )
    return LayerTable(rows, texts("device"), _stack(frame), _seconds(frame))


def _stack(frame: pl.DataFrame) -> NDArray[np.str_]:
    if "stack" in frame.columns:
        return frame["stack"].to_numpy().astype(np.str_)
    return np.full(len(frame), STACKS["source_file" in frame.columns])


def _seconds(frame: pl.DataFrame) -> Array:
    name = next((n for n in ("seconds_median", "seconds") if n in frame.columns), None)
    if name is None:
        return np.full(len(frame), np.nan)
    return frame[name].cast(pl.Float64).fill_null(np.nan).to_numpy()


def evaluate_layers(
    frame: pl.DataFrame, cost_model: object = None, *, layers: LayersModel | None = None
) -> tuple[Array, Array, Array]:
    """low, mid and high seconds of every row, measured or not; NaN where a row is invalid or its GPU is unknown.

    The cost model of ops is not used: these rows contain more than the ops of a layer, and `layers` was fitted to all
    of it.
    """
    model, is_good = layers or layers_model(), _is_readable(frame)
    table, row_indices = read_layers(frame.filter(pl.Series(is_good))), np.flatnonzero(is_good)
    low, mid, high = (np.full(len(frame), np.nan) for _ in range(3))
    for device, stack, is_own in table.setups():
        seconds = model.answer(table.rows.at(is_own), device, stack)
        for end, values in zip((low, mid, high), (seconds.low, seconds.mid, seconds.high), strict=True):
            end[row_indices[is_own]] = values
    return low, mid, high


def _is_readable(frame: pl.DataFrame) -> NDArray[np.bool_]:
    """Which rows can be forecast.

    Those with a known GPU, sizes of at least 1, a window inside its image, and known activation and optimizer.
    """
    if not is_layer_table(frame.columns):
        return np.ones(len(frame), dtype=np.bool_)
    devices = {name for name in frame["device"].unique() if name is not None and _is_device(str(name))}
    is_good = pl.col("device").is_in(devices) & pl.col("activation").is_in(ACTIVATIONS)
    is_good &= pl.col("optimizer").fill_null("none").is_in(list(UPDATE_BYTES))
    for name in SIZES:
        if name in frame.columns:
            is_good &= pl.col(name) >= 1
    if {"padding", "kernel_size", "input_size"} <= set(frame.columns):
        is_good &= (pl.col("padding") == "same") | (pl.col("kernel_size") <= pl.col("input_size"))
    return frame.select(is_good.fill_null(False)).to_series().to_numpy().astype(np.bool_)


def _is_device(name: str) -> bool:
    try:
        find_device(name)
    except EpochcastError:
        return False
    return True
