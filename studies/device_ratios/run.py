"""How much faster one GPU is than another: forecast against measured, by pair of devices.

    python -m studies device_ratios      writes docs/accuracy/device-ratios.md, its picture and result.csv beside this

Two rows of one source that differ in the GPU alone (network, format, batch, layout, mode, framework) have a measured
ratio of their steps. What a source adds to every step (its input pipeline, its way of counting) cancels, so that the
forecast ratio shows how well devices are known relative to each other. Rows that wait for their host are left out:
their ratio is that of two hosts. Fails where the median error of all pairs is above 15 %.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl

from epochcast.measure.evaluate.evaluate_runs import forecast_runs
from epochcast.predict.cost.cost_models import find_cost_model
from studies.accuracy.scored_steps import evenly
from studies.figures_csv import figures_csv

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
PAGE, PICTURE = DOCS / "accuracy" / "device-ratios.md", DOCS / "pictures" / "device-ratios.svg"
# aws_gpu_benchmark is left out: its small images wait for launches, and each of its GPUs has a host of its own.
TABLES = ("runs", "runs_more", "runs_2026")
SOURCES = (
    "lambda",
    "lambda_tensorflow",
    "nvidia_dle",
    "sia_sosp23",
    "torchvision_gpu_bench",
    "torchvision_gpu_bench_fork",
    "u39kun",
    "xhmy_torch_benchmark",
    "zyr17_24gb",
)
# What must be equal for two rows to be compared.
SAME = ("source", "model", "precision", "batch_per_gpu", "mode", "input_shape", "channels_last", "framework", "data")
MOST_NETWORKS = 12
# A pair with fewer networks and formats is in the file, not on the page.
LEAST_ROWS = 3
MOST_MEDIAN_ERROR = 0.15
# The share of a step that the host may leave the GPU waiting.
MOST_HOST_SHARE = 0.1


@dataclass(frozen=True)
class StepRatio:
    """Seconds of the slower GPU over those of the faster, for one row of both."""

    slower: str
    faster: str
    source: str
    model: str
    precision: str
    batch: int
    measured: float
    forecast: float

    @property
    def error(self) -> float:
        """forecast ÷ measured"""
        return self.forecast / self.measured


@dataclass(frozen=True)
class PairFigures:
    """All rows of a pair in one format."""

    slower: str
    faster: str
    precision: str
    rows: int
    measured: float
    forecast: float
    error: float
    mean_error: float


def main() -> int:
    """Forecast, compare, write; 1 where devices are compared worse than they should be."""
    ratios = list(step_ratios(scored(Path(os.environ["EPOCHCAST_DATA"]))))
    pairs = sorted(pair_figures(ratios), key=lambda pair: -pair.mean_error)
    names = ("slower", "faster", "source", "model", "precision", "batch", "measured", "forecast", "error")
    ordered = sorted(ratios, key=lambda ratio: -abs(np.log(ratio.error)))
    (HERE / "result.csv").write_text(figures_csv(names, ordered), encoding="utf-8")
    PAGE.write_text(page(ratios, pairs), encoding="utf-8")
    draw([pair for pair in pairs if pair.rows >= LEAST_ROWS])
    errors = np.abs(np.array([ratio.error for ratio in ratios]) - 1)
    print(f"{len(ratios)} ratios of {len(pairs)} pairs: {errors.mean():.1%} / {np.median(errors):.1%}")
    return int(np.median(errors) > MOST_MEDIAN_ERROR)


def scored(folder: Path) -> pl.DataFrame:
    """Rows that are there on several GPUs, with the forecast of each; of several machines alike the median."""
    tables = [pl.read_parquet(folder / f"{name}.parquet") for name in TABLES]
    runs = pl.concat(tables, how="diagonal_relaxed").filter(
        (pl.col("gpus") == 1) & pl.col("source").is_in(SOURCES) & ~pl.col("compiled").fill_null(value=False)
    )
    runs = runs.with_columns(
        step=pl.coalesce("step_seconds", pl.col("batch_per_gpu") / pl.col("samples_per_second")),
        shared=pl.col("device").n_unique().over(SAME),
    ).filter((pl.col("shared") > 1) & pl.col("step").is_not_null())
    firsts = [name for name in runs.columns if name not in (*SAME, "device", "step")]
    runs = runs.group_by(*SAME, "device", maintain_order=True).agg(pl.col("step").median(), pl.col(firsts).first())
    runs = runs.with_columns(step_seconds=pl.col("step"), samples_per_second=pl.lit(None))
    runs = pl.concat([few_networks(part) for part in runs.partition_by("source", maintain_order=True)])
    answers = forecast_runs(runs.to_dicts(), find_cost_model())
    host_share = answers.parts["host"] / answers.mid_seconds
    return runs.with_columns(
        forecast=pl.Series(answers.mid_seconds, dtype=pl.Float64),
        host_share=pl.Series(host_share, dtype=pl.Float64),
        name=pl.Series(answers.labels["device"]),
    ).filter(pl.col("forecast").is_not_nan() & (pl.col("host_share") <= MOST_HOST_SHARE))


def few_networks(part: pl.DataFrame) -> pl.DataFrame:
    """A source's networks, thinned by rule."""
    names = part["model"].unique().sort()
    return part.filter(pl.col("model").is_in(names.gather(evenly(len(names), MOST_NETWORKS)).implode()))


