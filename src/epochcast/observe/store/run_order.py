"""Orders in which runs are listed, and which of them are silent, as SQL: a page of many thousand runs is one query.

What only a standing knows (remaining time, cost) is read out of its JSON. Runs that do not know it come last, as do
silent ones where the order is by the time that is left: nobody knows it of them.
"""

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import ColumnElement, case, func, or_

from epochcast.errors import UnknownName
from epochcast.observe.store.database_tables import runs
from epochcast.observe.store.store_rows import (
    OVER,
    SILENT_LEAST_SECONDS,
    SILENT_REPORTS,
    SILENT_UNKNOWN_SECONDS,
)

NEWEST_FIRST = "newest"


def ordered(order: str, is_ascending: bool, now_seconds: float) -> list[ColumnElement[Any]]:
    """What to order by; of equal runs the newest is first. It is `now_seconds` since 1970."""
    newest = runs.c.id.asc() if order == NEWEST_FIRST and is_ascending else runs.c.id.desc()
    if order == NEWEST_FIRST:
        return [newest]
    if order not in RUN_ORDERS:
        raise UnknownName("order of runs", order, RUN_ORDERS)
    value = TIMED_ORDERS[order](now_seconds) if order in TIMED_ORDERS else ORDERS[order]()
    return [(value.asc() if is_ascending else value.desc()).nulls_last(), newest]


def silent_condition(now_seconds: float) -> ColumnElement[bool]:
    """Without a report for longer than `RunRow.silent_after_seconds`."""
    interval = _standing("report_seconds")
    wait = case(
        (func.coalesce(interval, 0.0) <= 0.0, SILENT_UNKNOWN_SECONDS),
        (interval * SILENT_REPORTS > SILENT_LEAST_SECONDS, interval * SILENT_REPORTS),
        else_=SILENT_LEAST_SECONDS,
    )
    return runs.c.seen_at_seconds < now_seconds - wait


def _standing(*path: str) -> ColumnElement[float]:
    """A number of the stored standing."""
    value: ColumnElement[float] = runs.c.progress[path].as_float()
    return value


def _remaining(now_seconds: float) -> ColumnElement[Any]:
    """Nothing where the run is over or silent."""
    is_unknown = or_(runs.c.state.in_(OVER), silent_condition(now_seconds))
    return case((is_unknown, None), else_=_standing("remaining_seconds", "mid"))


def _finish(now_seconds: float) -> ColumnElement[Any]:
    expected = runs.c.seen_at_seconds + _remaining(now_seconds)
    return case((runs.c.state.in_(OVER), runs.c.ended_at_seconds), else_=expected)


ORDERS: Mapping[str, Callable[[], ColumnElement[Any]]] = {
    "name": lambda: func.lower(func.coalesce(runs.c.title, runs.c.name)),
    "state": lambda: runs.c.state,
    "device": lambda: runs.c.device,
    "project": lambda: runs.c.project,
    "host": lambda: runs.c.host,
    "seen": lambda: runs.c.seen_at_seconds,
    "started": lambda: runs.c.started_at_seconds,
    "progress": lambda: runs.c.step / func.nullif(runs.c.total_steps, 0.0),
    "pace": lambda: runs.c.step_seconds / func.nullif(runs.c.forecast_step_seconds, 0.0),
    "cost": lambda: _standing("dollars_so_far"),
}
TIMED_ORDERS: Mapping[str, Callable[[float], ColumnElement[Any]]] = {"remaining": _remaining, "finish": _finish}
"""Orders that depend on what time it is."""
RUN_ORDERS = (NEWEST_FIRST, *ORDERS, *TIMED_ORDERS)
