"""The worst ten rows of every source, one per network, with a reason."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from epochcast.errors import EpochcastError
from epochcast.hardware.catalogue import find_device
from epochcast.measure.tables.run_table import read_runs
from epochcast.predict.cost.launch import launch_seconds
from studies.accuracy.figures import Array
from studies.accuracy.left_out_table import LeftOutTable
from studies.accuracy.others import report_reason
from studies.accuracy.reasons import layer_reason, layout_ratios, op_reason, run_reason, step_reason
from studies.accuracy.shipped import TRAINED_ON, ScoredLayers
from studies.correction_factor import run as correction
from training.examples import Example, examples

TEN = 10


@dataclass(frozen=True, slots=True)
class WorstRow:
    """A row far off: predicted/measured, and what is known of it."""

    source: str
    what: str
    where: str
    ratio: float
    reason: str


def order(ratios: Array) -> list[int]:
    """Places from the worst on, by |log ratio|; rows that were not scored are left out."""
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.abs(np.log(ratios))
    scored = np.flatnonzero(np.isfinite(logs))
    return [int(place) for place in scored[np.argsort(-logs[scored], kind="stable")]]


def worst_steps(table: LeftOutTable, steps: Sequence[Example]) -> list[WorstRow]:
    """By source, with the family left out."""
    worst_rows, twins, groups = [], layout_ratios(steps), table.groups()
    for source in np.unique(table.source):
        seen: set[str] = set()
        for place in order(np.where(table.source == source, table.ratios["family"], np.nan)):
            if len(seen) == TEN:
                break
            if table.model[place] not in seen:
                seen.add(str(table.model[place]))
                where = " · ".join((*groups[place].split(" · ")[1:], f"batch {table.batch[place]}"))
                reason = step_reason(steps[place], twins.get(place))
                ratio = float(table.ratios["family"][place])
                worst_rows.append(WorstRow(str(source), str(table.model[place]), where, ratio, reason))
    return worst_rows


def worst_runs(rows: pl.DataFrame) -> list[WorstRow]:
    """Of the sources the model was not trained on, as shipped; one per network and device."""
    worst_rows = []
    for source in sorted(set(rows["source"]) - TRAINED_ON):
        part = rows.filter((pl.col("source") == source) & pl.col("reason").is_null())
        seen: set[tuple[str, str]] = set()
        for place in order(part["ratio"].to_numpy()):
            row = part.row(place, named=True)
            key = (row["model"], row["device_name"])
            if key in seen:
                continue
            if len(seen) == TEN:
                break
            seen.add(key)
            where = f"{row['device_name']} · {row['precision']} · batch {row['batch_per_gpu']}"
            worst_rows.append(WorstRow(source, row["model"], where, row["ratio"], _run_facts(row)))
    return worst_rows


def _run_facts(row: dict[str, object]) -> str:
    facts = run_reason(row)
    runs, _ = read_runs([row])
    try:
        made, _ = examples(runs)
        facts += [step_reason(made[0])] if made else []
    except EpochcastError:
        pass  # what the row itself says must do
    return "; ".join(facts)


def worst_ops(rows: pl.DataFrame, bound_ratio: Array) -> list[WorstRow]:
    """One per device, family and phase, as shipped."""
    worst_rows = []
    for source in sorted(set(rows["source"])):
        mine = (rows["source"] == source).to_numpy()
        seen: set[tuple[str, ...]] = set()
        for place in order(np.where(mine, rows["ratio"].to_numpy(), np.nan)):
            row = rows.row(place, named=True)
            key = (row["device_name"], row["family"], row["phase"])
            if key in seen:
                continue
            if len(seen) == TEN:
                break
            seen.add(key)
            launch = launch_seconds(find_device(row["device"], None, row["source"])) / row["seconds"]
            where = f"{row['device_name']} · {row['dtype']} · {row['phase']} · {_size(row)}"
            reason = op_reason(row, float(bound_ratio[place]), launch)
            worst_rows.append(WorstRow(f"ops, {source}", str(row["op"]), where, row["ratio"], reason))
    return worst_rows


def _size(row: dict[str, object]) -> str:
    names = ("batch", "m", "n", "k", "hidden", "in_channels", "out_channels", "in_height", "kernel_height")
    return " ".join(f"{name} {row[name]}" for name in names if row.get(name) is not None)


def worst_layers(layer_tables: Sequence[ScoredLayers]) -> list[WorstRow]:
    """Of the tenth that was left out."""
    worst_rows = []
    for one in layer_tables:
        rows = one.table.rows
        for place in order(one.ratio)[:TEN]:
            kernel, stride, channels, batch = (
                float(values[place]) for values in (rows.kernel, rows.stride, rows.channels_in, rows.batch)
            )
            what = (
                f"batch {batch:.0f}, {rows.size[place]:.0f}², {channels:.0f}→{rows.channels_out[place]:.0f}, "
                f"window {kernel:.0f}, stride {stride:.0f}, {rows.optimizer[place]}"
            )
            reason = layer_reason(float(one.table.seconds[place]), kernel, stride, channels, batch)
            worst_rows.append(WorstRow(one.name, what, str(one.table.device[place]), float(one.ratio[place]), reason))
    return worst_rows


def worst_report(all_figures: Sequence[correction.Figure]) -> list[WorstRow]:
    """Steps of the report's networks, the network left out."""
    scored = [f for f in all_figures if f.what.startswith("forecast") and f.left_out_ms is not None and f.measured_ms]
    ratios = np.array([(f.left_out_ms or 0.0) / (f.measured_ms or 1.0) for f in scored])
    return [
        WorstRow(
            "report_runs",
            scored[i].network,
            f"{scored[i].what.removeprefix('forecast, ')} · {scored[i].optimizer} · batch {scored[i].batch}",
            float(ratios[i]),
            report_reason(scored[i]),
        )
        for i in order(ratios)[:TEN]
    ]
