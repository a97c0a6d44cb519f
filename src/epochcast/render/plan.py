"""What to rent: the frontier by cost, what is chosen, and why ways are none."""

from rich.console import Group, RenderableType
from rich.text import Text

from epochcast.planning.answer import Plan
from epochcast.planning.candidate import Candidate
from epochcast.render.table import INTERVAL, table
from epochcast.units import show_dollars, show_seconds

REASONS = 3
"""So many reasons are shown in a terminal; --json has them all."""


def plan(answer: Plan) -> RenderableType:
    """The frontier with the chosen one, which may lie behind it, marked; a sentence; notes."""
    rows = sorted({*answer.frontier, *((answer.chosen,) if answer.chosen else ())}, key=lambda row: row.dollars.mid)
    pieces: list[RenderableType] = []
    if rows:
        pieces.append(_table(answer, rows))
    pieces.append(Text(answer.sentence, style="bold"))
    pieces.append(Text(_counted(answer), style="dim"))
    pieces += [Text(f"note: {warning}", style="dim") for warning in answer.warnings]
    return Group(*pieces)


def _table(answer: Plan, rows: list[Candidate]) -> RenderableType:
    """Columns that say nothing are left out: one batch, one strategy."""
    shown = {
        "strategy": len({row.strategy for row in rows} - {"single"}) > 1,
        "batch": len({row.global_batch for row in rows}) > 1,
    }
    job = answer.job
    title = f"{answer.model}{f' on {job.dataset}' if job.dataset else ''}, {_epochs(job.epochs)}"
    title += "" if shown["batch"] else f" · batch {rows[0].global_batch:,}"
    cells = [_cells(row, row == answer.chosen) for row in rows]
    headings = [name for name in cells[0] if shown.get(name, True)]
    columns = " | ".join(name if name in _TEXTS else f"> {name.strip()}" for name in headings)
    caption = f"up to: the high end of the {INTERVAL}" + ("; ▸ chosen" if answer.chosen else "")
    kept = [[row[name] for name in headings] for row in cells]
    return table(f"{title} · {job.precision}", columns, kept, caption)


_TEXTS = ("offer", "cloud", "GPUs", "strategy")


def _cells(row: Candidate, is_chosen: bool) -> dict[str, str]:
    offer = row.offer
    return {
        "offer": f"▸ {offer.name}" if is_chosen else offer.name,
        "cloud": offer.instance.cloud,
        "GPUs": f"{offer.gpus} × {offer.instance.device}",
        "strategy": row.strategy,
        "batch": f"{row.global_batch:,}",
        "job": show_seconds(row.total_seconds.mid),
        "up to": show_seconds(row.total_seconds.high),
        "cost": show_dollars(row.dollars.mid),
        "up to ": show_dollars(row.dollars.high),
    }


def _epochs(epochs: int) -> str:
    return f"{epochs} epoch{'s' * (epochs > 1)}"


def _counted(answer: Plan) -> str:
    """How many ways there were, and why some are none."""
    reasons = [f"{count} × {reason}" for reason, count in answer.reasons.items()]
    shown = [*reasons[:REASONS], *([f"{len(reasons) - REASONS} more reasons"] if len(reasons) > REASONS else [])]
    behind = len(answer.candidates) - len(answer.frontier)
    counted = f"{answer.considered} ways: {len(answer.frontier)} on the frontier, {behind} behind it"
    return f"{counted}, {len(answer.refusals)} that cannot be" + (f" ({'; '.join(shown)})" if shown else "")
