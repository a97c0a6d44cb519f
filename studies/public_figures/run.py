"""Public figures of well-known trainings against our forecasts from nothing: `python -m studies public_figures`.

Each row is a figure that its authors publish for a training anybody can name, with the settings they give; what they
leave open is assumed and said in `assumed`. Nothing is fitted to them. Rows of NVIDIA's examples are no surprise:
others from the same tables are among the measurements that the shipped cost model was trained on.

Writes the table of docs/how-to/language-data.md. Returns 1 where more than MOST_OUTSIDE figures are outside our
interval; the two that are known are explained there.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import epochcast as ec

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "language-data.md"
BEGIN, END = "<!-- table of studies/public_figures -->", "<!-- end of the table -->"
NEEDS_DATA = False
MOST_OUTSIDE = 2

NANOGPT = "nanoGPT, README"
TORCHTITAN = "torchtitan, benchmarks/llama3_h100_202412_torchtitan.md"
FOUNDRY = "LLM Foundry, scripts/train/benchmarking/README.md"
DIFFUSION = "mosaicml/diffusion, README"
NVIDIA = "NVIDIA DeepLearningExamples, PyTorch/LanguageModeling/BERT/README.md (2020)"


@dataclass(frozen=True)
class Figure:
    """A published figure in `unit`, what it is of, and the job to forecast. `of` makes the figure of a step's
    seconds.
    """

    training: str
    published: float
    unit: str
    source: str
    job: Mapping[str, Any]
    of: Callable[[ec.Forecast, float], float]
    assumed: str = ""

    def ours(self) -> tuple[float, float, float]:
        """Lowest, expected, highest."""
        answer = ec.forecast(**self.job)
        step = answer.step_seconds
        low, mid, high = (self.of(answer, seconds) for seconds in (step.low, step.mid, step.high))
        return min(low, high), mid, max(low, high)


def _milliseconds(answer: ec.Forecast, step_seconds: float) -> float:
    return 1e3 * step_seconds


def _days(answer: ec.Forecast, step_seconds: float) -> float:
    """Of 600,000 steps."""
    return 600_000 * step_seconds / 86_400


def _samples(answer: ec.Forecast, step_seconds: float) -> float:
    return answer.global_batch / step_seconds


@dataclass(frozen=True)
class _Tokens:
    """Tokens per second and GPU."""

    length: int

    def __call__(self, answer: ec.Forecast, step_seconds: float) -> float:
        return answer.batch_per_gpu * self.length / step_seconds


@dataclass(frozen=True)
class _Hours:
    """GPU hours for so many tokens."""

    length: int
    tokens: float

    def __call__(self, answer: ec.Forecast, step_seconds: float) -> float:
        return self.tokens * step_seconds / (answer.batch_per_gpu * self.length) / 3600


def _gpt2(**more: Any) -> dict[str, Any]:
    settings = {"precision": "amp_bf16", "optimizer": "adamw", "batch": 12, "input_shape": (1024,)}
    model = "hf:GPT2Config(attn_pdrop=0.0,resid_pdrop=0.0,embd_pdrop=0.0)"  # nanoGPT trains without dropout
    return {"model": model, "device": "A100-SXM4-40GB", **settings, **more}


def _llama(**more: Any) -> dict[str, Any]:
    settings = {"precision": "amp_bf16", "optimizer": "adamw", "batch": 2, "checkpointing": True, "strategy": "fsdp"}
    return {"model": "meta-llama/Llama-3.1-8B", "device": "H100-SXM5-80GB", "input_shape": (8192,), **settings, **more}


def _meta(model: str, device: str, length: int, batch: int) -> dict[str, Any]:
    settings = {"precision": "bf16_master", "optimizer": "adamw", "strategy": "fsdp", "gpus": 512, "nodes": 64}
    return {"model": model, "device": device, "input_shape": (length,), "batch": batch, **settings}


def _mpt(layers: int, width: int, heads: int, device: str, **more: Any) -> dict[str, Any]:
    """MPT in its sizes: LLM Foundry's scripts/train/yamls/pretrain."""
    model = f"decoder:layers={layers},hidden={width},heads={heads},ffn={4 * width},vocab=50368,style=gpt,tied=1"
    settings = {"precision": "amp_bf16", "optimizer": "adamw", "strategy": "fsdp", "gpus": 8, "host_class": "cloud"}
    return {"model": model, "device": device, "input_shape": (2048,), **settings, **more}


