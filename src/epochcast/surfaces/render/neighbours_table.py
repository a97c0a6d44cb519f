"""Measured public runs under a forecast."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from epochcast.measure.neighbours.nearest_runs import Neighbour
from epochcast.surfaces.render.table_parts import table
from epochcast.units import show_seconds


def with_neighbours(drawing: RenderableType, nearest: Sequence[Neighbour]) -> RenderableType:
    """A drawing with the runs below it; as it is where there are none."""
    if not nearest:
        return drawing
    headings = "model | GPU | > batch per GPU | precision | > measured | > forecast | > ratio | source"
    rows = [_row(each) for each in nearest]
    caption = "seconds per step; ratio: measured over forecast. Rows may have been used to fit the cost model."
    return Group(drawing, Text(), table("measured public runs nearest to this job", headings, rows, caption))


def _row(each: Neighbour) -> tuple[str, ...]:
    return (
        each.model,
        each.device if each.gpus == 1 else f"{each.gpus} × {each.device}",
        f"{each.batch_per_gpu:,}",
        each.precision,
        show_seconds(each.measured_seconds),
        show_seconds(each.forecast_seconds.mid),
        f"{each.ratio:.2f}",
        each.source,
    )
