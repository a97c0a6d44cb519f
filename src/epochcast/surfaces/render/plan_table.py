"""What to rent: the recommendation, then the frontier by cost with one row per type and number of GPUs."""

from rich.console import Group, RenderableType
from rich.text import Text

from epochcast.decide.plan.candidate import Candidate
from epochcast.decide.plan.folding import sellers
from epochcast.decide.plan.gains import Gain
from epochcast.decide.plan.plan_answer import Plan
from epochcast.decide.plan.plan_sentences import percent
from epochcast.hardware.seller_names import seller_name
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


def plan(answer: Plan, *, all_rows: bool = False, explain: bool = False) -> RenderableType:
    """The recommendation, a row for each type and number of GPUs, notes; why others lost where `explain` asks."""
    rows = list(answer.unfolded) if all_rows else _some_rows(answer)
    pieces: list[RenderableType] = [Text(answer.sentence, style="bold")]
    chosen = answer.chosen
    if chosen is not None:
        where = f"{chosen.offer.where}, {show_dollars(chosen.offer.dollars_per_hour)} per hour"
        pieces.append(Text(f"rent: {chosen.offer.name} ({where})"))
    if answer.spot_sentence:
        pieces.append(Text(answer.spot_sentence))
    pieces += [Text(f"not {runner.candidate.offer.title}: {runner.why}") for runner in answer.runners_up if explain]
    if rows:
        pieces.append(_table(answer, rows))
    pieces += [Text(_gain_text(gain)) for gain in answer.gains]
    if explain:
        pieces += assumed(*(row.forecast for row in rows))
        pieces += [Text(answer.certainty)] if answer.certainty else []
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
        "in time": answer.limits.deadline_seconds is not None,
        "in budget": answer.limits.budget_dollars is not None,
    }
    job = answer.job
    title = f"{answer.model}{f' on {job.dataset}' if job.dataset else ''}, {answer.amount}"
    title += "" if is_shown["batch"] else f" · batch {rows[0].global_batch:,}"
    cells = [_cells(answer, row) for row in rows]
    headings = [name for name in cells[0] if is_shown.get(name, True)]
    columns = " | ".join(name if name in _TEXT_COLUMNS else f"> {name}" for name in headings)
    caption = _caption(answer, rows)
    rows_shown = [[row[name] for name in headings] for row in cells]
    return table(
        header([title], *(row.forecast for row in rows)),
        columns,
        rows_shown,
        caption,
        drop=("machine", "batch", "cost up to", "up to"),
    )


def _caption(answer: Plan, rows: list[Candidate]) -> str:
    """What the columns mean, and where the rest is."""
    parts = [f"up to: the high end of the {INTERVAL}", *(["▸ chosen"] if answer.chosen else [])]
    hidden = len(answer.unfolded) - len(rows)
    return "; ".join([*parts, *([f"--all shows {hidden} more offers"] if hidden > 0 else [])])


_TEXT_COLUMNS = ("GPUs", "seller", "machine", "strategy", "with")


def _cells(answer: Plan, row: Candidate) -> dict[str, str]:
    offer = row.offer
    others = sellers(row, answer.candidates) - 1
    odds = (answer.limits.deadline_probability(row), answer.limits.budget_probability(row))
    return {
        "GPUs": ("▸ " if row == answer.chosen else "")
        + offer.gpus_title
        + (f" ({verdict_text(row.forecast)})" if row.forecast.memory_verdict == TIGHT else ""),
        "seller": seller_name(offer.instance.cloud) + (f" + {others}" if others else ""),
        "machine": offer.instance.name,
        "strategy": row.strategy,
        "with": " ".join(f"{name} {value}" if name == "augment" else value for name, value in row.variant),
        "batch": f"{row.global_batch:,}",
        "epochs": f"{row.epochs:,.4g}" if row.epochs != int(row.epochs) else f"{int(row.epochs):,}",
        "job": show_seconds(row.total_seconds.mid),
        "up to": show_seconds(row.total_seconds.high),
        "cost": show_dollars(row.dollars.mid),
        "cost up to": show_dollars(row.dollars.high),
        "in time": "" if odds[0] is None else percent(odds[0]),
        "in budget": "" if odds[1] is None else percent(odds[1]),
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