def _bert(length: int, batch: int, precision: str) -> dict[str, Any]:
    settings = {"optimizer": "lamb", "attention": "eager", "framework_version": "1.2"}
    where = {"model": "bert_large", "device": "V100-SXM2-32GB", "input_shape": (length,)}
    return {**where, "batch": batch, "precision": precision, **settings}


def _unet(side: int, batch: int) -> dict[str, Any]:
    settings = {"precision": "amp_fp16", "optimizer": "adamw", "gpus": 8, "batch": batch}
    return {"model": "sd21_unet", "device": "A100-SXM4-40GB", "input_shape": (4, side // 8, side // 8), **settings}


_SELECTIVE = "checkpointing in full; theirs is selective, and their H100 has 500 W and 2.4 TB/s"
_ALL = "512 GPUs, FSDP; published are all hours that were spent"
_UNSAID = "an A100 of 40 GB, batch 12"
FIGURES = (
    Figure(
        "GPT-2 124M, 300B tokens, 8 × A100, compiled",
        4,
        "days",
        NANOGPT,
        _gpt2(gpus=8, accumulate=5, compile="inductor"),
        _days,
    ),
    Figure(
        "GPT-2 124M, a step, scores in memory, compiled",
        135,
        "ms",
        NANOGPT,
        _gpt2(compile="inductor", attention="eager"),
        _milliseconds,
        _UNSAID,
    ),
    Figure(
        "GPT-2 124M, a step, scores in memory", 250, "ms", NANOGPT, _gpt2(attention="eager"), _milliseconds, _UNSAID
    ),
    Figure(
        "Llama 3.1 8B, 8 × H100, FSDP", 5762, "tokens/s per GPU", TORCHTITAN, _llama(gpus=8), _Tokens(8192), _SELECTIVE
    ),
    Figure(
        "the same, compiled",
        6667,
        "tokens/s per GPU",
        TORCHTITAN,
        _llama(gpus=8, compile="inductor"),
        _Tokens(8192),
        _SELECTIVE,
    ),
    Figure(
        "Llama 3.1 8B, 128 × H100, FSDP",
        5605,
        "tokens/s per GPU",
        TORCHTITAN,
        _llama(gpus=128, nodes=16),
        _Tokens(8192),
        _SELECTIVE,
    ),
    Figure(
        "Llama 2 7B, 2T tokens, A100 80 GB",
        184_320,
        "GPU hours",
        "Touvron et al. 2023, table 2",
        _meta("llama2_7b", "A100-SXM4-80GB", 4096, 2),
        _Hours(4096, 2e12),
        _ALL,
    ),
    Figure(
        "Llama 3 8B, 15T tokens, H100",
        1_300_000,
        "GPU hours",
        "Meta's model card",
        _meta("meta-llama/Llama-3.1-8B", "H100-SXM5-80GB", 8192, 1),
        _Hours(8192, 15e12),
        _ALL,
    ),
    Figure(
        "MPT 125M, 8 × A100 80 GB, FSDP",
        141737,
        "tokens/s per GPU",
        FOUNDRY,
        _mpt(12, 768, 12, "A100-SXM4-80GB", batch=32, accumulate=2),
        _Tokens(2048),
    ),
    Figure(
        "MPT 1B, 8 × A100 80 GB, FSDP",
        20513,
        "tokens/s per GPU",
        FOUNDRY,
        _mpt(24, 2048, 16, "A100-SXM4-80GB", batch=14, accumulate=4),
        _Tokens(2048),
    ),
    Figure(
        "MPT 7B, 8 × A100 80 GB, FSDP",
        4641,
        "tokens/s per GPU",
        FOUNDRY,
        _mpt(32, 4096, 32, "A100-SXM4-80GB", batch=6, accumulate=2),
        _Tokens(2048),
    ),
    Figure(
        "MPT 13B, 8 × A100 80 GB, FSDP",
        2262,
        "tokens/s per GPU",
        FOUNDRY,
        _mpt(40, 5120, 40, "A100-SXM4-80GB", batch=2, accumulate=3),
        _Tokens(2048),
    ),
    Figure(
        "MPT 7B, 8 × H100, FSDP",
        10643,
        "tokens/s per GPU",
        FOUNDRY,
        _mpt(32, 4096, 32, "H100-SXM5-80GB", batch=6),
        _Tokens(2048),
    ),
    Figure(
        "Stable Diffusion 2's U-Net, 256², 8 × A100",
        1100,
        "images/s",
        DIFFUSION,
        _unet(256, 32),
        _samples,
        "batch 32 a GPU, 40 GB",
    ),
    Figure(
        "Stable Diffusion 2's U-Net, 512², 8 × A100",
        290,
        "images/s",
        DIFFUSION,
        _unet(512, 16),
        _samples,
        "batch 16 a GPU, 40 GB",
    ),
    Figure(
        "BERT large, 128 tokens, V100 32 GB, mixed", 171.52, "sequences/s", NVIDIA, _bert(128, 64, "amp_fp16"), _samples
    ),
    Figure(
        "BERT large, 512 tokens, V100 32 GB, mixed", 30.08, "sequences/s", NVIDIA, _bert(512, 8, "amp_fp16"), _samples
    ),
    Figure("BERT large, 128 tokens, V100 32 GB, fp32", 40.32, "sequences/s", NVIDIA, _bert(128, 32, "fp32"), _samples),
    Figure("BERT large, 512 tokens, V100 32 GB, fp32", 8.36, "sequences/s", NVIDIA, _bert(512, 4, "fp32"), _samples),
)


@dataclass
class Table:
    """The rows so far."""

    lines: list[str] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    def add(self, figure: Figure) -> str:
        """Forecast a figure; its row."""
        low, mid, high = figure.ours()
        self.ratios.append(mid / figure.published)
        if not low <= figure.published <= high:
            self.outside.append(figure.training)
        assumed = f"; assumed: {figure.assumed}" if figure.assumed else ""
        ours = f"{_shown(mid)} ({_shown(low)} … {_shown(high)})"
        published = f"{_shown(figure.published)} {figure.unit}"
        ratio = f"{mid / figure.published:.2f}"
        self.lines.append(f"| {figure.training} | {published} | {ours} | {ratio} | {figure.source}{assumed} |")
        return self.lines[-1]

    def text(self) -> Iterator[str]:
        """Heading, rows, summary."""
        yield "| training | published | forecast (90 % interval) | forecast over published | source |"
        yield "|---|---|---|---|---|"
        yield from self.lines
        yield ""
        near = sum(0.8 <= ratio <= 1.25 for ratio in self.ratios)
        inside = len(self.lines) - len(self.outside)
        yield f"{inside} of {len(self.lines)} are inside our interval, {near} within a quarter of the published figure."


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> int:
    """Forecast, write, print."""
    table = Table()
    for figure in FIGURES:
        print(table.add(figure), flush=True)
    text = "\n".join([BEGIN, "", *table.text(), "", END])
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: text, page, flags=re.DOTALL), encoding="utf-8")
    print(*table.text(), sep="\n")
    print(*(f"outside: {name}" for name in table.outside), sep="\n")
    return int(len(table.outside) > MOST_OUTSIDE)


if __name__ == "__main__":
    sys.exit(main())
