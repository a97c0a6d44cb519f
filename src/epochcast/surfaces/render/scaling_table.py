"""One job at several numbers of GPUs."""

from rich.console import Group, RenderableType
from rich.text import Text

from epochcast.decide.scaling import Scaling, ScalingRow
from epochcast.predict.memory.verdict import DOES_NOT_FIT, TIGHT
from epochcast.surfaces.render.answer_header import assumed, header
from epochcast.surfaces.render.notes_view import Notes
from epochcast.surfaces.render.table_parts import INTERVAL, WideOrNarrow, interval_cells, rate, speed, table
from epochcast.units import show_dollars, show_seconds


def scaling(answer: Scaling) -> RenderableType:
    """All rows in one table; a table per regime where that is too wide or all-reduce algorithms are compared. Then the
    number of GPUs from which more of them help little.
    """
    regimes = list(dict.fromkeys(row.case.regime for row in answer.rows))
    is_comparing = len({series.allreduce for series in answer.series if series.rows[0].case.allreduce}) > 1
    per_regime = Group(*(_regime_table(answer, [regime], is_comparing) for regime in regimes))
    pieces: list[RenderableType] = [
        per_regime if is_comparing else WideOrNarrow(_regime_table(answer, regimes, is_comparing), per_regime)
    ]
    pieces += assumed(*(row.forecast for row in answer.rows))
    pieces += [Text(series.sentence, style="bold") for series in answer.series if len(series.rows) > 1]
    pieces.append(Notes(answer.warnings))
    return Group(*pieces)


def _regime_table(answer: Scaling, regimes: list[str], is_comparing: bool) -> RenderableType:
    first = answer.rows[0].forecast
    forecasts = [row.forecast for row in answer.rows]
    title = header([f"{first.model} on {first.device}"], *forecasts)
    rows = [row for row in answer.rows if row.case.regime in regimes]
    return _table(f"{title} · {' and '.join(regimes)} scaling", rows, is_comparing)


def _table(title: str, rows: list[ScalingRow], is_comparing: bool) -> RenderableType:
    """Columns with a single value are left out: nodes, regime, and job and cost where they are not known."""
    is_shown = {
        "scaling": len({row.case.regime for row in rows}) > 1,
        "nodes": any(row.case.nodes > 1 for row in rows),
        "per GPU": not is_comparing,
        "speed-up": not is_comparing,
        "all-reduce": is_comparing,
        "MFU": all(row.forecast.tokens_per_second and row.forecast.mfu for row in rows),
        **dict.fromkeys(("job", _JOB_INTERVAL), any(row.forecast.total_seconds for row in rows)),
        "cost": any(row.forecast.dollars for row in rows),
    }
    cells = [_cells(row) for row in rows]
    headings = [name for name in cells[0] if is_shown.get(name, True)]
    columns = " | ".join(name if name in _TEXT_COLUMNS else f"> {name}" for name in headings)
    return table(title, columns, [[row[name] for name in headings] for row in cells], drop=_DROPPED)


_TEXT_COLUMNS = ("scaling",)
_JOB_INTERVAL = f"job, {INTERVAL}"
# The first to go where a terminal is narrow; throughput follows from step and batch.
_DROPPED = (
    _JOB_INTERVAL,
    "per GPU",
    "waiting",
    "speed-up",
    "nodes",
    "samples/s",
    "images/s",
    "tokens/s",
    "batch",
    "MFU",
)
_MEMORY_MARKS = {TIGHT: " (tight)", DOES_NOT_FIT: " (too large)"}


def _cells(row: ScalingRow) -> dict[str, str]:
    answer, step = row.forecast, row.forecast.step_seconds.mid
    total, dollars = answer.total_seconds, answer.dollars
    throughput, unit = speed(answer.samples_per_second, answer.fed, answer.tokens_per_sample)
    return {
        "scaling": row.case.regime,
        "GPUs": f"{row.case.gpus:,}" + _MEMORY_MARKS.get(answer.memory_verdict or "", ""),
        "nodes": f"{row.case.nodes:,}",
        "batch": f"{answer.global_batch:,}",
        "per GPU": f"{answer.batch_per_gpu:,}",
        "all-reduce": row.allreduce if row.case.gpus > 1 else "",
        "step": show_seconds(step),
        INTERVAL: interval_cells(answer.step_seconds, show_seconds)[1],
        "waiting": f"{row.exposed_comm_seconds / step:.0%}",
        unit: throughput,
        "MFU": f"{answer.mfu or 0:.0%}",
        "job": show_seconds(total.mid) if total else "unknown",
        _JOB_INTERVAL: interval_cells(total, show_seconds)[1] if total else "",
        "cost": show_dollars(dollars.mid) if dollars else "unknown",
        "speed-up": f"{rate(row.speedup)}×",
        "efficiency": f"{row.efficiency:.0%}",
    }