def step_ratios(rows: pl.DataFrame) -> Iterator[StepRatio]:
    """Every two rows that differ in the GPU alone; the slower by measurement first."""
    for (source, model, precision, batch, *_), group in rows.group_by(*SAME, maintain_order=True):
        steps = sorted(group.select("name", "step", "forecast").iter_rows(), key=lambda step: -step[1])
        for slow, fast in combinations(steps, 2):
            if slow[0] != fast[0]:
                names = (slow[0], fast[0], str(source), str(model), str(precision))
                yield StepRatio(*names, int(str(batch).split(".")[0]), slow[1] / fast[1], slow[2] / fast[2])


def pair_figures(ratios: Sequence[StepRatio]) -> Iterator[PairFigures]:
    """By pair and format; a pair is written one way, by which is slower most of the time."""
    groups: dict[tuple[frozenset[str], str], list[StepRatio]] = {}
    for ratio in ratios:
        groups.setdefault((frozenset((ratio.slower, ratio.faster)), ratio.precision), []).append(ratio)
    for (_, precision), mine in groups.items():
        slower = max({r.slower for r in mine}, key=lambda name: sum(r.slower == name for r in mine))
        faster = next(r.faster if r.slower == slower else r.slower for r in mine)
        signs = np.array([1.0 if r.slower == slower else -1.0 for r in mine])
        measured = np.exp(np.median(signs * np.log([r.measured for r in mine])))
        forecast = np.exp(np.median(signs * np.log([r.forecast for r in mine])))
        errors = signs * np.log([r.error for r in mine])
        mean_error = float(np.mean(np.abs(np.exp(errors) - 1)))
        figures = (float(measured), float(forecast), float(np.exp(np.median(errors))), mean_error)
        yield PairFigures(slower, faster, precision, len(mine), *figures)


def page(ratios: Sequence[StepRatio], pairs: Sequence[PairFigures]) -> str:
    """Failures first."""
    errors = np.abs(np.array([ratio.error for ratio in ratios]) - 1)
    shown = [pair for pair in pairs if pair.rows >= LEAST_ROWS]
    lines = [
        _HEAD + _hopper(ratios),
        f"{len(ratios)} ratios, {len(shown)} pairs of GPU and format with at least {LEAST_ROWS} of them. The forecast "
        f"ratio is {errors.mean():.0%} off on average, {np.median(errors):.0%} in the median.",
        "",
        "![Forecast against measured ratio](../pictures/device-ratios.svg)",
        "",
        "| slower | faster | format | rows | measured | forecast | forecast ÷ measured | mean error |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for pair in shown:
        figures = f"{pair.measured:.2f} × | {pair.forecast:.2f} × | {pair.error:.2f} | {pair.mean_error:.0%}"
        lines.append(f"| {pair.slower} | {pair.faster} | {pair.precision} | {pair.rows} | {figures} |")
    return "\n".join(lines) + "\n"


def _hopper(ratios: Sequence[StepRatio]) -> str:
    """How fast H100 is forecast beside A100, by format."""
    formats = ("tf32", "amp_fp16")
    errors = [
        [r.error for r in ratios if r.precision == precision and r.slower in _AMPERE and r.faster == _HOPPER]
        for precision in formats
    ]
    tf32, amp = (f"{np.median(each):.2f}" for each in errors)
    return f"- *A100 to H100.* The forecast ratio is {tf32} of the measured one in TF32 and {amp} in AMP.\n"


def draw(pairs: Sequence[PairFigures]) -> None:
    """Forecast ratio against measured, by pair."""
    import altair as alt

    frame = pl.DataFrame([vars_of(pair) for pair in pairs])
    scale = alt.Scale(type="log")
    points = (
        alt.Chart(frame)
        .mark_circle(size=40, opacity=0.7)
        .encode(
            x=alt.X("measured", scale=scale, title="measured: times as fast"),
            y=alt.Y("forecast", scale=scale, title="forecast: times as fast"),
            color=alt.Color("precision", title="format"),
        )
    )
    ends = pl.DataFrame({"at": [frame["measured"].min(), frame["measured"].max()]})
    line = alt.Chart(ends).mark_line(color="grey").encode(x="at:Q", y="at:Q")
    (line + points).properties(width=480, height=420).save(str(PICTURE))


def vars_of(pair: PairFigures) -> dict[str, object]:
    """A row of the picture."""
    return {"measured": pair.measured, "forecast": pair.forecast, "precision": pair.precision}


_AMPERE, _HOPPER = ("A100-PCIE-80GB", "A100-SXM4-80GB"), "H100-SXM5-80GB"
_HEAD = """# Ratios between GPUs

Written by `python -m studies device_ratios`. How many times as fast one GPU is as another at the same network, format
and batch, within one source of measurements: what the source adds to every step cancels. Steps that wait for their host
are left out. Worst first; `result.csv` of the study has every row. The forecast knows most of these devices by these
and other sources.

What is behind the failures:

- *Pure half without tensor cores.* At batch 12 the median network takes 0.93 of its fp32 time on a GTX 1080 Ti, 1.2 on
  a TITAN Xp and 3.8 on an RX 5700, where half lacks fast kernels. One number per device does not follow that.
- *fp64 on GeForce.* VGG-16 reaches 0.66 to 0.95 of the data sheet's rate, as it should. What was fitted of convolutions
  and frameworks in other formats moves fp64, too.
- *RX 5700 to RX 6800.* One source alone timed both, and no other card of their generations trains in it.
"""


if __name__ == "__main__":
    raise SystemExit(main())
