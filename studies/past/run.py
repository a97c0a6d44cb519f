"""Past runs of a job as a prior: how far repeated runs lie apart, and whether the interval from past runs holds.

    EPOCHCAST_DATA=FOLDER python -m studies past

A job here is a row's model, input, batch, precision, optimizer and so on, on one kind of GPU; its runs are the rows
that share all of these: measured on other machines, on another day, or with another version of the framework. The
forecast of such rows is the same, so that it cancels. Each run in turn is held out and told by the others
(`store.past.expected_ratio`). `past.toml`'s spread of one run was chosen on the rows of one source; the other sources
are a test of it. Same-machine repetitions are not among them: the interval is for "the same job again, somewhere".
"""

import os
from collections.abc import Iterator
from math import exp, log, sqrt
from pathlib import Path
from statistics import median

import polars as pl

from epochcast.measure.tables.table_files import read_table
from epochcast.observe.store.past_runs import NORMAL_90, PastGroup, expected_ratio, usual_errors

# Rows of these sources that share all columns below are repetitions. In others (gavel, jcjohnson, mmdetection_v1,
# nvidia_dle, megatron_bridge) they differ in what no column says: shared GPUs, libraries, variants of a configuration.
SOURCES = {
    "torchvision_gpu_bench": "other machines with this GPU (the spread was chosen on these)",
    "timm": "other versions of the framework, other days",
    "mlperf_training": "other submitters, other rounds",
}
JOB = (
    "source",
    "device",
    "gpus",
    "nodes",
    "interconnect",
    "framework",
    "model",
    "task",
    "input_shape",
    "batch_per_gpu",
    "grad_accum",
    "precision",
    "channels_last",
    "compiled",
    "optimizer",
    "mode",
    "placement",
    "data",
)
LEAST_COVERED = 0.85


def main() -> int:
    table = read_table(Path(os.environ["EPOCHCAST_DATA"]) / "runs.parquet")
    print("source                     jobs  runs   90% distance   as a run's error   covered   usual error:", usual())
    is_good = True
    for source, why in SOURCES.items():
        groups = list(jobs(table.filter(pl.col("source") == source)))
        distance, covered = far_apart(groups), coverage(groups)
        runs = sum(len(group) for group in groups)
        print(
            f"{source:26} {len(groups):4} {runs:5}   {exp(distance) - 1:10.1%} {distance / NORMAL_90 / sqrt(2):16.3f}"
            f" {covered:12.0%}  {why}"
        )
        is_good = is_good and covered >= LEAST_COVERED
    return 0 if is_good else 1


def usual() -> float:
    return usual_errors()["run"]


def jobs(table: pl.DataFrame) -> Iterator[list[float]]:
    """Logs of the seconds of a step of each job that ran at least twice."""
    known = [name for name in JOB if name in table.columns]
    seconds = pl.when(pl.col("step_seconds") > 0).then(pl.col("step_seconds"))
    by_rate = pl.when(pl.col("samples_per_second") > 0).then(pl.col("global_batch") / pl.col("samples_per_second"))
    timed = table.with_columns(pl.coalesce(seconds, by_rate).alias("seconds")).filter(pl.col("seconds") > 0)
    for _, rows in timed.group_by(known, maintain_order=True):
        if rows.height > 1:
            yield [log(value) for value in rows["seconds"]]


def pairs(group: list[float]) -> Iterator[float]:
    for at, one in enumerate(group):
        for other in group[at + 1 :]:
            yield abs(one - other)


def far_apart(groups: list[list[float]]) -> float:
    """The 90th percentile of the distance of two runs of a job, every job counted the same."""
    middle = sorted(median(pairs(group)) for group in groups)
    return middle[min(len(middle) - 1, int(0.9 * len(middle)))]


def coverage(groups: list[list[float]]) -> float:
    """Share of runs within the interval that the other runs of their job give, every job counted the same."""
    shares = []
    for group in groups:
        held = [is_within(exp(one), group[:at] + group[at + 1 :]) for at, one in enumerate(group)]
        shares.append(sum(held) / len(held))
    return sum(shares) / len(shares)


def is_within(seconds: float, others: list[float]) -> bool:
    told = expected_ratio([PastGroup(True, tuple(others))])
    return told.low <= seconds <= told.high


if __name__ == "__main__":
    raise SystemExit(main())
