"""Ops that were timed alone, from every table that has them, as rows for the net.

Most rows are one op. Fused layers (a layer with its backward pass) are several ops timed
together: they are trained like small steps.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.trace import CLASSES, Columns
from epochcast.hardware.catalogue import find_device
from epochcast.measure.evaluate.op_table import op_columns, op_setting
from epochcast.predict.cost.software_setting import SoftwareSetting
from training.examples import select
from training.modern_ops import (
    attention_columns,
    conv_columns,
    gemm_columns,
    is_full_attention,
)
from training.network import Kernels, Names, NetRow, OpRows, kernels_of, stack_name
from training.training_ops import read_training_ops, training_op_columns

Array = NDArray[np.float64]

# The stacks that timed the new tables: libraries of 2024 and 2025, called by PyTorch 2.
TODAY = SoftwareSetting(framework_age=0.77)
# Products with fewer rows than a few tiles are decoding, not training; they are drawn this much less often than others,
# and products in today's formats more often.
SMALL_ROWS, SMALL_WEIGHT, LARGE_WEIGHT = 250, 0.1, 2.0
LARGE_SIDE, LARGE_FLOPS = 256, 2e8
# A row that beats its data sheet by more than Winograd can is no measurement of what it claims to be.
_MOST_SPEED = 3.0
# How often a fused layer is drawn, against a step of a whole network.
FUSED_WEIGHT = 0.15
# Products of the table with backward passes: single ops like those of other tables.
_IS_PRODUCT = (pl.col("op") == "matmul") & (pl.col("phase") == "forward")


@dataclass(frozen=True)
class Timed:
    """Rows of one table: ops, the device and the group that share a way of timing, seconds, and how often drawn."""

    columns: Columns
    device: NDArray[np.str_]
    source: NDArray[np.str_]
    label: NDArray[np.str_]
    seconds: Array
    weight: Array


def timed_tables(folder: Path) -> Iterator[Timed]:
    """Every table of single ops."""
    yield _plain_ops(pl.read_parquet(folder / "ops.parquet"))
    yield _modern(folder, "gemm_modern", gemm_columns, "dtype")
    yield _modern(folder, "conv_amd", conv_columns, "dtype", pl.col("flops") > 1e7)
    attention = pl.read_parquet(folder / "attention_modern.parquet")
    yield _timed(attention.filter(pl.Series(is_full_attention(attention))), attention_columns, "source")
    training = read_training_ops(folder / "ops_training.parquet")
    yield _timed(training.filter(_IS_PRODUCT & pl.col("m").is_not_null()), gemm_columns, "dtype")


def _plain_ops(table: pl.DataFrame) -> Timed:
    kept = table.filter(~pl.col("note").str.contains("suspect") & (pl.col("family") != "rnn"))
    return _timed(kept, op_columns, "family")


def _modern(
    folder: Path, name: str, columns: Callable[[pl.DataFrame], Columns], label: str, keep: pl.Expr | None = None
) -> Timed:
    table = pl.read_parquet(folder / f"{name}.parquet")
    return _timed(table if keep is None else table.filter(keep), columns, label)


def _timed(table: pl.DataFrame, columns_of: Callable[[pl.DataFrame], Columns], label: str) -> Timed:
    columns = columns_of(table)
    device, source = (table[name].to_numpy().astype(str) for name in ("device", "source"))
    labels = np.char.add(np.char.add(source, device), table[label].to_numpy().astype(str))
    is_product = columns.op_class == CLASSES.index(OpClass.LINEAR)
    is_today = is_product & (columns.element_bytes <= 2)
    weight = np.where(is_today, np.where(columns.m < SMALL_ROWS, SMALL_WEIGHT, LARGE_WEIGHT), 1.0)
    return Timed(columns, device, source, labels, table["seconds"].to_numpy(), weight)


def op_rows(folder: Path, names: Names) -> tuple[OpRows, Array, NDArray[np.str_]]:
    """All rows for the net, the floor of every way of timing, and the device of every row."""
    pieces: list[Kernels] = []
    device_index: list[NDArray[np.int64]] = []
    labels, seconds, weights, large = [], [], [], []
    for table in timed_tables(folder):
        for name in np.unique(table.device):
            for origin in np.unique(table.source[table.device == name]):
                device = find_device(str(name), source=str(origin))
                places = np.flatnonzero((table.device == name) & (table.source == origin))
                kernels = kernels_of(select(table.columns, places), device, _setting(str(origin)))
                timed = table.seconds[places]
                limit = torch.maximum(kernels.log_compute, kernels.log_memory).numpy()
                is_kept = np.log(timed * _MOST_SPEED) > limit
                kept = places[is_kept]
                pieces.append(kernels.at(torch.tensor(is_kept)))
                device_index.append(np.full(len(kept), names.devices.index(device.name)))
                labels.append(table.label[kept])
                seconds.append(table.seconds[kept])
                weights.append(table.weight[kept])
                large.append(_is_large(select(table.columns, kept)))
    _, timing = np.unique(np.concatenate(labels), return_inverse=True)
    timed, places = np.concatenate(seconds), np.concatenate(device_index)
    floors = np.array([0.95 * np.quantile(timed[timing == t], 0.01) for t in range(timing.max() + 1)])
    weight = np.concatenate(weights) / np.sqrt(np.bincount(timing)[timing])
    rows = OpRows(
        Kernels.joined(pieces),
        torch.tensor(places),
        torch.tensor(timing),
        torch.tensor(np.log(timed), dtype=torch.float32),
        weight / weight.sum(),
        np.concatenate(large),
    )
    return rows, floors, np.array(list(names.devices.names))[places]


def _is_large(columns: Columns) -> NDArray[np.bool_]:
    least = np.minimum(np.minimum(columns.m, columns.n), columns.k)
    is_conv = columns.channels_in > 0
    return columns.is_matrix & np.where(is_conv, columns.flops > LARGE_FLOPS, least >= LARGE_SIDE)


def _setting(source: str) -> SoftwareSetting:
    return op_setting(source) if source in ("deepbench", "neusight") else TODAY


def fused_rows(folder: Path, names: Names) -> tuple[list[NetRow], list[str]]:
    """Layers with their backward pass as small steps, and their devices.

    Fused mixtures of experts (moe_modern) are not among them: those kernels are of serving engines.
    """
    table = read_training_ops(folder / "ops_training.parquet").filter(~_IS_PRODUCT)
    owned = training_op_columns(table)
    nets, devices = [], []
    starts = np.searchsorted(owned.owner, np.arange(len(table) + 1))
    cells = zip(*(table[name].to_list() for name in ("device", "source", "seconds")), strict=True)
    for place, (name, source, seconds) in enumerate(cells):
        ops = select(owned.columns, np.arange(starts[place], starts[place + 1]))
        if not len(ops):
            continue
        device = find_device(name, source=source)
        stack = names.stacks.index(stack_name(source, device.name))
        nets.append(
            NetRow(
                kernels_of(ops, device, TODAY),
                torch.ones(len(ops)),
                float(ops.launches.sum()),
                names.devices.index(device.name),
                stack,
                names.sources.index(source),
                float(np.log(seconds)),
                FUSED_WEIGHT,
            )
        )
        devices.append(device.name)
    return nets, devices
