"""Old reports joined, old runs removed, space given back.

The rule: training reports that have been in the store for more than a week are joined, per attempt and rank, until at
most 1,000 and the very first are left of them. Each stands for a thousandth of the steps: it is the last report of
these, with the mean of their step and data seconds and the number of reports; what they announced is kept. Reports of
validation, checkpoints, starts and ends stay. The pace, pauses of more than a thousandth of the run and the curve of
the loss can still be read; single steps cannot.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, func, select, update

from epochcast.base.record import Record
from epochcast.observe.runs.report import Report
from epochcast.observe.store import observation_ingest as ingest
from epochcast.observe.store.database_tables import attempts, observations, runs
from epochcast.observe.store.store import Store, in_parts
from epochcast.observe.store.store_rows import OVER

WHOLE_SECONDS = 7 * 24 * 3600.0
"""Younger reports stay as they came."""
KEPT_REPORTS = 1000
"""Of an attempt and rank, when they are older."""


@dataclass(frozen=True, slots=True)
class Thinned(Record):
    """What was done: rows before and after, runs removed, and the size of the database."""

    rows_before: int
    rows_after: int
    runs_removed: int
    bytes_before: int
    bytes_after: int


def vacuum(
    store: Store,
    *,
    whole_seconds: float = WHOLE_SECONDS,
    remove_after_seconds: float | None = None,
    now_seconds: float | None = None,
) -> Thinned:
    """Join old reports, remove runs that have been over for longer than asked, and give the space back."""
    now = time.time() if now_seconds is None else now_seconds
    rows_before, bytes_before = store.count_observations(), store.size_bytes()
    removed = 0 if remove_after_seconds is None else _remove(store, now - remove_after_seconds)
    for run_id, attempt in _crowded(store, now - whole_seconds):
        with store.writing() as connection:
            thin(connection, run_id, attempt, now - whole_seconds)
    store.reclaim()
    return Thinned(rows_before, store.count_observations(), removed, bytes_before, store.size_bytes())


def _remove(store: Store, seen_before_seconds: float) -> int:
    old = runs.c.state.in_(OVER) & (runs.c.seen_at_seconds < seen_before_seconds)
    with store.writing() as connection:
        removed = connection.execute(select(func.count()).select_from(runs).where(old)).scalar_one()
        connection.execute(delete(runs).where(old))
    return int(removed)


def _old(before_seconds: float) -> Any:
    return (observations.c.phase == 0) & (observations.c.received_at_seconds <= before_seconds)


def _crowded(store: Store, before_seconds: float) -> list[tuple[int, int]]:
    """Attempts with more old training reports of a rank than are kept."""
    key = (observations.c.run_id, observations.c.attempt)
    crowded = (
        select(*key)
        .where(_old(before_seconds))
        .group_by(*key, observations.c.rank)
        .having(func.count() > KEPT_REPORTS + 1)
        .distinct()
    )
    with store.reading() as connection:
        return [(run_id, attempt) for run_id, attempt in connection.execute(crowded)]


def thin(connection: Connection, run_id: int, attempt: int, before_seconds: float) -> None:
    """Join the old reports of one attempt."""
    of_attempt = (observations.c.run_id == run_id) & (observations.c.attempt == attempt) & _old(before_seconds)
    ends = select(observations.c.rank, func.count(), func.min(observations.c.step), func.max(observations.c.step))
    thinned_step = -1.0
    for rank, count, first, last in connection.execute(ends.where(of_attempt).group_by(observations.c.rank)).all():
        if count <= KEPT_REPORTS + 1:
            continue
        of_rank = of_attempt & (observations.c.rank == rank)
        read = in_parts(connection, select(observations).where(of_rank).order_by(observations.c.step))
        thinned = list(joined((ingest.row_from(row) for row in read), first, last))
        connection.execute(delete(observations).where(of_rank))
        ingest.insert(connection, {run_id: thinned}, before_seconds, even_thinned=True)
        thinned_step = max(thinned_step, last)
    if thinned_step >= 0:
        same_attempt = (attempts.c.run_id == run_id) & (attempts.c.attempt == attempt)
        later = func.coalesce(attempts.c.thinned_step, -1.0) < thinned_step
        connection.execute(update(attempts).where(same_attempt & later).values(thinned_step=thinned_step))


def joined(rows: Iterable[Report], first: float, last: float) -> Iterator[Report]:
    """Reports in the order of their steps, those of each thousandth from `first` to `last` as one; the first alone."""
    merged: Report | None = None
    place = -1
    for row in rows:
        position = (
            -1 if row.step <= first else min(KEPT_REPORTS - 1, int((row.step - first) / (last - first) * KEPT_REPORTS))
        )
        if merged is not None and position == place:
            merged = _both(merged, row)
            continue
        if merged is not None:
            yield merged
        merged, place = row, position
    if merged is not None:
        yield merged


def _both(before: Report, after: Report) -> Report:
    return after._replace(
        step_seconds=_mean(before, after, before.step_seconds, after.step_seconds),
        data_seconds=_mean(before, after, before.data_seconds, after.data_seconds),
        total_steps=after.total_steps or before.total_steps,
        total_epochs=after.total_epochs or before.total_epochs,
        steps_per_epoch=after.steps_per_epoch or before.steps_per_epoch,
        reports=before.reports + after.reports,
    )


def _mean(before: Report, after: Report, first: float | None, second: float | None) -> float | None:
    if first is None or second is None:
        return first if second is None else second
    return (before.reports * first + after.reports * second) / (before.reports + after.reports)
