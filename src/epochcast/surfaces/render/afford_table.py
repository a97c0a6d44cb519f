"""What can be trained for a budget: a row for each model and method."""

from rich.console import Group, RenderableType
from rich.text import Text

from epochcast.decide.afford.affordable import Affordable, AffordableRow, amount
from epochcast.decide.plan.plan_sentences import percent
from epochcast.surfaces.render.notes_view import Notes
from epochcast.surfaces.render.table_parts import table
from epochcast.units import show_count, show_dollars, show_seconds

_METHODS = {"full": "full", "lora": "LoRA"}


def afford(answer: Affordable) -> RenderableType:
    """A sentence, the table, notes."""
    limits = answer.limits
    sure = "" if limits.sure is None else f"each within the limits with a probability of {percent(limits.sure)} or more"
    columns = "model | parameters | method | > trains for | on | > time | > cost"
    rows = [_cells(row) for row in answer.rows]
    return Group(
        Text(answer.sentence, style="bold"),
        table("What the limits pay for", columns, rows, sure, drop=("parameters",)),
        Notes(answer.warnings),
    )


def _cells(row: AffordableRow) -> tuple[str, ...]:
    shown = row.candidate
    if shown is None:
        return row.model, "", _METHODS[row.method], "nothing", row.reason or "", "", ""
    parameters = shown.forecast.parameters
    return (
        row.model,
        "" if parameters is None else show_count(parameters),
        _METHODS[row.method],
        amount(row),
        shown.offer.title,
        show_seconds(shown.total_seconds.mid),
        show_dollars(shown.dollars.mid),
    )
