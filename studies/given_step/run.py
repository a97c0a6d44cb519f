"""How far one measured step carries to other batches of the same job: the interval after `--step-seconds`.

    python -m studies given_step             writes studies/given_step/result.csv

Of every job that a source measured at several batches on one GPU, each batch is given in turn and the others, up to
four times as large or small, are forecast with kernels scaled to it. Steps that wait for launches are left out: there
the host is scaled instead. Fails where the shipped factors hold fewer than 85 % or more than 97 % of all pairs.
"""

import csv
import os
from collections import defaultdict
from pathlib import Path

import numpy as np
import polars as pl

from epochcast.errors import EpochcastError
from epochcast.measure.tables.run_placement import run_placement
from epochcast.measure.tables.run_table import MeasuredRun, read_runs
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.measured_step import AFTER_HIGH, AFTER_LOW
from epochcast.predict.forecast.session import Session

RESULT = Path(__file__).with_name("result.csv")
SOURCES = ("dlperf", "lambda", "pollux_osdi21", "sia_sosp23")
MOST_HOST, MOST_FACTOR = 0.3, 4.0
WANTED = (0.85, 0.97)


def main() -> int:
    """Score every pair of batches; 1 where the shipped factors hold too few or too many."""
    table = pl.read_parquet(Path(os.environ["EPOCHCAST_DATA"]) / "runs.parquet")
    runs, _ = read_runs(table.filter((pl.col("gpus") == 1) & pl.col("source").is_in(list(SOURCES))).to_dicts())
    pairs = carried(runs)
    rows = [(source, len(logs), *np.exp(np.quantile(logs, [0.05, 0.5, 0.95])), _held(logs)) for source, logs in pairs]
    logs = np.concatenate([each for _, each in pairs])
    rows.append(("all", len(logs), *np.exp(np.quantile(logs, [0.05, 0.5, 0.95])), _held(logs)))
    with RESULT.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("source", "pairs", "p5", "median", "p95", "held"))
        writer.writerows((source, n, *(f"{figure:.3f}" for figure in figures)) for source, n, *figures in rows)
    for row in rows:
        print(f"{row[0]:15s} {row[1]:5d} pairs, measured ÷ forecast {row[2]:.2f} … {row[4]:.2f}, held {row[5]:.0%}")
    return int(not WANTED[0] <= _held(logs) <= WANTED[1])


def carried(runs: list[MeasuredRun]) -> list[tuple[str, np.ndarray]]:
    """log(measured/forecast) of other batches after each batch was given, by source."""
    session = Session(with_own_profiles=False)
    jobs: dict[tuple[str, ...], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        try:
            forecast = forecast_job(run.job, run_placement(run), session, step_only=True)
        except EpochcastError:
            continue
        if forecast.step_parts is None or forecast.step_parts.host > MOST_HOST * forecast.step_seconds.mid:
            continue
        job = (run.source, run.system.partition(":")[0], run.device.name, run.model, run.job.precision, run.framework)
        jobs[job][run.job.batch or 1].append(float(np.log(run.step_seconds / forecast.step_seconds.mid)))
    logs: dict[str, list[float]] = defaultdict(list)
    for (source, *_), batches in jobs.items():
        medians = {batch: float(np.median(errors)) for batch, errors in batches.items()}
        for given, before in medians.items():
            for batch, after in medians.items():
                if batch != given and 1 / MOST_FACTOR <= batch / given <= MOST_FACTOR:
                    logs[source].append(after - before)
    return [(source, np.array(errors)) for source, errors in sorted(logs.items())]


def _held(logs: np.ndarray) -> float:
    return float(np.mean((logs >= np.log(AFTER_LOW)) & (logs <= np.log(AFTER_HIGH))))


if __name__ == "__main__":
    raise SystemExit(main())
