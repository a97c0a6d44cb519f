"""Runs of the store: all as a table, one in detail."""

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.text import Text

from epochcast.observe.store.store_rows import Attempt, RunRow
from epochcast.surfaces.render.table_parts import table
from epochcast.units import show_seconds


def runs(where: str, found: Sequence[RunRow]) -> RenderableType:
    """A row a run, the newest first."""
    if not found:
        return Text(f"no runs in {where}; `epochcast track LOG --store` keeps one")
    columns = "run | job | where | > done | > a step | > remaining | > against forecast | state | last heard of"
    return table(f"runs in {where}", columns, map(_row, found), drop=("job", "last heard of"))


def run(found: RunRow, attempts: Sequence[Attempt], observations: int) -> RenderableType:
    """Everything of one run."""
    lines = [
        ("job", found.job_name or ""),
        ("where", _where(found)),
        ("from", found.source or ""),
        ("state", found.state),
        ("begun", _clock(found.started_at_seconds)),
        ("last heard of", _clock(found.seen_at_seconds)),
        ("ended", _clock(found.ended_at_seconds)),
        ("done", _done(found)),
        ("step", f"{found.step:,.10g} of {found.total_steps:,.10g}" if found.step and found.total_steps else ""),
        ("a step", "" if found.step_seconds is None else show_seconds(found.step_seconds)),
        ("forecast of a step", _seconds(found.forecast_step_seconds)),
        ("against forecast", _against(found)),
        ("taken so far", _seconds(found.elapsed_seconds)),
        ("forecast in all", _seconds(found.forecast_total_seconds)),
        ("remaining", _remaining(found)),
        ("ends", "" if found.finish_at is None else found.finish_at.isoformat()),
        ("reports kept", f"{observations:,}"),
    ]
    pieces: list[RenderableType] = [table(found.name, "what | ", [line for line in lines if line[1]])]
    if len(attempts) > 1:
        cells = [(str(one.attempt), one.state, one.engine_id or "", _clock(one.started_at_seconds)) for one in attempts]
        pieces.append(table("attempts", "> attempt | state | engine's id | begun", cells))
    return Group(*pieces)


def _row(found: RunRow) -> tuple[str, ...]:
    return (
        found.name,
        found.job_name or "",
        _where(found),
        _done(found),
        _seconds(found.step_seconds),
        _remaining(found),
        _against(found),
        found.state,
        _clock(found.seen_at_seconds),
    )


def _where(found: RunRow) -> str:
    if found.place.device is None:
        return found.place.host or ""
    return f"{found.place.gpus} × {found.place.device}"


def _done(found: RunRow) -> str:
    return "" if found.fraction is None else f"{found.fraction:.1%}"


def _remaining(found: RunRow) -> str:
    left = found.remaining_seconds
    return "" if left is None else show_seconds(left.mid)


def _against(found: RunRow) -> str:
    ratio = found.against_forecast
    return "" if ratio is None else f"{ratio - 1:+.1%}"


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else show_seconds(seconds)


def _clock(at_seconds: float | None) -> str:
    return "" if at_seconds is None else f"{datetime.fromtimestamp(at_seconds, UTC).astimezone():%Y-%m-%d %H:%M}"
