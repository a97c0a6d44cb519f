"""docs/accuracy/accuracy.md, its picture and files, the README's table, and the gate: `python -m studies accuracy`.

Every figure is of forecasts by models that had not seen the rows (`scored_steps`). Returns 1 if the MAPE of a group is
more than a point above the committed one in `scores.json`; `python -m studies.accuracy.run --accept` commits the new
ones instead. Takes a few minutes.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from epochcast.errors import EpochcastError
from epochcast.measure.evaluate.refusals import refusals
from epochcast.measure.evaluate.scores import Scores, grouped_scores
from epochcast.measure.tables.row_errors import FailedRow
from studies.accuracy import gate, page, targets
from studies.accuracy.figures import Figure, by_group
from studies.accuracy.intervals import ScoredIntervals, given_runs, scored_intervals
from studies.accuracy.left_out_table import SPLITS, LeftOutTable, read_left_out
from studies.accuracy.margins import ship, without_own_source
from studies.accuracy.op_targets import op_targets, read_op_errors
from studies.accuracy.others import gated, justus_figures, report_figures
from studies.accuracy.picture import draw
from studies.accuracy.questions import questions_of
from studies.accuracy.scored_steps import (
    COLUMNS,
    EVERYTHING,
    fresh_steps,
    left_out_steps,
    new_networks,
    trained_tables,
    with_seconds,
)
from training.files import data_folder, say

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGE, PICTURE, FILES = DOCS / "accuracy" / "accuracy.md", DOCS / "pictures" / "accuracy.png", DOCS / "accuracy"
README, CARD = ROOT / "README.md", DOCS / "accuracy" / "model-card.md"
QUESTION_KEYS, SOURCE_KEYS = ("question", "gpu"), ("source", "question", "left_out")
DEVICE_KEYS = ("device", "gpu", "left_out")


@dataclass(frozen=True)
class Scored:
    """All steps of the page, those of new networks, and those that the picture can place.

    `bare` are all steps before their intervals have a margin (`margins`).
    """

    left_out: LeftOutTable
    intervals: dict[str, ScoredIntervals]
    bare: pl.DataFrame
    steps: pl.DataFrame
    new_networks: pl.DataFrame
    placed: pl.DataFrame


def score(folder: Path) -> Scored:
    """Read what was left out of the training, and forecast the other sources."""
    left_out = read_left_out()
    intervals = scored_intervals(left_out)
    trained, models = set(left_out.source.tolist()), set(left_out.model.tolist())
    questions = questions_of(trained_tables(folder, trained, models))
    known = left_out_steps(left_out, intervals, questions)
    say("sources that no training reads")
    bare = pl.concat([known, fresh_steps(folder, trained)], how="diagonal_relaxed")
    steps = without_own_source(bare, bare)
    say("measured seconds, for the picture")
    is_fresh = pl.col("left_out") == EVERYTHING
    answered = steps.filter(is_fresh & pl.col("is_forecast"))
    placed = pl.concat([with_seconds(steps.filter(~is_fresh), folder), answered], how="diagonal_relaxed")
    known_device = without_own_source(new_networks(left_out, intervals, questions), bare)
    return Scored(left_out, intervals, bare, steps, known_device, placed)


def figures_by(steps: pl.DataFrame, keys: tuple[str, ...]) -> pl.DataFrame:
    """Scores and the median of predicted ÷ measured of every group, the worst first."""
    labels = steps.select(pl.concat_str([pl.col(key).cast(pl.String) for key in keys], separator=" / ")).to_series()
    scores = grouped_scores(steps.with_columns(label=labels).lazy(), ["label"])
    named = steps.with_columns(label=labels).group_by("label", maintain_order=True)
    firsts = {row["label"]: row for row in named.agg(pl.col(keys).first(), _RATIO.alias("ratio")).to_dicts()}
    rows = [
        {
            **{key: firsts[label][key] for key in keys},
            **_columns(figures),
            "ratio": firsts[label]["ratio"],
        }
        for label, figures in scores.items()
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None).sort("mape", *keys, descending=[True, *([False] * len(keys))])
    return frame.with_columns(pl.selectors.float().round(4))  # as the files have them


_RATIO = pl.col("predicted_seconds").filter(pl.col("is_forecast")).median()


def _columns(figures: Scores) -> dict[str, float | int | None]:
    names = ("n", "failed", "mape", "median_ape", "coverage", "width", "interval_score")
    return {name: getattr(figures, name) for name in names}


def split_figures(table: LeftOutTable, scored: dict[str, ScoredIntervals]) -> list[Figure]:
    """Every group of the left-out steps by every split."""
    return [f for split in SPLITS for f in by_group(split, table.groups(), table.ratios[split], scored[split].inside)]


def total_of(steps: pl.DataFrame) -> dict[str, object]:
    """The figures of all steps, and of how many sources and GPUs they are."""
    (row,) = figures_by(steps.with_columns(all=pl.lit("all")), ("all",)).to_dicts()
    answered = steps.filter("is_forecast")
    return {**row, "sources": answered["source"].n_unique(), "devices": answered["device"].n_unique()}


def refused(steps: pl.DataFrame) -> pl.DataFrame:
    """Reasons of refusals by source, the most frequent first."""
    rows = []
    for (source,), part in steps.filter(pl.col("reason").is_not_null()).partition_by("source", as_dict=True).items():
        failures = [FailedRow(0, model, reason) for model, reason in part.select("model", "reason").iter_rows()]
        rows += [{"source": source, "rows": group.rows, "reason": group.reason} for group in refusals(failures)]
    frame = pl.DataFrame(rows, schema={"source": pl.String, "rows": pl.Int64, "reason": pl.String})
    return frame.sort("rows", "source", descending=[True, False])


def write(scored: Scored) -> list[Figure]:
    """The page, its files, the picture, the README's table; and the figures for the gate."""
    FILES.mkdir(exist_ok=True)
    by_question, by_source = figures_by(scored.steps, QUESTION_KEYS), figures_by(scored.steps, SOURCE_KEYS)
    groups = split_figures(scored.left_out, scored.intervals)
    layers, reported = justus_figures(), report_figures()
    wanted = [
        *targets.step_targets(scored.steps, scored.new_networks),
        *targets.image_targets(scored.left_out),
        *targets.transformer_targets(scored.left_out),
        *targets.report_targets(reported),
    ]
    older = [
        *targets.layer_targets(layers),
        *targets.device_targets(scored.left_out, given_runs(CARD.read_text(encoding="utf-8"))),
        *op_targets(read_op_errors()),
    ]
    fresh = scored.steps.filter(pl.col("left_out") == EVERYTHING)
    tables = {
        "by_question": by_question,
        "by_source": by_source,
        "by_device": figures_by(scored.steps, DEVICE_KEYS),
        "by_group": pl.DataFrame([f for f in groups if f.n]).drop("failed"),
        "rows": fresh.select(*COLUMNS, "low_seconds", "predicted_seconds", "high_seconds", "reason").rename(
            {"low_seconds": "low", "predicted_seconds": "predicted", "high_seconds": "high"}
        ),
        "refused": refused(scored.steps),
        "older_targets": pl.DataFrame([_target_row(t) for t in older]),
    }
    for name, table in tables.items():
        table.write_csv(FILES / f"{name}.csv", float_precision=4)
    draw(scored.placed, PICTURE)
    PAGE.write_text(page.compose(by_question, by_source, total_of(scored.steps), wanted), encoding="utf-8")
    README.write_text(page.with_readme_table(README.read_text(encoding="utf-8"), by_question), encoding="utf-8")
    return [*groups, *_source_figures(by_source), *gated(layers, reported)]


def _target_row(target: targets.Target) -> dict[str, object]:
    return {
        "target": target.what,
        "rows": target.n,
        "wanted": " / ".join(f"{value:g}" for value in target.wanted),
        "ours": " / ".join(f"{value:.2f}" for value in target.ours),
        "unit": target.unit,
        "verdict": target.verdict,
        "why": target.why,
    }


def _source_figures(by_source: pl.DataFrame) -> list[Figure]:
    """Sources that no training reads, for the gate."""
    rows = by_source.filter((pl.col("left_out") == EVERYTHING) & (pl.col("n") > 0)).to_dicts()
    return [
        Figure("everything", f"{r['source']}, {r['question']}", r["n"], r["mape"], r["median_ape"], r["ratio"] - 1)
        for r in rows
    ]


def main() -> int:
    """Score, write, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accept", action="store_true", help="commit the new scores to scores.json")
    parser.add_argument(
        "--margins", action="store_true", help="fit the margins of intervals to all steps, and ship them"
    )
    options = parser.parse_args()
    is_accepted = options.accept
    try:
        scored = score(data_folder())
        if options.margins:
            ship(scored.bare)
        scores = gate.scores_of(write(scored))
    except EpochcastError as error:
        print(f"accuracy: {error}")
        return 2
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
