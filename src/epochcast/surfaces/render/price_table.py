"""What an update of prices changed."""

from rich.console import Group, RenderableType
from rich.text import Text

from epochcast.hardware.price_update import PriceUpdate
from epochcast.surfaces.render.table_parts import table

MOST_CHANGES = 8
"""So many changes are shown in a terminal; --json has them all."""


def price_update(answer: PriceUpdate) -> RenderableType:
    """The counts, and the largest changes."""
    days = answer.oldest if answer.oldest == answer.newest else f"{answer.oldest} to {answer.newest}"
    clouds = len(answer.files)
    counts = (
        f"{answer.instances} machines of {clouds} cloud{'s' * (clouds > 1)} from {answer.source}, prices of {days}: "
        f"{answer.cheaper} cheaper, {answer.dearer} dearer, {answer.new} new, {answer.unchanged} unchanged, "
        f"{answer.replaced} no longer listed"
    )
    pieces: list[RenderableType] = [Text(counts)]
    moved = [change for change in answer.changes if change.before_dollars_per_hour is not None][:MOST_CHANGES]
    if moved:
        rows = [
            (
                change.name,
                change.cloud,
                f"{change.gpus} × {change.device}",
                f"${change.before_dollars_per_hour:.2f}",
                f"${change.dollars_per_hour:.2f}",
                f"{change.ratio - 1:+.0%}",
            )
            for change in moved
        ]
        pieces.append(table("Largest changes, per hour", "machine | cloud | GPUs | > before | > now | > change", rows))
    if answer.skipped:
        pieces.append(Text(f"{len(answer.skipped)} rows are no offer: --json has the reasons", style="dim"))
    return Group(*pieces)
