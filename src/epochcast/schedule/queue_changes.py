"""Changes to a stored queue by anybody, whether a scheduler holds it or not: add jobs, and cancel them.

A request to cancel a job is recorded; the scheduler of the queue sees it at the next look. A job that runs is
asked to save itself and stop (SIGTERM), and killed when its grace is over. Where no scheduler works on the queue, a job
that waits is cancelled at once, and one that was left running when the next scheduler comes.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import update

from epochcast.base.record import Record
from epochcast.errors import BadInput, UnknownName
from epochcast.observe.store.database_tables import queue_jobs
from epochcast.observe.store.store import Store
from epochcast.schedule.queue_file import QueueFile
from epochcast.schedule.queue_lease import is_held
from epochcast.schedule.queue_rows import CANCELLED, ENDED, StoredJob
from epochcast.schedule.stored_queue import add_rows, read_queue_rows
from epochcast.schedule.workload_file import checked_workload

CANCELLED_REASON = "it was cancelled"


def submit(store: Store, name: str, queue: QueueFile, start_at_seconds: float | None = None) -> list[str]:
    """Add jobs to a stored queue; second 0 of their file is the given time, or now. Returns their ids.

    They may come after jobs that the queue has already.
    """
    now = time.time()
    with store.writing() as connection:
        stored = read_queue_rows(connection, name)
        shift = stored.seconds(now if start_at_seconds is None else start_at_seconds)
        rows = {}
        for job, row in queue.rows.items():
            if job in stored.jobs:
                raise BadInput(f"the queue {name!r} has a job {job!r} already; give the new one another id")
            for other in row.after:
                _check_before(job, stored.jobs.get(other))
            # A time before the queue was first saved is its second 0.
            rows[job] = replace(
                row,
                submit_seconds=max(0.0, row.submit_seconds + shift),
                deadline_seconds=max(0.0, (row.deadline_seconds or 0.0) + shift),
            )
        # Fits the machines of the queue.
        checked_workload(replace(stored.machine_rows, jobs=tuple(rows.values())), stored.jobs)
        return add_rows(connection, stored.id, rows, now)


def _check_before(job: str, other: StoredJob | None) -> None:
    """Refuse a job that comes after one of the queue that will never end."""
    if other is not None and ((other.is_over and other.state != ENDED) or other.is_unwanted):
        how = "was cancelled" if other.cancel_at_seconds is not None else "has failed"
        raise BadInput(f"job {job!r} comes after {other.job.id!r}, which {how}")


@dataclass(frozen=True, slots=True)
class CancelledJob(Record):
    """What became of the wish to cancel a job: `is_over` already, or its scheduler will see to it."""

    job: str
    is_over: bool
    is_running: bool
    followers: tuple[str, ...]


def cancel(store: Store, name: str, jobs: Sequence[str]) -> tuple[list[CancelledJob], bool]:
    """Ask that jobs be cancelled; what became of each, and whether a scheduler works on the queue."""
    now = time.time()
    with store.writing() as connection:
        queue = read_queue_rows(connection, name)
        working = is_held(queue.holder, queue.held_until_seconds, now)
        started = queue.open_starts()
        cancelled = []
        for job in dict.fromkeys(jobs):
            stored = queue.jobs.get(job)
            if stored is None:
                raise UnknownName("job", job, queue.jobs)
            if stored.is_over:
                raise BadInput(f"job {job!r} of the queue {name!r} is over: it {_how(stored)}")
            at_once = not working and job not in started
            values: dict[str, object] = {"cancel_at_seconds": now}
            if at_once:
                values |= {"state": CANCELLED, "ended_at_seconds": now, "reason": CANCELLED_REASON}
            mine = (queue_jobs.c.queue_id == queue.id) & (queue_jobs.c.job == job)
            connection.execute(update(queue_jobs).where(mine).values(**values))
            after = tuple(name for name, other in queue.jobs.items() if job in other.job.after and not other.is_over)
            cancelled.append(CancelledJob(job, at_once, job in started, after))
    return cancelled, working


def _how(stored: StoredJob) -> str:
    return {ENDED: "has ended", CANCELLED: "was cancelled"}.get(stored.state, "has failed")
