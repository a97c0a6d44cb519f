"""The page of the study, from its results; worst first."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from epochcast.predict.memory.largest_batch import LargestBatch
from epochcast.predict.memory.verdict import HIGH_FACTOR, LOW_FACTOR
from studies.memory.run import (
    KEPLER,
    KEPLER_CONTEXT_BYTES,
    MIB,
    TRACKED_SIZE,
    TRUTH_BATCH,
    Bracket,
    Point,
    ape,
    left_out,
    line_errors,
    with_context,
)
from studies.memory.truth import CHECKED_OPTIMIZERS, Check


def page(
    points: Sequence[Point],
    table: Sequence[tuple[str, int, int, LargestBatch]],
    brackets: Sequence[Bracket],
    failed: Sequence[str],
    counted: Sequence[Check],
    followed: Sequence[Check],
    detectors: Iterable[str] = (),
) -> str:
    """Markdown; `detectors` are the lines of their section."""
    lines = [
        "# Memory against measurements",
        "",
        "Written by `python -m studies memory`. How the forecast is made: [Peak memory](memory.md).",
        "",
        "## What is not scored",
        "",
        "Of the 617 rows of detectors those whose network has no builder "
        "(deformable convolution, HRNet, Swin, DETR …). "
        "Rows of litgpt on several GPUs, with other adapters than LoRA, or without a batch. "
        "Captures that failed in the sample below: "
        f"{len(failed)}" + (f" ({'; '.join(failed)})." if failed else "."),
        "",
        *detectors,
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
    yield "Sums of gradients are counted as since PyTorch 2.0, though these rows are older: what that misses is in the"
    yield "factors of safe, expected and limit, which were chosen on rows of this table."
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
    yield f"{len(points)} points of memory_schedtune (nvidia-smi level). Their script is not published. The rows told:"
    yield "momentum with weight decay in PyTorch before 2.0 (gradients kept, sums made beside their parts), no"
    yield "workspace above 2 GiB on Turing (three rows), and the contexts of four generations. So the first column"
    yield "below is a fit. With a GPU left out its context is that of a line in compute units through the others, as"
    yield "for any generation that nobody measured. The Kepler card is not among those others: its software is older."
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
    kepler = [p for p in points if p.device == KEPLER]
    context, own = with_context(kepler, KEPLER_CONTEXT_BYTES)
    yield ""
    error = np.abs(1 / own - 1).mean()
    yield f"The middle of a published range for Kepler (200 to 700 MB), {context / MIB:,.0f} MiB, gives the {KEPLER} a"
    yield f"MAPE of {error:.1%}; the fitted context was known when the middle was taken: no independent test."
    yield "xMem (its paper states a median of 3.6 %) is not scored: none of its rows are among the data."
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
    yield f"The most alive in a step at batch {TRUTH_BATCH}. Real steps on the processors of one host, counted by the"
    yield "profiler's allocator events; oneDNN's copies are in the forecast. Left over: a processor's dropout keeps a"
    yield "mask of four bytes a number, where CUDA's, which is forecast, keeps one (SqueezeNet). Which kernels oneDNN"
    yield "takes, and how much scratch, goes by the processor: on another host (AVX2 alone) ResNet-50 held 8.4 % more"
    yield "than forecast, RegNet 1.1 % more, the others as here."
    yield ""
    yield from _errors(counted)
    yield ""
    yield f"The same on `meta` at {TRACKED_SIZE} pixels, followed by `torch.distributed._tools.MemTracker`. It is a"
    yield "dispatch mode, under which autograd sums gradients beside their parts; so does the forecast here"
    yield "(`lifetimes(…, sums_in_place=False)`)."
    yield ""
    yield from _errors(followed)


def _errors(checks: Sequence[Check]) -> Iterator[str]:
    """Every network with its errors by optimizer, worst first."""
    worst = {check.network: 0.0 for check in checks}
    for check in checks:
        worst[check.network] = max(worst[check.network], abs(check.error))
    names = sorted(worst, key=lambda name: (-worst[name], name))
    yield f"| network | {' | '.join(CHECKED_OPTIMIZERS)} |"
    yield "|---|" + "---|" * len(CHECKED_OPTIMIZERS)
    found = {(c.network, c.optimizer): c.error for c in checks}
    for name in names:
        yield f"| {name} | {' | '.join(f'{found[name, optimizer]:+.3%}' for optimizer in CHECKED_OPTIMIZERS)} |"
