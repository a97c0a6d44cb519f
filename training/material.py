"""What the net is trained on: timed ops, and steps of whole networks with all their ops."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from epochcast.measure.tables.run_table import read_runs
from training.examples import Example, examples
from training.files import data_folder, say
from training.network import Names, NetRow, OpRows, net_row
from training.op_material import fused_rows, op_rows

# How often a source is drawn, against timm's 1 a row: what is measured carefully and in its own terms weighs more.
# Not among them: aws_gpu_benchmark empties the allocator's cache after every step, so that allocations count;
# peft_method_comparison, ms_swift and simpletuner_sweep are bound by Python, sia_sosp23 by AdaptDL's hooks, gavel by
# its data loader.
WEIGHTS = {
    "timm": 1.0,
    "torchvision_gpu_bench": 1.0,
    "neusight": 6.0,
    "jcjohnson": 0.5,
    "tf_benchmarks_2017": 0.5,
    "lambda_tensorflow": 2.0,
    "xhmy_torch_benchmark": 2.0,
    "kernelbench_level3": 0.4,
    "lambda": 0.7,
    "torchvision_gpu_bench_fork": 0.6,
    "u39kun": 0.5,
    "zyr17_24gb": 1.0,
    "cs336": 1.0,
    "dlperf": 0.5,
    "fms_acceleration": 0.4,
    "litgpt": 1.0,
    "nvidia_dle": 0.5,
    "zeus_nsdi23": 0.7,
}
# Networks that wait for the device in the middle of a step: their seconds are not those of kernels or launches. And
# networks whose tables do not say how long their texts are.
NOT_TRAINED = ("maskrcnn_resnet50_fpn", "transformer_xl_base", "transformer_xl_large")
# Fleets that ran the same configuration on many machines alike: one row of each, with the median of what they measured.
FLEETS = ("lambda",)
# Sources that ran the same configuration under several power limits: one row of each, the fastest, without a limit.
POWER_LIMITED = ("zeus_nsdi23",)
# Other frameworks run kernels of their own.
FRAMEWORKS = "torch|tensorflow|litgpt"
CONFIGURATION = (
    "source",
    "device",
    "model",
    "batch_per_gpu",
    "precision",
    "framework",
    "framework_version",
    "optimizer",
    "mode",
    "channels_last",
    "data",
    "input_shape",
)


@dataclass
class Material:
    """All training data of the net: single ops, fused layers, and steps of whole networks (as examples and as rows)."""

    ops: OpRows
    floors: NDArray[np.float64]
    op_devices: NDArray[np.str_]
    fused: list[NetRow]
    fused_devices: list[str]
    examples: list[Example]
    nets: list[NetRow]
    names: Names
    failures: dict[str, str]


def gather() -> Material:
    """Read every table and capture every network in them."""
    folder = data_folder()
    names = Names()
    ops, floors, op_devices = op_rows(folder, names)
    fused, fused_devices = fused_rows(folder, names)
    steps, failures = measured_steps(folder)
    nets = [net_row(e, names, WEIGHTS[e.source] * _mode_weight(e)) for e in steps]
    return Material(ops, floors, op_devices, fused, fused_devices, steps, nets, names, failures)


def measured_steps(folder: Path) -> tuple[list[Example], dict[str, str]]:
    """Every step of the training data, always in the same order, and the networks that could not be captured."""
    single = pl.col("gpus") == 1
    tables = [pl.read_parquet(folder / f"{name}.parquet") for name in ("runs", "runs_more", "runs_2026")]
    runs = pl.concat(tables, how="diagonal_relaxed").filter(
        single
        & pl.col("source").is_in(list(WEIGHTS))
        & ~pl.col("framework_version").fill_null("").str.contains("cudnn none")  # nobody trains without it today
        & ~pl.col("compiled").fill_null(value=False)
        & ~pl.col("model").is_in(list(NOT_TRAINED))
        & pl.col("framework").fill_null("torch").str.contains(FRAMEWORKS)
    )
    runs = one_per_configuration(runs)
    # Inference of the networks that were trained: most of the captures serve both.
    inference = pl.read_parquet(folder / "inference_runs.parquet").filter(
        single
        & pl.col("source").is_in(["timm", "torchvision_gpu_bench"])
        & ~pl.col("device").str.contains("CPU")
        & ~pl.col("framework_version").fill_null("").str.contains(r"\?|2\.9|2\.1")
        & pl.col("model").is_in(distinct(runs)["model"].unique().implode())
    )
    transformers = pl.read_parquet(folder / "transformer_runs.parquet").filter(single & ~pl.col("compiled"))
    rows = [*distinct(runs).to_dicts(), *_thinned(inference).to_dicts(), *transformers.to_dicts()]
    questions, _ = read_runs(rows)
    return examples(questions, say)


def _mode_weight(example: Example) -> float:
    return 0.4 if example.recipe.mode == "forward" and example.source == "timm" else 1.0


def distinct(table: pl.DataFrame) -> pl.DataFrame:
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


def one_per_configuration(table: pl.DataFrame) -> pl.DataFrame:
    """One row of each configuration: the median of FLEETS, the fastest of POWER_LIMITED."""
    others = [name for name in table.columns if name not in (*CONFIGURATION, "step_seconds", "samples_per_second")]
    seconds, rate = pl.col("step_seconds"), pl.col("samples_per_second")

    def merged(sources: Sequence[str], *of_each: pl.Expr) -> pl.DataFrame:
        groups = table.filter(pl.col("source").is_in(list(sources))).group_by(CONFIGURATION, maintain_order=True)
        return groups.agg(*of_each, pl.col(others).first()).select(table.columns)

    parts = [merged(FLEETS, seconds.median(), rate.median()), merged(POWER_LIMITED, seconds.min(), rate.max())]
    return pl.concat([table.filter(~pl.col("source").is_in([*FLEETS, *POWER_LIMITED])), *parts])


def _thinned(table: pl.DataFrame) -> pl.DataFrame:
    """Every fourth network of timm, once per device, precision, layout and version: forward passes teach less than
    steps, and each batch size of them is a capture of its own.
    """
    keys = ["source", "model", "device", "precision", "channels_last", "framework_version"]
    some = table.filter(pl.col("source") == "timm")["model"].unique().sort().gather_every(4)
    selected = table.filter((pl.col("source") != "timm") | pl.col("model").is_in(some.implode()))
    return selected.unique(keys, keep="first", maintain_order=True)
