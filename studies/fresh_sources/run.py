"""Sources of measurements that no training read: how far off forecasts are, how wide, and how many intervals hold.

    python -m studies fresh_sources          writes docs/fresh-sources.md and studies/fresh_sources/result.csv

Everything is forecast from nothing, as `epochcast evaluate` does it. A source with many rows is sampled, always the
same rows. Fails where fewer than 70 % of the intervals of all rows hold.
"""

import csv
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from epochcast.errors import EpochcastError
from epochcast.measure.tables.run_placement import run_placement
from epochcast.measure.tables.run_table import read_runs
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.session import Session
from training.material import WEIGHTS

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "fresh-sources.md"
MOST_ROWS = 60
LEAST_HELD = 0.7
SOURCES = {
    "runs": {
        "sia_sosp23": "elastic cluster, A100 and RTX 2080 Ti",
        "dlperf": "BERT and ResNet-50 in five frameworks, V100",
        "gavel": "K80, P100, V100, real data",
    },
    "runs_2026": {
        "zeus_nsdi23": "power study, V100 to A40",
        "ffcv_imagenet": "ResNet-50 with FFCV, A100",
        "modded_nanogpt": "GPT-2 compiled in bf16, 8 H100",
        "modded_nanogpt_track3": "GPT-2 compiled in bf16, six GPUs",
        "libai": "GPT and BERT in LiBai, V100",
        "fms_acceleration": "fine-tuning of language models, A100",
        "nemo_2407": "NeMo in fp8, H100",
        "xtuner": "fine-tuning, A100",
    },
    "llm_runs": {
        "vtrain_single": "Megatron-DeepSpeed, 8 A100",
        "vtrain_multi": "Megatron-DeepSpeed, 64 to 512 A100",
        "dgxc_benchmarking": "NeMo, H100 and GB200",
        "bigscience_tr11": "BLOOM, 384 A100",
    },
}


@dataclass(frozen=True)
class Row:
    """One forecast against its measurement, relative to that."""

    source: str
    middle: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        """Whether the interval has the measurement."""
        return self.low <= 1 <= self.high

    @property
    def score(self) -> float:
        """Winkler's interval score for 90 %, in logarithms: the width, and twenty times what is missed."""
        missed = max(0.0, np.log(self.low)) + max(0.0, -np.log(self.high))
        return float(np.log(self.high / self.low) + 20 * missed)


def main() -> int:
    """Forecast, write the page; 1 where too few intervals hold."""
    folder = Path(os.environ["EPOCHCAST_DATA"])
    rows: list[Row] = []
    refused: Counter[str] = Counter()
    for table, sources in SOURCES.items():
        assert not set(sources) & set(WEIGHTS), "a source is read by the training"
        frame = pl.read_parquet(folder / f"{table}.parquet")
        for source in sources:
            answers, failures = forecasts(frame.filter(pl.col("source") == source), source)
            rows += answers
            refused[source] += failures
    write(rows, refused)
    return int(np.mean([row.holds for row in rows]) < LEAST_HELD)


def forecasts(frame: pl.DataFrame, source: str) -> tuple[list[Row], int]:
    """A sample of a source's rows, and how many of all rows are refused."""
    runs, failures = read_runs(frame.to_dicts())
    if len(runs) > MOST_ROWS:
        places = np.random.default_rng(0).choice(len(runs), MOST_ROWS, replace=False)
        runs = [runs[place] for place in sorted(places)]
    session, rows, refused = Session(with_own_profiles=False), [], len(failures)
    for run in runs:
        try:
            step = forecast_job(run.job, run_placement(run), session, step_only=True).step_seconds
        except EpochcastError:
            refused += 1
            continue
        rows.append(Row(source, *(end / run.step_seconds for end in (step.mid, step.low, step.high))))
    return rows, refused


def write(rows: list[Row], refused: Counter[str]) -> None:
    """The table, worst first."""
    about = {source: words for sources in SOURCES.values() for source, words in sources.items()}
    lines = []
    for source, words in about.items():
        mine = [row for row in rows if row.source == source]
        if mine:
            lines.append(((source, words, len(mine), refused[source]), figures(mine)))
    lines.sort(key=lambda line: -line[1][0])
    names = ("source", "what", "rows", "refused", "mape", "median_ape", "ratio", "holds", "width", "score")
    with (HERE / "result.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(names)
        writer.writerows((*head, *(f"{figure:.3f}" for figure in rest)) for head, rest in lines)
    total = figures(rows)
    page = [_HEAD, "| source | rows | refused | error mean / median | predicted ÷ measured | holds | width | score |"]
    page.append("|---|---|---|---|---|---|---|---|")
    page += [f"| {s}: {w} | {n} | {r} | {_cells(*rest)} |" for (s, w, n, r), rest in lines]
    page.append(f"| **all** | {len(rows)} | {sum(refused.values())} | {_cells(*total)} |")
    PAGE.write_text("\n".join(page) + "\n", encoding="utf-8")
    print("\n".join(page))


def figures(rows: list[Row]) -> tuple[float, ...]:
    """Mean and median error, middle ratio, coverage, median width, mean score."""
    middles = np.array([row.middle for row in rows])
    errors, widths = np.abs(middles - 1), [row.high / row.low for row in rows]
    return (
        float(errors.mean()),
        float(np.median(errors)),
        float(np.median(middles)),
        float(np.mean([row.holds for row in rows])),
        float(np.median(widths)),
        float(np.mean([row.score for row in rows])),
    )


def _cells(mean: float, median: float, ratio: float, holds: float, width: float, score: float) -> str:
    return f"{mean:.1%} / {median:.1%} | {ratio:.2f} | {holds:.0%} | {width:.1f}× | {score:.1f}"


_HEAD = """# Sources that no training read

Written by `python -m studies fresh_sources`. Every row is forecast from nothing; at most 60 rows of a source, drawn
once. Worst first. Width is high ÷ low of the 90 % interval, the median of a source. The score is Winkler's interval
score of the logarithm: smaller is better. Refused rows name what is not modelled, or lack a number.
"""


if __name__ == "__main__":
    raise SystemExit(main())
