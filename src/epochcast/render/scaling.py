"""One job at several numbers of GPUs."""

from rich.console import Group, RenderableType
from rich.text import Text

from epochcast.forecasting.scaling import Row, Scaling
from epochcast.render.table import Fitting, rate, table
from epochcast.units import show_dollars, show_seconds


def scaling(answer: Scaling) -> RenderableType:
    """All rows in one table; where that is too wide or collectives stand side by side, one per regime. The knees."""
    regimes = list(dict.fromkeys(row.case.regime for row in answer.rows))
    is_mixed = len({series.allreduce for series in answer.series if series.rows[0].case.allreduce}) > 1
    apart = Group(*(_regime_table(answer, [regime], is_mixed) for regime in regimes))
    pieces: list[RenderableType] = [apart if is_mixed else Fitting(_regime_table(answer, regimes, is_mixed), apart)]
    pieces += [Text(series.sentence, style="bold") for series in answer.series if len(series.rows) > 1]
    pieces += [Text(f"note: {warning}", style="dim") for warning in answer.warnings]
    return Group(*pieces)


def _regime_table(answer: Scaling, regimes: list[str], is_mixed: bool) -> RenderableType:
    first = answer.rows[0].forecast
    title = f"{first.model} on {first.device} · {first.precision}"
    rows = [row for row in answer.rows if row.case.regime in regimes]
    return _table(f"{title} · {' and '.join(regimes)} scaling", rows, is_mixed)


def _table(title: str, rows: list[Row], is_mixed: bool) -> RenderableType:
    """Columns that say nothing are left out: one box everywhere, one regime, no data set, no price."""
    shown = {
        "scaling": len({row.case.regime for row in rows}) > 1,
        "boxes": any(row.case.nodes > 1 for row in rows),
        "per GPU": not is_mixed,
        "speed-up": not is_mixed,
        "all-reduce": is_mixed,
        "job": any(row.forecast.total_seconds for row in rows),
        "cost": any(row.forecast.dollars for row in rows),
    }
    cells = [_cells(row) for row in rows]
    headings = [name for name in cells[0] if shown.get(name, True)]
    columns = " | ".join(name if name in _TEXTS else f"> {name}" for name in headings)
    return table(title, columns, [[row[name] for name in headings] for row in cells])


_TEXTS = ("scaling",)


def _cells(row: Row) -> dict[str, str]:
    answer, step = row.forecast, row.forecast.step_seconds.mid
    total, dollars = answer.total_seconds, answer.dollars
    return {
        "scaling": row.case.regime,
        "GPUs": f"{row.case.gpus:,}" + ("" if answer.fits else " (too large)"),
        "boxes": f"{row.case.nodes:,}",
        "batch": f"{answer.global_batch:,}",
        "per GPU": f"{answer.batch_per_gpu:,}",
        "all-reduce": row.allreduce if row.case.gpus > 1 else "",
        "step": show_seconds(step),
        "waiting": f"{row.exposed_comm_seconds / step:.0%}",
        "samples/s": rate(answer.samples_per_second),
        "job": show_seconds(total.mid) if total else "unknown",
        "cost": show_dollars(dollars.mid) if dollars else "unknown",
        "speed-up": f"{rate(row.speedup)}×",
        "ideal": f"{row.efficiency:.0%}",
    }
