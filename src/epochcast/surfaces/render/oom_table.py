"""Out of memory: what filled the card, and what would fit."""

from rich.console import Group, RenderableType
from rich.text import Text

from epochcast.observe.oom.oom_diagnosis import PLACES, OomDiagnosis
from epochcast.surfaces.render.answer_header import header, place
from epochcast.surfaces.render.memory_table import remedies_table
from epochcast.surfaces.render.notes_view import Notes
from epochcast.surfaces.render.table_parts import table
from epochcast.units import show_bytes

MOST_REMEDIES = 8
"""One screen; `--json` has all."""


def oom(answer: OomDiagnosis) -> RenderableType:
    """The part that filled the card, all parts, settings to try first, and remedies."""
    message, forecast = answer.message, answer.forecast
    pieces: list[RenderableType] = [
        Text(f"filled by: {answer.culprit or 'nothing says what'} ({answer.evidence})", style="bold"),
        *_moment(answer),
        Text(),
    ]
    if forecast is not None:
        pieces.append(Text(header([place(forecast), f"batch {forecast.global_batch}"], forecast), style="bold"))
    said = (
        ("asked for", message.tried_bytes),
        ("missing", answer.shortfall_bytes),
        ("the card has", message.capacity_bytes),
    )
    rows = [(part.name, show_bytes(part.bytes), "forecast" if part.is_forecast else "") for part in answer.parts]
    rows += [(name, show_bytes(size), "") for name, size in said if size is not None]
    pieces.append(table("out of memory", "| > bytes |", rows))
    if answer.asked_for is not None:
        pieces.append(Text(f"the tensor that was asked for has the size of {answer.asked_for}"))
    pieces += [Text(f"try first: {each.setting} ({each.reason})") for each in answer.settings]
    if forecast is not None:
        pieces += [Text(), remedies_table(answer.remedies[:MOST_REMEDIES], "nothing that was tried")]
    else:
        pieces.append(Text("Add the job for remedies: epochcast oom MESSAGE MODEL --device D --batch B", style="dim"))
    pieces.append(Notes(answer.warnings))
    return Group(*pieces)


def _moment(answer: OomDiagnosis) -> list[RenderableType]:
    """When it ran out, where the evidence does not say so."""
    if answer.moment is None or PLACES[answer.moment] in answer.evidence:
        return []
    source = "" if answer.message.moment else " (forecast: the message has no traceback)"
    return [Text(f"ran out in {PLACES[answer.moment]}{source}")]
