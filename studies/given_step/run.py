"""How far one measured step carries to other batches of the same job: the interval after `--step-seconds`.

    python -m studies given_step             writes studies/given_step/result.csv

Of every job that a source measured at several batches on one GPU, each batch is given in turn and the others, up to
four times as large or small, are forecast with what it measured: kernels where few launches show, launches where most
of the step waits for them. Steps in between are left out. Both factors were chosen on these pairs. Fails where the
shipped factors hold fewer than 85 % or more than 97 % of all pairs of either kind.
"""

import csv
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from epochcast.errors import EpochcastError
from epochcast.measure.tables.run_placement import run_placement
from epochcast.measure.tables.run_table import MeasuredRun, read_runs
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.measured_step import AFTER_HIGH, AFTER_LOW, HOST_HIGH, HOST_LOW
from epochcast.predict.forecast.session import Session

RESULT = Path(__file__).with_name("result.csv")
SOURCES = ("dlperf", "lambda", "pollux_osdi21", "sia_sosp23")
MOST_FACTOR = 4.0
WANTED = (0.85, 0.97)


@dataclass(frozen=True)
class CarriedPart:
    """What a given step measures, by the share of the step that waits for launches, and how far it carries."""

    name: str
    least_host: float
    most_host: float
    low: float
    high: float

    def held(self, logs: NDArray[np.float64]) -> float:
        """The share of log(measured/forecast) inside the factors."""
        return float(np.mean((logs >= np.log(self.low)) & (logs <= np.log(self.high))))


PARTS = (
    CarriedPart("kernels", 0.0, 0.3, AFTER_LOW, AFTER_HIGH),
    CarriedPart("launches", 0.5, 1.0, HOST_LOW, HOST_HIGH),
)


@dataclass(frozen=True)
class GivenBatch:
    """One measured batch of a job: log(measured/forecast), and the share of the step that waits for launches."""

    source: str
    job: tuple[str, ...]
    batch: int
    log_error: float
    host: float


@dataclass(frozen=True)
class CarriedFigures:
    """A line of the result."""

    part: str
    source: str
    pairs: int
    p5: float
    median: float
    p95: float
    held: float


def main() -> int:
    """Score every pair of batches; 1 where the shipped factors hold too few or too many."""
    table = pl.read_parquet(Path(os.environ["EPOCHCAST_DATA"]) / "runs.parquet")
    runs, _ = read_runs(table.filter((pl.col("gpus") == 1) & pl.col("source").is_in(list(SOURCES))).to_dicts())
    batches = forecast_batches(runs)
    lines = [line for part in PARTS for line in figures(part, carried(batches, part))]
    with RESULT.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("part", "source", "pairs", "p5", "median", "p95", "held"))
        for line in lines:
            shares = (f"{figure:.3f}" for figure in (line.p5, line.median, line.p95, line.held))
            writer.writerow((line.part, line.source, line.pairs, *shares))
    for line in lines:
        spread = f"measured ÷ forecast {line.p5:.2f} … {line.p95:.2f}, held {line.held:.0%}"
        print(f"{line.part:8s} {line.source:15s} {line.pairs:5d} pairs, {spread}")
    return int(not all(WANTED[0] <= line.held <= WANTED[1] for line in lines if line.source == "all"))


def forecast_batches(runs: Sequence[MeasuredRun]) -> list[GivenBatch]:
    """Every step with the error of its forecast; those that are refused are left out."""
    session = Session(with_own_profiles=False)
    batches = []
    for run in runs:
        try:
            forecast = forecast_job(run.job, run_placement(run), session, step_only=True)
        except EpochcastError:
            continue
        if forecast.step_parts is None:
            continue
        job = (run.source, run.system.partition(":")[0], run.device.name, run.model, run.job.precision, run.framework)
        error = float(np.log(run.step_seconds / forecast.step_seconds.mid))
        host = forecast.step_parts.host / forecast.step_seconds.mid
        batches.append(GivenBatch(run.source, job, run.job.batch or 1, error, host))
    return batches


def carried(batches: Sequence[GivenBatch], part: CarriedPart) -> dict[str, NDArray[np.float64]]:
    """log(measured/forecast) of other batches after each batch was given, by source."""
    jobs: dict[tuple[str, ...], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for each in batches:
        if part.least_host <= each.host <= part.most_host:
            jobs[each.job][each.batch].append(each.log_error)
    logs: dict[str, list[float]] = defaultdict(list)
    for (source, *_), by_batch in jobs.items():
        medians = {batch: float(np.median(errors)) for batch, errors in by_batch.items()}
        for given, before in medians.items():
            for batch, after in medians.items():
                if batch != given and 1 / MOST_FACTOR <= batch / given <= MOST_FACTOR:
                    logs[source].append(after - before)
    return {source: np.array(errors) for source, errors in sorted(logs.items())}


def figures(part: CarriedPart, logs: dict[str, NDArray[np.float64]]) -> list[CarriedFigures]:
    """By source, and of all."""
    everything = {**logs, "all": np.concatenate(list(logs.values()))}
    lines = []
    for source, each in everything.items():
        p5, median, p95 = np.exp(np.quantile(each, [0.05, 0.5, 0.95])).tolist()
        lines.append(CarriedFigures(part.name, source, len(each), p5, median, p95, part.held(each)))
    return lines


if __name__ == "__main__":
    raise SystemExit(main())
