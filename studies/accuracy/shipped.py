"""The shipped model as it is, asked by `epochcast evaluate` on a fixed sample of every table.

It was trained on some of these rows ("in training"): there the figures say how well it fits, not how well it forecasts.
Rows it cannot do are counted, with the most frequent reason.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from epochcast.measure.evaluate.evaluate import evaluate
from epochcast.measure.evaluate.layer_table import LayerTable
from epochcast.predict.cost.cost_models import find_cost_model
from epochcast.predict.cost.layers_model import layers_model
from studies.accuracy.figures import SEPARATOR, Array, Figure, figure
from studies.accuracy.sample import every, sampled_runs
from training.material import WEIGHTS
from training.train_layers import TABLES, read_split

TRAINED_ON = frozenset(WEIGHTS)
NETWORKS, ROWS, OP_ROWS = 10, 40, 60
ONE, SEVERAL = "shipped, one GPU", "shipped, several GPUs"
OPS, LAYERS = "shipped, ops", "shipped, single layers"
SEEN, NEW = "in training", "not in training"
OP_KEYS = ["source", "device_name", "dtype", "phase", "seen"]
OP_PEERS = ("roofline", "paleo")


@dataclass(frozen=True)
class ScoredTable:
    """The rows of a table that were asked: its columns, `ratio`, `inside` and `reason` where there is no forecast."""

    figures: list[Figure]
    rows: pl.DataFrame


def score_runs(folder: Path, networks: int = NETWORKS, rows: int = ROWS) -> ScoredTable:
    """A sample of `runs`, all of `transformer_runs`."""
    runs = sampled_runs(pl.read_parquet(folder / "runs.parquet"), networks, rows)
    transformers = pl.read_parquet(folder / "transformer_runs.parquet").with_columns(is_single=pl.col("gpus") == 1)
    table = pl.concat([runs, transformers], how="diagonal_relaxed")
    answered = _answered(table)
    named = answered.with_columns(
        seen=pl.when(_trained_on()).then(pl.lit(SEEN)).otherwise(pl.lit(NEW)),
        layout=pl.when(pl.col("channels_last").fill_null(False))
        .then(pl.lit("channels-last"))
        .otherwise(pl.lit("NCHW")),
    )
    keys = ["source", "device_name", "precision", "mode", "layout", "seen"]
    single = _figures(ONE, named.filter("is_single"), keys)
    several = _figures(SEVERAL, named.filter(~pl.col("is_single")), ["source", "device_name"])
    return ScoredTable([*single, *several], answered)


def score_ops(folder: Path, rows: int = OP_ROWS) -> tuple[ScoredTable, dict[str, Array]]:
    """A sample of `ops`; and predicted/measured of the peers on the same rows."""
    table = every(pl.read_parquet(folder / "ops.parquet"), ("source", "device", "dtype", "family", "phase"), rows)
    answered = _answered(table)
    is_new = (pl.col("family") == "rnn") | pl.col("note").str.contains("suspect")
    answered = answered.with_columns(seen=pl.when(is_new).then(pl.lit(NEW)).otherwise(pl.lit(SEEN)))
    figures = _figures(OPS, answered, OP_KEYS)
    peers = {}
    for name in OP_PEERS:
        found = evaluate(table, cost_model=find_cost_model(name)).predicted
        peers[name] = found.mid_seconds / found.measured_seconds
    return ScoredTable(figures, answered), peers


def _trained_on() -> pl.Expr:
    """Whether a run is of the kind that `fit.material` learns from."""
    is_gpu = ~pl.col("device").str.contains("CPU")
    is_eager = ~pl.col("compiled").fill_null(False)
    has_cudnn = ~pl.col("framework_version").fill_null("").str.contains("cudnn none")
    return pl.col("source").is_in(list(TRAINED_ON)) & pl.col("is_single") & is_gpu & is_eager & has_cudnn


def _answered(table: pl.DataFrame) -> pl.DataFrame:
    evaluation = evaluate(table)
    found = evaluation.predicted
    inside = (found.low_seconds <= found.measured_seconds) & (found.measured_seconds <= found.high_seconds)
    reasons = {failure.row_index: failure.reason for failure in evaluation.failures}
    return table.with_columns(
        device_name=pl.Series(found.labels["device"]),
        ratio=pl.Series(found.mid_seconds / found.measured_seconds),
        inside=pl.Series(np.where(found.is_forecast, inside, np.nan)),
        reason=pl.Series([reasons.get(place) for place in range(len(table))], dtype=pl.String),
    )


def _figures(split: str, table: pl.DataFrame, keys: list[str]) -> list[Figure]:
    parts = table.partition_by(keys, as_dict=True, maintain_order=True)
    return [
        figure(
            split,
            SEPARATOR.join(map(str, names)),
            part["ratio"].to_numpy(),
            part["inside"].to_numpy(),
            int(part["reason"].is_not_null().sum()),
        )
        for names, part in parts.items()
    ]


def reasons_why_not(table: pl.DataFrame) -> dict[str, tuple[int, str]]:
    """By source, how many rows could not be asked and the most frequent reason, the row's own name taken off."""
    found: dict[str, Counter[str]] = {}
    for source, model, reason in table.select("source", "model", "reason").iter_rows():
        if reason is not None:
            found.setdefault(source, Counter())[reason.removeprefix(f"{model}: ").split(" by ")[0]] += 1
    return {source: (counts.total(), counts.most_common(1)[0][0]) for source, counts in sorted(found.items())}


@dataclass(frozen=True)
class ScoredLayers:
    """The left-out tenth of one single-layer table, answered by the shipped model of such benchmarks."""

    name: str
    table: LayerTable
    ratio: Array
    inside: Array


def score_layers(folder: Path) -> tuple[list[Figure], list[ScoredLayers]]:
    """Rows no training saw; half of them set the intervals, so those are counted on the other half."""
    figures, asked = [], []
    for name in TABLES:
        test = read_split(name, folder)[1]
        ratio, inside = np.full((2, len(test.rows)), np.nan)
        for device, stack, mine in test.setups():
            answer, truth = layers_model().answer(test.rows.at(mine), device, stack), test.seconds[mine]
            ratio[mine] = answer.mid / truth
            inside[mine] = (answer.low <= truth) & (truth <= answer.high)
        inside[::2] = np.nan
        for device_name in np.unique(test.device):
            mine_too: NDArray[np.bool_] = test.device == device_name
            label = SEPARATOR.join((name, str(device_name), "fp32", NEW))
            figures.append(figure(LAYERS, label, ratio[mine_too], inside[mine_too]))
        asked.append(ScoredLayers(name, test, ratio, inside))
    return figures, asked
