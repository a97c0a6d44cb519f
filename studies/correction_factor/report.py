"""The report's measurements: steps of its networks, and single layers beside them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.hardware.catalogue import find_device
from epochcast.measure.evaluate.report_table import CIFAR_IMAGES

DEVICE = find_device("P100-PCIe")
NETWORKS = {"mnist_cnn_3conv": "mnist_cnn", "mnist_cnn_2conv": "mnist_cnn_2conv", "cifar10_cnn_3conv": "cifar10_cnn"}


@dataclass(frozen=True)
class Run:
    """Seconds of `steps` steps. `includes_start_up`: the first epoch is among them."""

    network: str
    strategy: str
    optimizer: str
    batch: int
    steps: int
    seconds: float
    includes_start_up: bool

    def step_seconds(self, start_up_seconds: float) -> float:
        """One step, with the start-up taken off where it was timed."""
        return (self.seconds - start_up_seconds * self.includes_start_up) / self.steps

    def trace(self) -> Trace:
        """The step of the network; a mirrored step is that of one replica."""
        return zoo_model(NETWORKS.get(self.network, "mnist_cnn")).trace(Recipe(self.batch, optimizer=self.optimizer))


def runs(folder: Path) -> list[Run]:
    """Every run that can be compared: medians of later epochs, totals as they are; the marked outlier is left out.

    The CIFAR-10 totals of the mirrored sheet count 60,000 images an epoch; the set has 50,000, so its steps are
    counted from that.
    """
    table = pl.read_parquet(folder / "report_runs.parquet")
    table = table.filter(~pl.col("note").str.contains("outlier") & (pl.col("epoch").is_null() | (pl.col("epoch") > 1)))
    table = table.filter(
        ~((pl.col("model") == "mnist_cnn") & (pl.col("epochs_in_time") > 1))
    )  # medians of these are there too
    keys = [
        "model",
        "strategy",
        "optimizer",
        "batch_size_per_replica",
        "gpu_count",
        "steps_per_epoch",
        "epochs_in_time",
    ]
    grouped = table.group_by(keys).agg(pl.col("seconds").median(), pl.col("note").first()).sort(keys)
    layers = []
    for row in grouped.iter_rows(named=True):
        batch, steps = row["batch_size_per_replica"], row["steps_per_epoch"]
        if "sample count uncertain" in row["note"]:
            steps = -(-CIFAR_IMAGES // (batch * row["gpu_count"]))
        total = row["epochs_in_time"] > 1
        layers.append(
            Run(
                row["model"],
                row["strategy"],
                row["optimizer"],
                batch,
                steps * row["epochs_in_time"],
                row["seconds"],
                total,
            )
        )
    return layers


def start_up_seconds(folder: Path) -> float:
    """First epoch minus the median of the later ones, median over the runs that give both."""
    table = pl.read_parquet(folder / "report_runs.parquet").filter(pl.col("epoch").is_not_null())
    first = table.filter(pl.col("epoch") == 1).select("model", "batch_size_per_replica", first="seconds")
    later = (
        table.filter(pl.col("epoch") > 1).group_by("model", "batch_size_per_replica").agg(pl.col("seconds").median())
    )
    joined = first.join(later, on=["model", "batch_size_per_replica"])
    return float(np.median((joined["first"] - joined["seconds"]).to_numpy()))


def single_layers(folder: Path) -> dict[tuple[str, int], np.ndarray]:
    """Measured seconds of every layer, in order, by network and batch."""
    table = pl.read_parquet(folder / "report_layer_benchmarks.parquet")
    table = table.filter((pl.col("strategy") == "single") & pl.col("model").is_in(list(NETWORKS))).sort("layer")
    groups = table.group_by(["model", "batch_size"], maintain_order=True).agg(pl.col("seconds_median"))
    return {(model, batch): np.array(seconds) for model, batch, seconds in groups.iter_rows()}
