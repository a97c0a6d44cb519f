"""The memory of a step, and what would make it fit."""

from collections.abc import Sequence

from rich.console import Group, RenderableType

from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.remedies import Remedy
from epochcast.predict.memory.device_context import usable_bytes
from epochcast.predict.memory.verdict import DOES_NOT_FIT
from epochcast.surfaces.render.table_parts import INTERVAL, interval_cells, table
from epochcast.units import show_bytes

SUREST = 0.99
"""Nothing surer is shown."""

_PARTS = {
    "parameters": "parameters",
    "gathered": "parameters gathered from other GPUs",
    "gradients": "gradients",
    "optimizer_state": "optimizer state",
    "activations": "activations kept for backward",
    "temporaries": "temporaries",
    "inputs": "inputs",
    "autocast_copies": "half-precision copies of weights",
    "buffers": "buffers",
    "workspace": "convolution workspace",
    "buckets": "gradient buckets",
    "fragmentation": "allocator: rounding, fragmentation",
    "communication": "buffers of NCCL",
    "context": "context and libraries",
}


def memory(answer: Forecast) -> RenderableType:
    """The peak memory of a training step, by kind of content."""
    device, peak_bytes = answer.details.placement.device, answer.peak_bytes
    assert peak_bytes is not None
    rows = [
        (_PARTS[name], show_bytes(size), f"{size / peak_bytes.mid:.0%}", "")
        for name, size in answer.peak_breakdown.items()
        if size
    ]
    expected, interval = interval_cells(peak_bytes, show_bytes)
    rows += [
        ("total", expected, "", interval),
        (f"{device.name} has", show_bytes(usable_bytes(device)), "", ""),
    ]
    pieces: list[RenderableType] = [
        table(
            f"memory of a training step at batch {answer.batch_per_gpu}: {verdict_text(answer)}",
            f"| > bytes | > share | {INTERVAL}",
            rows,
            caption=f"the peak is in {answer.peak_op}",
        )
    ]
    if not answer.fits:
        pieces.append(remedies(answer))
    return Group(*pieces)


def verdict_text(answer: Forecast) -> str:
    """Whether the memory of a step fits and with which probability, loud where it does not."""
    word = answer.memory_verdict or ""
    return verdict_words(word.upper() if word == DOES_NOT_FIT else word, answer.fits_probability)


def verdict_words(verdict: str, probability: float | None) -> str:
    """fits (97 %)"""
    return verdict if probability is None else f"{verdict} ({shown_probability(probability)})"


def shown_probability(probability: float) -> str:
    """In whole percents, never quite sure."""
    if probability > SUREST:
        return f"> {SUREST:.0%}".replace("%", " %")
    if probability < 1 - SUREST:
        return f"< {1 - SUREST:.0%}".replace("%", " %")
    return f"{probability:.0%}".replace("%", " %")


def remedies(answer: Forecast) -> RenderableType:
    """What would make a step fit, one change a row, the cheapest first."""
    memory = answer.details.memory
    none = (
        "nothing that was tried" if memory is None or not memory.fits else "try a smaller batch: past jobs needed more"
    )
    return remedies_table(answer.remedies(), none)


def remedies_table(each: Sequence[Remedy], none: str) -> RenderableType:
    """Remedies as they come; `none` stands where there are none."""
    rows = [
        (
            remedy.change,
            remedy.value,
            _time_lost(remedy),
            show_bytes(remedy.peak_bytes.mid),
            verdict_words(remedy.verdict, remedy.fits_probability),
            remedy.device,
            remedy.effort,
        )
        for remedy in each
    ]
    return table(
        "what would fit",
        "change | to | > time per sample | > peak | | on | ",
        rows or [(none, "", "", "", "", "", "")],
        caption="time per sample: over the job as asked, if it fitted" if rows else None,
    )


def _time_lost(remedy: Remedy) -> str:
    return f"{remedy.time_factor - 1:+.0%}"
