"""What the net is trained on: timed ops, and steps of whole networks with all their ops."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from epochcast.fitting.op_table import op_columns, op_setting
from epochcast.fitting.run_table import read_runs
from epochcast.hardware.catalogue import find_device
from training.examples import Example, examples, select
from training.files import data_folder, say
from training.network import Kernels, NetRow, OpRows, Vocabulary, kernels_of, net_row

# How often a source is drawn, against timm's 1 a row: what is measured carefully and in its own terms weighs more.
WEIGHTS = {
    "timm": 1.0,
    "torchvision_gpu_bench": 1.0,
    "neusight": 6.0,
    "jcjohnson": 0.5,
    "tf_benchmarks_2017": 0.5,
}


@dataclass
class Material:
    """All training data of the net."""

    ops: OpRows
    floors: NDArray[np.float64]
    op_devices: NDArray[np.str_]
    examples: list[Example]
    nets: list[NetRow]
    devices: Vocabulary
    stacks: Vocabulary
    failures: dict[str, str]


def gather() -> Material:
    """Read every table and capture every network in them."""
    folder = data_folder()
    devices, stacks = Vocabulary(), Vocabulary()
    ops, floors, op_devices = _op_rows(pl.read_parquet(folder / "ops.parquet"), devices)
    steps, failures = measured_steps(folder)
    nets = [net_row(e, devices, stacks, WEIGHTS[e.source] * _mode_weight(e)) for e in steps]
    return Material(ops, floors, op_devices, steps, nets, devices, stacks, failures)


def measured_steps(folder: Path) -> tuple[list[Example], dict[str, str]]:
    """Every step of the training data, always in the same order, and the networks that could not be captured."""
    single = pl.col("gpus") == 1
    runs = pl.read_parquet(folder / "runs.parquet").filter(
        single
        & pl.col("source").is_in(list(WEIGHTS))
        & ~pl.col("framework_version").fill_null("").str.contains("cudnn none")  # nobody trains without it today
    )
    # Inference of the networks that were trained: most of the captures serve both.
    inference = pl.read_parquet(folder / "inference_runs.parquet").filter(
        single
        & pl.col("source").is_in(["timm", "torchvision_gpu_bench"])
        & ~pl.col("device").str.contains("CPU")
        & ~pl.col("framework_version").fill_null("").str.contains(r"\?|2\.9|2\.1")
        & pl.col("model").is_in(_distinct(runs)["model"].unique().implode())
    )
    transformers = pl.read_parquet(folder / "transformer_runs.parquet").filter(single & ~pl.col("compiled"))
    rows = [*_distinct(runs).to_dicts(), *_thinned(inference).to_dicts(), *transformers.to_dicts()]
    questions, _ = read_runs(rows)
    return examples(questions, say)


def _mode_weight(example: Example) -> float:
    return 0.4 if example.recipe.mode == "forward" and example.source == "timm" else 1.0


def _distinct(table: pl.DataFrame) -> pl.DataFrame:
    """One name per architecture where several of its weights were timed: a repeated network adds nothing."""
    same = [
        "forward_macs_per_sample",
        "activations_per_sample",
        "parameters",
        "input_shape",
        "framework_version",
        "channels_last",
    ]
    timm = pl.col("source") == "timm"
    return pl.concat([table.filter(timm).unique(same, keep="first", maintain_order=True), table.filter(~timm)])


def _thinned(table: pl.DataFrame) -> pl.DataFrame:
    """Every fourth network of timm, once per device, precision, layout and version: forward passes teach less than
    steps, and each batch size of them is a capture of its own.
    """
    keys = ["source", "model", "device", "precision", "channels_last", "framework_version"]
    some = table.filter(pl.col("source") == "timm")["model"].unique().sort().gather_every(4)
    selected = table.filter((pl.col("source") != "timm") | pl.col("model").is_in(some.implode()))
    return selected.unique(keys, keep="first", maintain_order=True)


def _op_rows(table: pl.DataFrame, devices: Vocabulary) -> tuple[OpRows, NDArray[np.float64], NDArray[np.str_]]:
    table = table.filter(~pl.col("note").str.contains("suspect") & (pl.col("family") != "rnn"))
    columns = op_columns(table)
    names = table["device"].to_numpy().astype(str)
    source = table["source"].to_numpy().astype(str)
    family = table["family"].to_numpy().astype(str)
    seconds = table["seconds"].to_numpy()
    pieces: list[Kernels] = []
    order, device_index = [], []
    for name in np.unique(names):
        for origin in np.unique(source[names == name]):
            places = np.flatnonzero((names == name) & (source == origin))
            device = find_device(name, source=origin)
            pieces.append(kernels_of(select(columns, places), device, op_setting(origin)))
            order.append(places)
            device_index += [devices.index(device.name)] * len(places)
    place = np.concatenate(order)
    labels = np.char.add(np.char.add(source, names), family)[place]
    _, timing = np.unique(labels, return_inverse=True)
    timed = seconds[place]
    floors = np.array([0.95 * np.quantile(timed[timing == t], 0.01) for t in range(timing.max() + 1)])
    weight = 1 / np.sqrt(np.bincount(timing)[timing])
    rows = OpRows(
        Kernels.joined(pieces),
        torch.tensor(device_index),
        torch.tensor(timing),
        torch.tensor(np.log(timed), dtype=torch.float32),
        weight / weight.sum(),
    )
    return rows, floors, np.array([list(devices.names)[i] for i in device_index])
