"""Megatron-LM's weak scaling table against our forecasts from nothing: `python -m studies large_models`.

Narayanan et al. 2021, "Efficient large-scale language model training on GPU clusters using Megatron-LM",
table 1:
GPT models of 1.7 to 1,008 billion parameters on 32 to 3,072 A100s of 80 GB (DGX A100, eight HDR cards a box), sequences
of 2,048 tokens, vocabulary 51,200, fp16, activations recomputed. The table gives teraflop/s per GPU by the formula

    F = 96·B·s·l·h²·(1 + s/6h + V/16lh)    flops of a step, of which a quarter is recomputation

It does not give micro-batches and chunks; ours are assumed (`micro_batch`, `chunks`). The models run in OPT's
architecture: relu, one kernel per function, as Megatron's fused kernels nearly are; attention with scores in memory, as
in 2021. Writes the table of docs/accuracy/large-models-accuracy.md; where there are measurements, also those of
`bridge` and `llm`. Returns 1 where a row is off by more than TOLERANCE.
"""

import os
import re
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.capture.zoo.gpt import opt
from epochcast.describe.graph.recipe import Recipe
from epochcast.predict.cost.cost_models import find_cost_model
from epochcast.predict.forecast.placement import place
from epochcast.predict.forecast.step import StepForecast, step_forecast
from studies.large_models import llm
from studies.large_models.bridge import bridge, tables

PAGE = Path(__file__).parents[2] / "docs" / "accuracy" / "large-models-accuracy.md"
BEGIN, END = "<!-- table of studies/large_models -->", "<!-- end of the table -->"
RUNS, RUNS_END = "<!-- llm_runs -->", "<!-- end of llm_runs -->"
BRIDGE, BRIDGE_END = "<!-- megatron_bridge -->", "<!-- end of megatron_bridge -->"
TOLERANCE = 0.25
NEEDS_DATA = False
TOKENS, VOCABULARY, GPUS_PER_BOX = 2048, 51_200, 8
PEAK_FLOPS_PER_SECOND = 312e12


@dataclass(frozen=True)
class Published:
    """A row of the table."""

    billions: float
    heads: int
    width: int
    layers: int
    tensor: int
    pipeline: int
    gpus: int
    batch: int
    teraflops: float

    @property
    def data(self) -> int:
        return self.gpus // self.tensor // self.pipeline

    @property
    def micro_batch(self) -> int:
        """Assumed: small where many stages must be kept busy."""
        return 4 if self.pipeline == 1 else 2 if self.pipeline <= 4 else 1

    @property
    def chunks(self) -> int:
        """Assumed: the least above one that gives every chunk whole layers, as Megatron asks."""
        return next((c for c in (2, 3) if self.pipeline > 1 and self.layers % (self.pipeline * c) == 0), 1)

    @property
    def strategy(self) -> str:
        chunks = f",vp{self.chunks}" if self.chunks > 1 else ""
        return f"dp{self.data},tp{self.tensor},pp{self.pipeline}{chunks}{',even' if self.pipeline > 1 else ''}"

    @property
    def flops(self) -> float:
        """Of a step, by the paper's formula."""
        s, h, layers = TOKENS, self.width, self.layers
        return 96 * self.batch * s * layers * h**2 * (1 + s / (6 * h) + VOCABULARY / (16 * layers * h))


TABLE = (
    Published(1.7, 24, 2304, 24, 1, 1, 32, 512, 137),
    Published(3.6, 32, 3072, 30, 2, 1, 64, 512, 138),
    Published(7.5, 32, 4096, 36, 4, 1, 128, 512, 142),
    Published(18.4, 48, 6144, 40, 8, 1, 256, 1024, 135),
    Published(39.1, 64, 8192, 48, 8, 2, 512, 1536, 138),
    Published(76.1, 80, 10240, 60, 8, 4, 1024, 1792, 140),
    Published(145.6, 96, 12288, 80, 8, 8, 1536, 2304, 148),
    Published(310.1, 128, 16384, 96, 8, 16, 1920, 2160, 155),
    Published(529.6, 128, 20480, 105, 8, 35, 2520, 2520, 163),
    Published(1008.0, 160, 25600, 128, 8, 64, 3072, 3072, 163),
)


def forecast(row: Published) -> StepForecast:
    """One step, from nothing."""
    build = partial(
        opt, name="gpt", layers=row.layers, width=row.width, heads=row.heads, positions=TOKENS, vocabulary=VOCABULARY
    )
    recipe = Recipe(
        row.micro_batch,
        precision="fp16_master",
        optimizer="adam",
        attention="eager",
        checkpointing=True,
        accumulate=row.batch // row.data // row.micro_batch,
    )
    where = place(
        "A100-SXM4-80GB",
        gpus=row.gpus,
        nodes=row.gpus // GPUS_PER_BOX,
        strategy=row.strategy,
        topology="DGX A100",
    )
    return step_forecast(BuiltModel("gpt", build).trace(recipe), where, find_cost_model())


def teraflops(row: Published, step_seconds: float) -> float:
    """Per GPU and second, by the paper's formula."""
    return row.flops / step_seconds / row.gpus / 1e12


def line(row: Published, step: StepForecast) -> str:
    """A row of the page."""
    ours, low, high = (teraflops(row, s) for s in (step.seconds.mid, step.seconds.high, step.seconds.low))
    parts, total = step.parts, step.seconds.mid
    return (
        f"| {row.billions:,.1f} B | {row.gpus:,} | {row.data} · {row.tensor} · {row.pipeline} | {row.batch:,} "
        f"| {row.teraflops:.0f} ({row.teraflops * 1e12 / PEAK_FLOPS_PER_SECOND:.0%}) "
        f"| {ours:.0f} ({ours * 1e12 / PEAK_FLOPS_PER_SECOND:.0%}) | {low:.0f} … {high:.0f} "
        f"| {ours / row.teraflops - 1:+.1%} | {parts.exposed_comm / total:.0%} | {parts.bubble / total:.0%} |"
    )


def main() -> int:
    """Forecast, write, print."""
    lines, errors = [], []
    for row in TABLE:
        step = forecast(row)
        errors.append(teraflops(row, step.seconds.mid) / row.teraflops - 1)
        lines.append(line(row, step))
        print(lines[-1], flush=True)
    mean = sum(abs(error) for error in errors) / len(errors)
    summary = f"Mean absolute error {mean:.1%}, worst {max(errors, key=abs):+.1%}."
    heading = (
        "| model | GPUs | data · tensor · pipeline | batch | published, Tflop/s per GPU | ours | 90 % interval | error "
        "| waiting | of it bubble |\n|---|---|---|---|---|---|---|---|---|---|"
    )
    table = "\n".join([BEGIN, "", heading, *lines, "", summary, "", END])
    _renew(BEGIN, END, table)
    print(summary)
    data = os.environ.get("EPOCHCAST_DATA")
    if data:
        lines = list(llm.tables(*llm.timed(Path(data), find_cost_model()), *llm.held(Path(data))))
        _renew(RUNS, RUNS_END, "\n".join([RUNS, "", *lines, "", RUNS_END]))
        print(*lines, sep="\n")
        lines = list(tables(*bridge(Path(data), find_cost_model())))
        _renew(BRIDGE, BRIDGE_END, "\n".join([BRIDGE, "", *lines, "", BRIDGE_END]))
        print(*lines, sep="\n")
    return int(max(map(abs, errors)) > TOLERANCE)


def _renew(begin: str, end: str, table: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(re.sub(f"{begin}.*{end}", lambda _: table, text, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
