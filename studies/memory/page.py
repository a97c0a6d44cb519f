"""The page of the study, from its results; worst first."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from epochcast.predict.memory.largest_batch import LargestBatch
from epochcast.predict.memory.memory_kinds import ON_DEVICE
from studies.memory.brackets import Bracket
from studies.memory.schedtune import Point, ape, left_out, line_errors
from studies.memory.table_rows import ScoredRow, peak_lines, verdict_lines
from studies.memory.truth import Check


@dataclass(frozen=True)
class Results:
    """All that the page shows; `sections` are the lines of detectors and fine-tuning."""

    rows: Sequence[ScoredRow]
    points: Sequence[Point]
    thesis: Sequence[tuple[str, int, int, LargestBatch]]
    brackets: Sequence[Bracket]
    refused: Sequence[str]
    counted: Sequence[Check]
    followed: Sequence[Check]
    sections: Sequence[str]


def page(results: Results, figures: Mapping[str, tuple[float, str]]) -> str:
    """Markdown; `figures` are by name, each with its target."""
    lines = [
        "# Memory against measurements",
        "",
        "Written by `python -m studies memory`. How the forecast is made: [Peak memory](../explanation/memory.md). The",
        "spreads behind intervals and probabilities are fitted by `python -m training.memory_spreads`, whose file",
        "(`predict/memory/memory_spreads.toml`) has the share inside of each source with that source left out.",
        "",
        "| figure | now | target |",
        "|---|---|---|",
        *(f"| {name} | {figure:.1%} | {target} |" for name, (figure, target) in figures.items()),
        "",
        "## Verdicts",
        "",
        "Runs that ran and layouts that ran out of memory (`failed_2026`, `llm_failed`; some reasons are inferred).",
        "Wrong are *does not fit* of what ran and *fits* of what ran out.",
        "",
        *verdict_lines(results.rows),
        "",
        "## Peaks by source, task and number",
        "",
        "Rows as `epochcast evaluate` reads them, up to 24 of a source, among them rows that leave out lengths of",
        "texts, ranks of adapters or the kind of number. Width is high ÷ low of the interval. accelerate's estimate",
        "(four times the model) is asked on one GPU; ftuneai is not installed here and was not asked.",
        "",
        *peak_lines(results.rows),
        "",
        *results.sections,
        *_timm(results.brackets, results.refused),
        *_schedtune(results.points),
        *_thesis(results.thesis),
        *_truth(results.counted, results.followed),
    ]
    return "\n".join(lines) + "\n"


def _timm(brackets: Sequence[Bracket], refused: Sequence[str]) -> Iterator[str]:
    share = {
        "expected inside its bracket": np.mean([b.is_inside for b in brackets]),
        "expected within a tenth of it": np.mean([b.is_near for b in brackets]),
        "safe below what failed": np.mean([b.found.safe < b.fails for b in brackets]),
        "limit at or above what ran": np.mean([b.found.limit >= b.fits for b in brackets]),
    }
    yield "## Largest batches, RTX 3090, mixed precision"
    yield ""
    yield f"{len(brackets)} random rows of memory_timm_intervals: one batch ran, the next of a ladder did not."
    yield f"Not captured: {len(refused)}."
    yield ""
    yield "| | share of rows |"
    yield "|---|---|"
    yield from (f"| {what} | {value:.1%} |" for what, value in share.items())
    yield ""


def _schedtune(points: Sequence[Point]) -> Iterator[str]:
    ours = ape(points, lambda p: p.forecast_bytes)
    yield "## Peaks, 12 networks, 4 batches, 5 GPUs, nvidia-smi"
    yield ""
    yield f"{len(points)} points of memory_schedtune. Momentum with weight decay in PyTorch before 2.0, no workspace"
    yield "above 2 GiB on Turing and the contexts of four generations are read from these rows: a fit. Of a GPU left"
    yield "out the context is that of a line in compute units through the others. xMem's rows are not among the data."
    yield ""
    yield "| | mean | median |"
    yield "|---|---|---|"
    line = "the thesis' line through the measured batches 8 and 16, at 32 and 64"
    for what, errors in (
        ("accelerate estimate-memory (four times the model)", ape(points, lambda p: p.accelerate_bytes)),
        ("torchinfo's total size", ape(points, lambda p: p.torchinfo_bytes)),
        (line, np.array(line_errors(points))),
        ("epochcast", ours),
    ):
        yield f"| {what} | {errors.mean():.1%} | {np.median(errors):.1%} |"
    yield ""
    inside = np.mean([p.peak.interval_of(ON_DEVICE).holds(p.measured_bytes) for p in points])
    apart = ", ".join(f"{device} {np.abs(1 / own - 1).mean():.1%}" for device, _, own in left_out(points))
    yield f"Inside the interval: {inside:.0%}. Mean error with the context of a GPU left out: {apart}."
    yield ""


def _thesis(table: Sequence[tuple[str, int, int, LargestBatch]]) -> Iterator[str]:
    yield "## The thesis' table: largest batch on 16 GB"
    yield ""
    yield "The depth of Conv3d and the workspace of AlexNet's windows were chosen on these rows."
    yield ""
    yield "| network | ran | thesis | error | safe | expected | error | limit |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, estimate, actual, most in table:
        yield (
            f"| {name} | {actual} | {estimate} | {estimate / actual - 1:+.1%} | {most.safe} | {most.expected} | "
            f"{most.expected / actual - 1:+.1%} | {most.limit} |"
        )
    yield ""


def _truth(counted: Sequence[Check], followed: Sequence[Check]) -> Iterator[str]:
    yield "## Against PyTorch's own counters"
    yield ""
    yield "The most alive in a step. Which kernels oneDNN takes on a CPU goes by the processor."
    yield ""
    for what, checks in (("Real steps on a CPU, counted by the profiler", counted), ("MemTracker on `meta`", followed)):
        worst = max(checks, key=lambda check: abs(check.error))
        mean = np.mean([abs(check.error) for check in checks])
        yield f"- {what}: {len(checks)} steps, mean {mean:.3%}, largest {worst.error:+.3%} ({worst.network})."
