"""Ways to share the GPUs of a post-training job, one a row."""

from rich.console import Group, RenderableType

from epochcast.decide.advise.placement_advice import GpuSplit, PlacementAdvice
from epochcast.surfaces.render.notes_view import Notes
from epochcast.surfaces.render.table_parts import INTERVAL, interval_cells, table
from epochcast.units import show_bytes, show_seconds


def placement_advice(answer: PlacementAdvice) -> RenderableType:
    """The advice on where a post-training job generates."""
    where = answer.device if answer.gpus == 1 else f"{answer.gpus} × {answer.device}"
    counts = f"{answer.prompts_per_step:,} prompts, {answer.responses_per_step:,} responses a step"
    title = f"{answer.algorithm} of {answer.model} on {where} · {counts}"
    rows = [
        (
            _name(split, answer.gpus),
            *interval_cells(split.step_seconds, show_seconds),
            f"{split.tokens_per_second_per_gpu:,.0f}",
            "" if split.in_flight is None else f"{split.in_flight:,}",
            f"{show_bytes(split.peak_bytes)}, {'fits' if split.fits else 'does not fit'}",
        )
        for split in answer.splits
    ]
    columns = (
        f"GPUs | > step | {INTERVAL} | > tokens/s per GPU | > in flight | memory of {show_bytes(answer.memory_bytes)}"
    )
    return Group(table(title, columns, rows), Notes(answer.warnings))


def _name(split: GpuSplit, gpus: int) -> str:
    if split.generation_gpus is None:
        return "colocated"
    way = ", asynchronous" if split.staleness else ""
    return f"{split.generation_gpus} generate, {gpus - split.generation_gpus} train{way}"
