"""The page of the study, from its results; worst first."""

from collections.abc import Iterator, Sequence

import numpy as np

from epochcast.memory.largest import LargestBatch
from epochcast.memory.peak import HIGH_FACTOR, LOW_FACTOR
from studies.memory.run import MIB, TRUTH_BATCH, Bracket, Point, ape, left_out, line_errors
from studies.memory.truth import Check


def page(
    points: Sequence[Point],
    table: Sequence[tuple[str, int, int, LargestBatch]],
    brackets: Sequence[Bracket],
    failed: Sequence[str],
    counted: Sequence[Check],
    followed: Sequence[Check],
) -> str:
    """Markdown."""
    lines = [
        "# Memory against measurements",
        "",
        "Written by `python -m studies memory`. How the forecast is made: [Peak memory](memory.md).",
        "",
        "## What is not scored",
        "",
        "Detectors (mmdetection, detectron2, maskrcnn_benchmark: 617 rows with peaks) have no builder and ask for "
        "values when traced. litgpt's 111 rows do not record the length of their sequences. "
        "Captures that failed in the sample below: "
        f"{len(failed)}" + (f" ({'; '.join(failed)})." if failed else "."),
        "",
        *_timm(brackets),
        *_schedtune(points),
        *_thesis(table),
        *_truth(counted, followed),
    ]
    return "\n".join(lines) + "\n"


def _timm(brackets: Sequence[Bracket]) -> Iterator[str]:
    share = {
        "expected inside its bracket": np.mean([b.is_inside for b in brackets]),
        "expected within a tenth of it": np.mean([b.is_near for b in brackets]),
        "expected below what ran": np.mean([b.found.expected < b.fits for b in brackets]),
        "safe below what failed": np.mean([b.found.safe < b.fails for b in brackets]),
        "limit at or above what ran": np.mean([b.found.limit >= b.fits for b in brackets]),
    }
    yield "## Largest batches, RTX 3090, mixed precision"
    yield ""
    yield f"{len(brackets)} random rows of memory_timm_intervals: one batch ran, the next of a ladder did not."
    yield ""
    yield "| | share of rows |"
    yield "|---|---|"
    yield from (f"| {what} | {value:.1%} |" for what, value in share.items())
    yield ""
    yield "Farthest off:"
    yield ""
    yield "| model | layout | ran | failed | safe | expected | limit |"
    yield "|---|---|---|---|---|---|---|"
    worst = sorted(brackets, key=lambda b: -max(b.found.expected / b.fails, b.fits / max(1, b.found.expected)))[:6]
    for b in worst:
        found = b.found
        yield f"| {b.model} | {b.layout} | {b.fits} | {b.fails} | {found.safe} | {found.expected} | {found.limit} |"
    yield ""


def _schedtune(points: Sequence[Point]) -> Iterator[str]:
    ours = ape(points, lambda p: p.forecast_bytes)
    ratios = np.array([p.measured_bytes / p.forecast_bytes for p in points])
    yield "## Peaks, 12 networks, 4 batches, 5 GPUs"
    yield ""
    yield f"{len(points)} points of memory_schedtune (nvidia-smi level). The contexts of four generations were"
    yield "fitted on these rows; with a GPU left out its context is the median of the others. The Kepler card is not"
    yield "among those: its software is too old to be guessed from them, or they from it."
    yield ""
    yield "| | MAPE | median |"
    yield "|---|---|---|"
    line, named = line_errors(points), "the thesis' line through the measured batches 8 and 16, at 32 and 64"
    for what, errors in (
        ("accelerate estimate-memory (four times the model)", ape(points, lambda p: p.accelerate_bytes)),
        ("torchinfo's total size", ape(points, lambda p: p.torchinfo_bytes)),
        (named, np.array(line)),
        ("epochcast", ours),
    ):
        yield f"| {what} | {errors.mean():.1%} | {np.median(errors):.1%} |"
    yield ""
    yield "| GPU | MAPE, shipped context | left out: context | MAPE | inside the interval |"
    yield "|---|---|---|---|---|"
    for device, context, own in left_out(points):
        mean = ours[[p.device == device for p in points]].mean()
        inside = np.mean((own >= LOW_FACTOR) & (own <= HIGH_FACTOR))
        yield f"| {device} | {mean:.1%} | {context / MIB:,.0f} MiB | {np.abs(1 / own - 1).mean():.1%} | {inside:.0%} |"
    covered = np.mean((ratios >= LOW_FACTOR) & (ratios <= HIGH_FACTOR))
    yield ""
    yield f"With the shipped contexts {covered:.0%} of the points lie inside the interval (nominal 90 %)."
    yield ""


def _thesis(table: Sequence[tuple[str, int, int, LargestBatch]]) -> Iterator[str]:
    yield "## The thesis' table: largest batch on 16 GB"
    yield ""
    yield '"Conv3d" has no depth in the thesis. It is taken to be the ResNet of Hara et al. 2018 on 16 frames with'
    yield "34 layers: of 18, 34, 50 and 101 it came nearest to what ran. The workspace of large windows was chosen on"
    yield "AlexNet's row. So those two rows are fits, not tests."
    yield ""
    yield "| network | ran | thesis | error | safe | expected | error | limit |"
    yield "|---|---|---|---|---|---|---|---|"
    errors, theirs = [], []
    for name, estimate, actual, found in table:
        theirs.append(abs(estimate / actual - 1))
        errors.append(abs(found.expected / actual - 1))
        yield (
            f"| {name} | {actual} | {estimate} | {estimate / actual - 1:+.1%} | {found.safe} | {found.expected} | "
            f"{found.expected / actual - 1:+.1%} | {found.limit} |"
        )
    yield f"| mean | | | {np.mean(theirs):.1%} | | | {np.mean(errors):.1%} | |"
    yield ""


def _truth(counted: Sequence[Check], followed: Sequence[Check]) -> Iterator[str]:
    yield "## Against PyTorch's own counters"
    yield ""
    yield f"The most alive in a step at batch {TRUTH_BATCH}: real steps on a CPU by the profiler's allocator events,"
    yield "and the same step under `torch.distributed._tools.MemTracker`, which adds the gradients of residual branches"
    yield "out of place, where a device adds in place. Where weights outweigh activations a CPU's convolutions need"
    yield "scratch that is not forecast: resnet18 with momentum on 64 pixels at batch 8 was 14 % low. The table has"
    yield "larger images for that reason."
    yield ""
    yield "| network | optimizer | against real allocations | against MemTracker |"
    yield "|---|---|---|---|"
    pairs = sorted(zip(counted, followed, strict=True), key=lambda pair: -abs(pair[0].error))
    yield from (f"| {a.network} | {a.optimizer} | {a.error:+.2%} | {b.error:+.2%} |" for a, b in pairs)
