"""Compiled steps, hosts and hooks against measurements: `python -m studies compiled` (needs EPOCHCAST_DATA).

Every row is forecast twice: as if nothing were known of its compiler, host or hooks, and with them. Writes `result.csv`
beside this file and the table of `docs/explanation/compile.md`. Returns 1 if knowing more makes a set worse that it
should help.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import md5
from pathlib import Path

import numpy as np
import polars as pl

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import EpochcastError
from epochcast.interval import Interval
from epochcast.measure.tables.run_placement import run_placement
from epochcast.measure.tables.run_table import MeasuredRun, read_runs
from epochcast.predict.cost.hosts import measured_host
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.session import Session
from studies.figures_csv import figures_csv
from training.files import data_folder

RESULT = Path(__file__).with_name("result.csv")
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "compile.md"
BEGIN, END = "<!-- figures: written by `python -m studies compiled` -->", "<!-- end of figures -->"
COLUMNS = ("what", "rows", "mape_before", "mape", "median_before", "median", "bias_before", "bias", "coverage")
# Networks of timm, the same for every version: the smallest hashes of their names.
NETWORKS = 60
MOST_ROWS = 200
# By how much a set may become worse, as a fraction, before the study fails: errors of devices hide those of compilers.
SLACK = 0.02


@dataclass(frozen=True)
class Figure:
    """Errors of one set of rows, without and with what is known of its software; fractions of the measured step."""

    what: str
    rows: int
    mape_before: float
    mape: float
    median_before: float
    median: float
    bias_before: float
    bias: float
    coverage: float | None
    must_help: bool = True

    @property
    def is_worse(self) -> bool:
        """Whether it should have helped and did not."""
        return self.must_help and self.mape > self.mape_before + SLACK


@dataclass(frozen=True)
class Scored:
    """One run: measured, and forecast without and with what is known."""

    run: MeasuredRun
    before: Interval
    after: Interval


def scored(runs: Sequence[MeasuredRun]) -> Iterator[Scored]:
    """Runs that can be forecast, network by network."""
    groups: dict[tuple[object, ...], list[MeasuredRun]] = {}
    for run in runs:
        groups.setdefault((run.reference, run.input_shape), []).append(run)
    for group in groups.values():
        session = Session(with_own_profiles=False)
        for run in group:
            placement = run_placement(run)
            unknown = replace(run.job, compile="none", hook_seconds=0.0)
            try:
                before = forecast_job(unknown, replace(placement, host=None), session, step_only=True)
                after = forecast_job(run.job, placement, session, step_only=True)
            except EpochcastError:
                continue
            yield Scored(run, before.step_seconds, after.step_seconds)


def figure(what: str, rows: Sequence[Scored], *, must_help: bool = True) -> Figure:
    """The errors of a set."""
    before = np.array([row.before.mid / row.run.step_seconds - 1 for row in rows])
    after = np.array([row.after.mid / row.run.step_seconds - 1 for row in rows])
    return Figure(
        what,
        len(rows),
        float(np.abs(before).mean()),
        float(np.abs(after).mean()),
        float(np.median(np.abs(before))),
        float(np.median(np.abs(after))),
        float(np.median(before)),
        float(np.median(after)),
        float(np.mean([row.after.holds(row.run.step_seconds) for row in rows])),
        must_help,
    )


def speed_up(what: str, rows: Sequence[Scored]) -> Figure:
    """Eager ÷ compiled seconds of the same network, batch and version: whatever is wrong with the device cancels."""
    eager = {_pair(row.run): row for row in rows if row.run.job.compile == "none"}
    pairs = [(eager[_pair(r.run)], r) for r in rows if r.run.job.compile != "none" and _pair(r.run) in eager]
    truth = np.array([plain.run.step_seconds / fused.run.step_seconds for plain, fused in pairs])
    ratio = np.array([plain.after.mid / fused.after.mid for plain, fused in pairs])
    before, after = 1 / truth - 1, ratio / truth - 1
    mape_before, mape = (float(np.abs(each).mean()) for each in (before, after))
    median_before, median = (float(np.median(np.abs(each))) for each in (before, after))
    bias_before, bias = (float(np.median(each)) for each in (before, after))
    return Figure(what, len(pairs), mape_before, mape, median_before, median, bias_before, bias, None)


def _pair(run: MeasuredRun) -> tuple[object, ...]:
    return run.model, run.input_shape, run.job.batch, run.job.framework_version, run.job.channels_last


def sampled(table: pl.DataFrame, most: int = MOST_ROWS) -> pl.DataFrame:
    """Evenly over the table."""
    return table.gather_every(max(1, -(-len(table) // most)))


def runs_of(table: pl.DataFrame) -> list[MeasuredRun]:
    """The rows that can be read."""
    return read_runs(table.to_dicts())[0]


def figures(folder: Path) -> Iterator[Figure]:
    """Every set."""
    tables: dict[str, pl.DataFrame] = {}

    def table(name: str) -> pl.DataFrame:
        return tables.setdefault(name, pl.read_parquet(folder / f"{name}.parquet"))

    yield from _compiled(table)
    single = table("runs").filter(pl.col("gpus") == 1)
    small = single.filter((pl.col("source") == "torchvision_gpu_bench") & (pl.col("precision") != "fp64"))
    yield figure("batch 12, host by system (torchvision_gpu_bench; fitted here)", list(scored(runs_of(small))))
    adaptdl = pl.col("source") == "pollux_osdi21"
    yield figure("AdaptDL's hooks, one T4 (pollux; fitted here)", list(scored(runs_of(single.filter(adaptdl)))))
    several = sampled(table("runs").filter(adaptdl & pl.col("gpus").is_between(2, 4)))
    yield figure("AdaptDL's hooks, 2 to 4 T4 (pollux)", list(scored(runs_of(several))))
    submitted = sampled(table("runs").filter((pl.col("source") == "mlperf_training") & (pl.col("gpus") <= 16)))
    yield figure("vendors' submissions, up to 16 GPUs (mlperf_training)", list(scored(runs_of(submitted))))


def _compiled(table: Callable[[str], pl.DataFrame]) -> Iterator[Figure]:
    """Rows with `compiled`, none of which any model here was trained on."""
    ada = table("inference_runs").filter((pl.col("device") == "RTX 4090") & ~pl.col("channels_last"))
    names = sorted(set(ada.filter(pl.col("compiled"))["model"]), key=lambda name: md5(name.encode()).hexdigest())
    rows = list(scored(runs_of(ada.filter(pl.col("model").is_in(names[:NETWORKS])))))
    yield speed_up("speed-up by torch.compile, forward, AMP, RTX 4090 (timm)", rows)
    compiled = [row for row in rows if row.run.job.compile != "none"]
    # The device's own error is as large as what compiling brings, and of the other sign: not asked to help.
    yield figure("torch.compile, forward, AMP, RTX 4090 (timm)", compiled, must_help=False)
    is_single = pl.col("compiled").fill_null(False) & (pl.col("gpus") == 1)
    neusight = table("transformer_runs").filter(is_single)
    yield figure("torch.compile, forward, fp32, A100 (neusight)", list(scored(runs_of(neusight))))
    xla = [*runs_of(table("runs").filter(is_single)), *runs_of(table("runs_more").filter(is_single))]
    half = [run for run in xla if run.job.precision in ("amp_fp16", "fp16")]
    yield figure("XLA, training, half precision (nvidia_dle, lambda_tensorflow)", list(scored(half)))
    full = [run for run in xla if run not in half]
    yield figure("XLA, training, fp32 and tf32 (the same)", list(scored(full)), must_help=False)


def launches_differ(folder: Path) -> list[str]:
    """Systems whose shipped seconds per launch are not those of their rows: DenseNet-121's step ÷ its kernels."""
    table = pl.read_parquet(folder / "runs_more.parquet")
    rows = table.filter((pl.col("source") == "kernelbench_level3") & (pl.col("model") == "DenseNet121"))
    kernels = zoo_model("densenet121").trace(Recipe(10, mode="forward")).columns.launches.sum()
    wrong = []
    for (system,), group in rows.group_by("system"):
        host = measured_host("kernelbench_level3", str(system))
        seconds = float(np.median(group["step_seconds"].to_numpy())) / kernels
        if host is not None and abs(host.launch_seconds.mid / seconds - 1) > 0.05:
            wrong.append(f"{system}: {seconds * 1e6:.1f} µs per launch, shipped {host.launch_seconds.mid * 1e6:.1f}")
    return wrong


def page_table(rows: Sequence[Figure]) -> str:
    """The figures as the page shows them: mean / median error and bias, in percent."""
    lines = ["| rows | n | without | with | bias | holds |", "|---|---|---|---|---|---|"]
    for row in rows:
        without = f"{100 * row.mape_before:.0f} / {100 * row.median_before:.0f} %"
        known = f"{100 * row.mape:.0f} / {100 * row.median:.0f} %"
        holds = "" if row.coverage is None else f"{100 * row.coverage:.0f} %"
        bias = f"{100 * row.bias_before:+.0f} → {100 * row.bias:+.0f} %"
        lines.append(f"| {row.what} | {row.rows} | {without} | {known} | {bias} | {holds} |")
    return "\n".join(lines)


def with_table(page: str, table: str) -> str:
    """The page with its figures renewed."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


def main() -> int:
    """Score, write, print."""
    folder = data_folder()
    rows = list(figures(folder))
    text = figures_csv(COLUMNS, rows)
    RESULT.write_text(text, encoding="utf-8")
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), page_table(rows)), encoding="utf-8")
    print(text)
    wrong = [*launches_differ(folder), *(f"{row.what}: worse than without" for row in rows if row.is_worse)]
    for line in wrong:
        print(line)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
