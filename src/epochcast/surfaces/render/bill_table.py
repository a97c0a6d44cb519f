"""The bill of a run: costs side by side, and what the difference comes from."""

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from epochcast.surfaces.render.table_parts import interval_cells, table
from epochcast.units import show_dollars, show_seconds

if TYPE_CHECKING:
    from epochcast.observe.store.run_bill import RunBill  # it imports SQLAlchemy


def bill(answer: "RunBill") -> RenderableType:
    """The sentence, the costs, the causes."""
    middle, around = interval_cells(answer.forecast_dollars, show_dollars)
    costs = [
        ("forecast, whole run", middle, around),
        ("forecast for what is done", show_dollars(answer.expected_dollars), ""),
        ("tracked: while it ran", show_dollars(answer.tracked_dollars), ""),
        ("billed: first to last report", show_dollars(answer.billed_dollars), ""),
    ]
    if answer.paid_dollars is not None:
        costs.append(("paid", show_dollars(answer.paid_dollars), ""))
    price = f"at {show_dollars(answer.dollars_per_hour)} per hour" + (
        f" ({answer.price_source})" if answer.price_source else ""
    )
    pieces: list[RenderableType] = [
        Text(answer.sentence, style="bold"),
        table(answer.name, "cost | > | ", costs, price),
    ]
    if answer.parts:
        rows = [
            (
                part.cause,
                f"{100 * part.fraction:+.1f} %",
                f"{'-' if part.dollars < 0 else '+'}{show_dollars(abs(part.dollars))}",
                f"{'-' if part.seconds < 0 else '+'}{show_seconds(abs(part.seconds))}",
            )
            for part in answer.parts
        ]
        pieces.append(table("Difference to the forecast", "cause | > of the forecast | > cost | > time", rows))
    return Group(*pieces)
