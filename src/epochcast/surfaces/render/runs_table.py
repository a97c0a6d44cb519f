"""Runs of the store: all as a table, one in detail."""

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.text import Text

from epochcast.observe.store.store_rows import Attempt, RunRow
from epochcast.surfaces.render.table_parts import table
from epochcast.units import show_seconds


def runs(where: str, rows: Sequence[RunRow]) -> RenderableType:
    """A row a run, the newest first."""
    if not rows:
        return Text(f"no runs in {where}; `epochcast track LOG --store` keeps one")
    columns = "run | job | where | > done | > a step | > remaining | > against forecast | state | last heard of"
    return table(f"runs in {where}", columns, map(_row, rows), drop=("job", "last heard of"))


def run(row: RunRow, attempts: Sequence[Attempt], observations: int) -> RenderableType:
    """Everything of one run."""
    lines = [
        ("job", row.job_name or ""),
        ("where", _where(row)),
        ("from", row.source or ""),
        ("state", row.state),
        ("begun", _clock(row.started_at_seconds)),
        ("last heard of", _clock(row.seen_at_seconds)),
        ("ended", _clock(row.ended_at_seconds)),
        ("done", _done(row)),
        ("step", f"{row.step:,.10g} of {row.total_steps:,.10g}" if row.step and row.total_steps else ""),
        ("a step", "" if row.step_seconds is None else show_seconds(row.step_seconds)),
        ("forecast of a step", _seconds(row.forecast_step_seconds)),
        ("against forecast", _against(row)),
        ("taken so far", _seconds(row.elapsed_seconds)),
        ("forecast in all", _seconds(row.forecast_total_seconds)),
        ("remaining", _remaining(row)),
        ("ends", "" if row.finish_at is None else row.finish_at.isoformat()),
        ("reports kept", f"{observations:,}"),
    ]
    pieces: list[RenderableType] = [table(row.name, "what | ", [line for line in lines if line[1]])]
    if len(attempts) > 1:
        cells = [
            (str(attempt.attempt), attempt.state, attempt.engine_id or "", _clock(attempt.started_at_seconds))
            for attempt in attempts
        ]
        pieces.append(table("attempts", "> attempt | state | engine's id | begun", cells))
    return Group(*pieces)


def _row(row: RunRow) -> tuple[str, ...]:
    return (
        row.name,
        row.job_name or "",
        _where(row),
        _done(row),
        _seconds(row.step_seconds),
        _remaining(row),
        _against(row),
        row.state,
        _clock(row.seen_at_seconds),
    )


def _where(row: RunRow) -> str:
    if row.place.device is None:
        return row.place.host or ""
    return f"{row.place.gpus} × {row.place.device}"


def _done(row: RunRow) -> str:
    return "" if row.fraction is None else f"{row.fraction:.1%}"


def _remaining(row: RunRow) -> str:
    left = row.remaining_seconds
    return "" if left is None else show_seconds(left.mid)


def _against(row: RunRow) -> str:
    ratio = row.against_forecast
    return "" if ratio is None else f"{ratio - 1:+.1%}"


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else show_seconds(seconds)


def _clock(at_seconds: float | None) -> str:
    return "" if at_seconds is None else f"{datetime.fromtimestamp(at_seconds, UTC).astimezone():%Y-%m-%d %H:%M}"
