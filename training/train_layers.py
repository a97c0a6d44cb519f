"""`python -m training.train_layers`: the model of single-layer benchmarks, trained and saved.

Reads EPOCHCAST_DATA; writes `predict/cost/layer_trees.json.gz` and `docs/accuracy/model-card-layers.md`. Nine tenths of
the rows are trained on (`split_seed0` of Justus' tables, a seeded tenth of the report's is left out); half of the last
tenth sets the intervals, the other half is what the card reports.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from epochcast.measure.evaluate.layer_table import LayerTable, read_layers
from epochcast.predict.cost.layers_model import FILE, LayersModel
from training.files import DOCS, PACKAGE, data_folder, say, write
from training.layer_file import to_bytes
from training.layer_training import LIGHT, quantiles, train, with_intervals

Array = NDArray[np.float64]

TABLES = ("layers_conv2d", "layers_dense", "layers_conv2d_tf2")
JUSTUS_DEVICES = ("V100", "P100", "M60", "K80", "K40", "GTX1080Ti")


def read_split(name: str, folder: Path) -> tuple[LayerTable, LayerTable]:
    """The measured rows of one table: those to train on, and the last tenth."""
    frame = pl.read_parquet(folder / f"{name}.parquet")
    if "split_seed0" in frame.columns:
        is_test = (frame["split_seed0"] == "test").to_numpy()
    else:
        is_test = np.random.default_rng(0).random(len(frame)) < 0.1
    table = read_layers(frame)
    return table.at(~is_test & table.is_measured), table.at(is_test & table.is_measured)


def without(table: LayerTable, device: str) -> LayerTable:
    """The rows of all GPUs but one, whatever its board: leaving out P100 leaves out its PCIe and SXM2 cards."""
    return table.at(np.array([name.split("-")[0] != device for name in table.device]))


def only(table: LayerTable, device: str) -> LayerTable:
    """The rows of one GPU by the name in the table."""
    return table.at(table.device == device)


def unknown_widths(tables: Sequence[LayerTable], tests: Sequence[LayerTable]) -> dict[str, tuple[float, float]]:
    """How far answers for GPUs that were left out lie from the truth, by kind of layer; every GPU counts the same."""
    log_ratios: dict[str, list[Array]] = {}
    for device in JUSTUS_DEVICES:
        model = train([without(table, device) for table in tables], LIGHT)
        for test in tests:
            held = only(test, device)
            if len(held.rows) == 0:
                continue
            for gpu, stack, mine in held.setups():
                few = held.at(np.flatnonzero(mine)[:600])
                mid = model.answer(few.rows, gpu, stack).mid
                log_ratios.setdefault(held.rows.kind, []).append(np.log(few.seconds / mid))
    return {kind: quantiles(np.concatenate(ratios)) for kind, ratios in log_ratios.items()}


def scores(model: LayersModel, tests: Sequence[LayerTable]) -> list[dict[str, Any]]:
    """Error of every setup on rows not trained on."""
    rows = []
    for test in tests:
        for device, stack, mine in test.setups():
            table = test.at(mine)
            answer = model.answer(table.rows, device, stack)
            error = np.abs(answer.mid / table.seconds - 1)
            inside = (answer.low <= table.seconds) & (table.seconds <= answer.high)
            rows.append(
                {
                    "kind": table.rows.kind,
                    "device": str(table.device[0]),
                    "stack": stack,
                    "rows": len(table.rows),
                    "rmse_seconds": float(np.sqrt(np.mean((answer.mid - table.seconds) ** 2))),
                    "mape": float(error.mean()),
                    "median_ape": float(np.median(error)),
                    "coverage": float(inside.mean()),
                }
            )
    return rows


def train_all(folder: Path) -> LayersModel:
    """The shipped model, its intervals and its card."""
    splits = [read_split(name, folder) for name in TABLES]
    training_tables, tests = [k for k, _ in splits], [t for _, t in splits]
    model = with_intervals(train(training_tables), [_half(test, 0) for test in tests])
    model = replace(model, unknown_widths=unknown_widths(training_tables, tests))
    card = {
        "trained": datetime.now(UTC).date().isoformat(),
        "data": list(TABLES),
        "rows": {name: len(table.rows) for name, table in zip(TABLES, training_tables, strict=True)},
        "scores": [
            {name: round(v, 6) if isinstance(v, float) else v for name, v in row.items()}
            for row in scores(model, [_half(test, 1) for test in tests])
        ],
    }
    return replace(model, card=card)


def _half(table: LayerTable, which: int) -> LayerTable:
    """Every other row."""
    return table.at(np.arange(len(table.rows)) % 2 == which)


def card_text(card: Mapping[str, Any], size_bytes: int, unknown: Mapping[str, tuple[float, float]]) -> str:
    """The model card as a page."""
    counts = ", ".join(f"`{name}` {rows:,}" for name, rows in card["rows"].items())
    lines = [
        "# Model card: single layers",
        "",
        "<!-- written by python -m training.train_layers; do not edit -->",
        "",
        "Seconds of one run of a single-layer benchmark (forward, or forward + backward + update), as Justus et al.",
        "(2018) and Wattanasirichaigoon & Ranglani (2020) time it. See [Single",
        "layers](../explanation/layers-model.md).",
        "",
        f"- *Trained* {card['trained']}, seed 0, on measured rows: {counts}.",
        f"- *File* `cost/{FILE}`, {size_bytes / 1e3:.0f} KB: coefficients and trees, compressed JSON text for numpy.",
        "- *For* rows of such tables. Not for layers inside a network: subtract the artefacts first",
        "  ([The correction factor](../explanation/correction-factor.md)).",
        "- *Intervals* hold 90 % of the rows by design; `coverage` is what they held below. Other GPUs get",
        "  "
        + "; ".join(
            f"{np.exp(low):.2f} to {np.exp(high):.2f} times the middle ({kind})"
            for kind, (low, high) in sorted(unknown.items())
        )
        + ".",
        "",
        "Errors on half of the last tenth, on which nothing was fitted:",
        "",
        "| layer | GPU | stack | rows | RMSE, ms | MAPE, % | median APE, % | coverage |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for row in card["scores"]:
        lines.append(
            f"| {row['kind']} | {row['device']} | {row['stack']} | {row['rows']} | {1e3 * row['rmse_seconds']:.2f} "
            f"| {100 * row['mape']:.1f} | {100 * row['median_ape']:.1f} | {row['coverage']:.2f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Train and write both files."""
    model = train_all(data_folder())
    data = to_bytes(model)
    write(PACKAGE / "predict" / "cost" / FILE, data)
    write(DOCS / "accuracy" / "model-card-layers.md", card_text(model.card, len(data), model.unknown_widths).encode())
    say(f"{FILE}: {len(data) / 1e3:.0f} KB; errors are in docs/accuracy/model-card-layers.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
