"""docs/accuracy.md, and the gate: `python -m studies.accuracy.run [--accept]` (needs EPOCHCAST_DATA).

Every source of measurements, by every split, worst first, beside peers on the same rows. Returns 1 if the MAPE of a
group is more than a point above the committed one in `scores.json`; `--accept` commits the new ones instead.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from epochcast.errors import EpochcastError
from studies.accuracy import gate, page, targets, worst
from studies.accuracy.figures import SEPARATOR, Array, Figure, by_group
from studies.accuracy.intervals import ScoredIntervals, given_runs, scored_intervals
from studies.accuracy.left_out_table import SPLITS, LeftOutTable, read_left_out
from studies.accuracy.op_targets import op_targets, read_op_errors
from studies.accuracy.others import gated, justus_figures, report_figures
from studies.accuracy.overview import format_of, overview, rival_ratios
from studies.accuracy.shipped import (
    LAYERS,
    NETWORKS,
    ONE,
    OP_KEYS,
    OP_ROWS,
    ROWS,
    SEVERAL,
    ScoredTable,
    reasons_why_not,
    score_layers,
    score_ops,
    score_runs,
)
from studies.accuracy.whole_networks import peer_ratios
from studies.accuracy.worst import WorstRow
from studies.correction_factor import run as correction
from training.files import data_folder, say
from training.material import measured_steps

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "accuracy.md"
CARD = DOCS / "model-card.md"


def split_figures(table: LeftOutTable) -> tuple[list[Figure], dict[str, ScoredIntervals]]:
    """Every group of the left-out steps by every split, and their intervals."""
    scored = scored_intervals(table)
    figures = [
        f for split in SPLITS for f in by_group(split, table.groups(), table.ratios[split], scored[split].inside)
    ]
    return figures, scored


@dataclass(frozen=True)
class Peers:
    """What the captured steps of the left-out table give: ratios of the peers, and the worst with reasons."""

    ratios: dict[str, Array]
    rival: Array
    worst: list[WorstRow]


@dataclass(frozen=True)
class Shipped:
    """What the shipped model gives on a sample of every table."""

    runs: ScoredTable
    ops: ScoredTable
    op_peers: dict[str, Array]
    layers: list[Figure]
    worst: list[WorstRow]


def peers(folder: Path, left_out: LeftOutTable) -> Peers:
    """Capture the steps (or read them from the scratch folder) and ask the peers."""
    say("captured steps")
    steps, _ = measured_steps(folder)
    left_out.check(steps)
    say("peers on them")
    rival = rival_ratios(steps, np.array([format_of(p) for p in left_out.precision]))
    return Peers(peer_ratios(steps, left_out), rival, worst.worst_steps(left_out, steps))


def shipped(folder: Path) -> Shipped:
    """Ask the shipped model."""
    say("the shipped model on ops")
    ops, op_peers = score_ops(folder)
    say("on single layers")
    figures, layer_tables = score_layers(folder)
    say("on runs")
    runs = score_runs(folder)
    rows = [
        *worst.worst_runs(runs.rows),
        *worst.worst_ops(ops.rows, op_peers["roofline"]),
        *worst.worst_layers(layer_tables),
    ]
    return Shipped(runs, ops, op_peers, figures, rows)


def compose(left_out: LeftOutTable, theirs: Peers, ours: Shipped) -> tuple[str, gate.Scores]:
    """The page and the scores."""
    all_figures, scored = split_figures(left_out)
    inside = {split: intervals.inside for split, intervals in scored.items()}
    given = given_runs(CARD.read_text(encoding="utf-8"))
    single_layers, reported = justus_figures(), report_figures()
    wanted = [
        *targets.image_targets(left_out),
        *targets.transformer_targets(left_out),
        *targets.layer_targets(single_layers),
        *targets.device_targets(left_out, given),
        *targets.report_targets(reported),
        *op_targets(read_op_errors()),
    ]
    text = "\n".join(
        [
            page.HEAD,
            overview(left_out, inside, given, theirs.rival),
            page.targets(wanted),
            page.splits(left_out, inside),
            page.coverage(left_out, scored, given),
            page.peers(left_out, theirs.ratios),
            page.transformers(left_out, theirs.ratios),
            _runs(ONE, ours.runs.figures),
            _runs(SEVERAL, ours.runs.figures),
            page.failures(reasons_why_not(ours.runs.rows)),
            _ops(ours.ops.rows, ours.ops.figures, ours.op_peers),
            _layers(ours.layers),
            page.layers(single_layers),
            page.report(correction.summary(reported)),
            page.worst([*theirs.worst, *ours.worst, *worst.worst_report(reported)]),
        ]
    )
    everything = [*all_figures, *ours.runs.figures, *ours.ops.figures, *ours.layers, *gated(single_layers, reported)]
    return text.rstrip() + "\n", gate.scores_of(everything)


def _runs(split: str, all_figures: Sequence[Figure]) -> str:
    mine = [f for f in all_figures if f.split == split]
    title = "The shipped model on one GPU" if split == ONE else "The shipped model on several GPUs"
    text = (
        f"`epochcast evaluate` on a fixed sample: up to {NETWORKS} networks of every source of `runs`, up to {ROWS} "
        'rows of each group; all of `transformer_runs`. What is "in training" is in-sample.'
        if split == ONE
        else "The same sample; forecasts from nothing measured. The exchange of gradients is not fitted on these rows."
    )
    return page.shipped(title, text, mine)


def _ops(rows: pl.DataFrame, all_figures: Sequence[Figure], ratios: dict[str, Array]) -> str:
    labels = [SEPARATOR.join(names) for names in rows.select(OP_KEYS).iter_rows()]
    theirs = {name: _by_all(labels, values, all_figures) for name, values in ratios.items()}
    text = (
        f"`epochcast evaluate` on up to {OP_ROWS} rows of every source, device, type, family and phase. Recurrent "
        "cells and rows marked as suspect were not trained on; all others are in-sample."
    )
    return page.shipped("The shipped model on single ops", text, all_figures, theirs)


def _by_all(labels: list[str], ratios: Array, all_figures: Sequence[Figure]) -> list[Figure]:
    """A figure for every group of ours, empty where a peer has none."""
    mine = {f.group: f for f in by_group("", labels, ratios)}
    return [mine.get(f.group, Figure("", f.group, 0, None, None, None)) for f in all_figures]


def _layers(all_figures: Sequence[Figure]) -> str:
    text = (
        "The tenth of each table that the shipped model of single-layer benchmarks was not trained on; intervals are "
        "counted on the half of it that did not set them."
    )
    return page.shipped("The shipped model on single layers", text, [f for f in all_figures if f.split == LAYERS])


def main() -> int:
    """Score, write, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accept", action="store_true", help="commit the new scores to scores.json")
    is_accepted = parser.parse_args().accept
    try:
        folder, left_out = data_folder(), read_left_out()
        text, scores = compose(left_out, peers(folder, left_out), shipped(folder))
    except EpochcastError as error:
        print(f"accuracy: {error}")
        return 2
    PAGE.write_text(text, encoding="utf-8")
    if is_accepted:
        gate.write_scores(scores)
        print(f"accepted {sum(map(len, scores.values()))} groups")
        return 0
    worse = gate.regressions(scores, gate.read_scores())
    for line in worse:
        print(line)
    print(f"{len(worse)} of {sum(map(len, scores.values()))} groups are more than a point worse than committed")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
