"""What to rent: the frontier by cost, the choice, and why configurations cannot run the job."""

from rich.console import Group, RenderableType
from rich.text import Text

from epochcast.decide.plan.candidate import Candidate
from epochcast.decide.plan.gains import Gain
from epochcast.decide.plan.plan_answer import Plan
from epochcast.predict.memory.verdict import TIGHT
from epochcast.surfaces.render.answer_header import assumed, header
from epochcast.surfaces.render.memory_table import verdict_text
from epochcast.surfaces.render.notes_view import Notes
from epochcast.surfaces.render.table_parts import INTERVAL, table
from epochcast.units import show_dollars, show_seconds

MOST_REASONS = 3
"""This many reasons are shown in a terminal; --json has them all."""


MOST_ROWS = 8
"""So many configurations are shown in a terminal; `--all` and --json have them all."""


def plan(answer: Plan, *, all_rows: bool = False) -> RenderableType:
    """The frontier and the chosen configuration, which may lie behind it; a sentence; notes."""
    rows = list(answer.shown) if all_rows else _some_rows(answer)
    pieces: list[RenderableType] = []
    if rows:
        pieces += [_table(answer, rows), *assumed(*(row.forecast for row in rows))]
    hidden = len(answer.shown) - len(rows)
    if hidden:
        pieces.append(Text(f"{hidden} more row{'s' if hidden > 1 else ''}: --all", style="dim"))
    pieces.append(Text(answer.sentence, style="bold"))
    pieces += [Text(_gain_text(gain)) for gain in answer.gains]
    if answer.certainty:
        pieces.append(Text(answer.certainty))
    pieces.append(Text(_count_text(answer), style="dim"))
    pieces.append(Notes(answer.warnings))
    return Group(*pieces)


def _some_rows(answer: Plan) -> list[Candidate]:
    """The first, the last, the chosen one, and others evenly between."""
    rows = answer.shown
    if len(rows) <= MOST_ROWS:
        return list(rows)
    places = {round(place * (len(rows) - 1) / (MOST_ROWS - 1)) for place in range(MOST_ROWS)}
    chosen = next((place for place, row in enumerate(rows) if row == answer.chosen), None)
    if chosen is not None and chosen not in places:
        places.remove(min(places - {0, len(rows) - 1}, key=lambda place: abs(place - chosen)))
        places.add(chosen)
    return [rows[place] for place in sorted(places)]


def _table(answer: Plan, rows: list[Candidate]) -> RenderableType:
    """Columns with a single value are left out: batch, strategy."""
    is_shown = {
        "strategy": len({row.strategy for row in rows} - {"single"}) > 1,
        "batch": len({row.global_batch for row in rows}) > 1,
        "epochs": len({row.epochs for row in rows}) > 1 or answer.counts_epochs,
        "with": any(row.variant for row in rows),
    }
    job = answer.job
    title = f"{answer.model}{f' on {job.dataset}' if job.dataset else ''}, {answer.amount}"
    title += "" if is_shown["batch"] else f" · batch {rows[0].global_batch:,}"
    cells = [_cells(row, row == answer.chosen) for row in rows]
    headings = [name for name in cells[0] if is_shown.get(name, True)]
    columns = " | ".join(name if name in _TEXT_COLUMNS else f"> {name.strip()}" for name in headings)
    caption = f"up to: the high end of the {INTERVAL}" + ("; ▸ chosen" if answer.chosen else "")
    rows_shown = [[row[name] for name in headings] for row in cells]
    return table(
        header([title], *(row.forecast for row in rows)), columns, rows_shown, caption, drop=("cloud", "batch")
    )


_TEXT_COLUMNS = ("offer", "cloud", "GPUs", "strategy", "with")


def _cells(row: Candidate, is_chosen: bool) -> dict[str, str]:
    offer = row.offer
    return {
        "offer": f"▸ {offer.name}" if is_chosen else offer.name,
        "cloud": offer.instance.cloud,
        "GPUs": f"{offer.gpus} × {offer.instance.device}"
        + (f" ({verdict_text(row.forecast)})" if row.forecast.memory_verdict == TIGHT else ""),
        "strategy": row.strategy,
        "with": " ".join(f"{name} {value}" if name == "augment" else value for name, value in row.variant),
        "batch": f"{row.global_batch:,}",
        "epochs": f"{row.epochs:,.4g}" if row.epochs != int(row.epochs) else f"{int(row.epochs):,}",
        "job": show_seconds(row.total_seconds.mid),
        "up to": show_seconds(row.total_seconds.high),
        "cost": show_dollars(row.dollars.mid),
        "up to ": show_dollars(row.dollars.high),
    }


def _gain_text(gain: Gain) -> str:
    """What one change brings."""
    change = f"{gain.option} {gain.value}"
    if gain.seconds_ratio is None or gain.dollars_ratio is None:
        return f"{change}: {gain.reason}"
    return f"{change}: {gain.seconds_ratio - 1:+.0%} time, {gain.dollars_ratio - 1:+.0%} cost"


def _count_text(answer: Plan) -> str:
    """How many configurations there were, and why some cannot run the job."""
    reasons = [f"{count} × {reason}" for reason, count in answer.reasons.items()]
    shown = [
        *reasons[:MOST_REASONS],
        *([f"{len(reasons) - MOST_REASONS} more reasons"] if len(reasons) > MOST_REASONS else []),
    ]
    dominated = len(answer.candidates) - len(answer.frontier)
    counts = f"{answer.considered} configurations: {len(answer.frontier)} on the frontier, {dominated} dominated"
    return f"{counts}, {len(answer.refusals)} cannot run the job" + (f" ({'; '.join(shown)})" if shown else "")
