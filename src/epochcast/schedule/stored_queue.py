"""Queues in the store: saved from a file, loaded as what a policy sees.

`state_of` is the state of a queue now: what the scheduler recorded last, with running jobs continued since then at
their observed pace.
"""

import time
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, Row, select, update

from epochcast.errors import BadInput, UnknownName
from epochcast.observe.store.database_tables import queue_jobs, queue_machines, queue_starts, queues
from epochcast.observe.store.insert_rows import or_nothing
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_rows import checked_name
from epochcast.schedule.queue_document import QueueJobRow, fleet_row, parse_job, row_of
from epochcast.schedule.queue_file import QueueFile, queue_of
from epochcast.schedule.queue_rows import (
    ASKED,
    ENDED,
    STARTED,
    WAITING,
    JobStart,
    StoredJob,
    StoredMachine,
    StoredQueue,
)
from epochcast.schedule.queue_state import LiveJob, QueueState, RentedMachine
from epochcast.schedule.workload_jobs import Fleet, GpuChoice

# A job whose end nobody has seen has at least so much left.
LEAST_LEFT = 1e-3


def save_queue(store: Store, name: str, queue: QueueFile, now_at_seconds: float | None = None) -> list[str]:
    """Save a queue under a name, or add its new jobs to the stored one; returns the ids of new jobs.

    Times in a file count from when the queue was first saved. The machines are those of the newest file; stored jobs
    stay as they are (`changed_jobs`).
    """
    now = time.time() if now_at_seconds is None else now_at_seconds
    fleet = fleet_row(queue.document)
    values = {
        "key": uuid4().hex,
        "name": checked_name(name),
        "fleet": fleet,
        "added_at_seconds": now,
        "seen_at_seconds": now,
    }
    with store.writing() as connection:
        connection.execute(or_nothing(connection, queues).values(**values))
        connection.execute(update(queues).where(queues.c.name == name).values(fleet=fleet))
        added = add_rows(connection, queue_row(connection, name).id, queue.rows, now)
        read_queue_rows(connection, name)  # all jobs fit the machines of the file
    return added


def add_rows(connection: Connection, queue_id: int, rows: Mapping[str, QueueJobRow], now: float) -> list[str]:
    """Add jobs that are not there yet, within a transaction; gives their ids."""
    present = set(connection.execute(select(queue_jobs.c.job).where(queue_jobs.c.queue_id == queue_id)).scalars())
    number = len(present)
    added = []
    for job, row in rows.items():
        if job in present:
            continue
        values = {
            "queue_id": queue_id,
            "job": job,
            "number": number,
            "row": row_of(row),
            "state": WAITING,
            "left_fraction": 1.0 - (row.done_fraction or 0.0),
            "pace": 1.0,
            "is_observed": False,
            "owed_seconds": 0.0,
            "served_gpu_seconds": 0.0,
            "failures": 0,
            "told_at_seconds": now,
        }
        connection.execute(queue_jobs.insert().values(**values))
        number += 1
        added.append(job)
    return added


def changed_jobs(store: Store, name: str, queue: QueueFile) -> list[str]:
    """The jobs of a file that differ from those of the same name in the stored queue, which stay as they are."""
    with store.reading() as connection:
        of = queue_row(connection, name).id
        rows = connection.execute(select(queue_jobs.c.job, queue_jobs.c.row).where(queue_jobs.c.queue_id == of))
        stored = {row.job: parse_job(row.row, 1) for row in rows}
    return [job for job, row in queue.rows.items() if job in stored and stored[job] != row]


def queue_names(store: Store) -> list[str]:
    """Of all stored queues, the newest first."""
    with store.reading() as connection:
        return list(connection.execute(select(queues.c.name).order_by(queues.c.id.desc())).scalars())


def load_queue(store: Store, name: str) -> StoredQueue:
    """A queue as it was last recorded."""
    with store.snapshot() as connection:
        return read_queue_rows(connection, name)


def read_queue_rows(connection: Connection, name: str) -> StoredQueue:
    """The same, within a transaction."""
    stored = queue_row(connection, name)
    of = stored.id
    rows = connection.execute(select(queue_jobs).where(queue_jobs.c.queue_id == of).order_by(queue_jobs.c.number)).all()
    queue = queue_of({**stored.fleet, "jobs": [row.row for row in rows]}, Path("/"))
    jobs = {job.id: job for job in queue.workload.jobs}
    fleet = queue.workload.fleet
    starts = connection.execute(
        select(queue_starts).where(queue_starts.c.queue_id == of).order_by(queue_starts.c.job, queue_starts.c.attempt)
    )
    machines = connection.execute(
        select(queue_machines).where(queue_machines.c.queue_id == of).order_by(queue_machines.c.number)
    )
    return StoredQueue(
        jobs={row.job: StoredJob(jobs[row.job], queue.works.get(row.job), **_columns(StoredJob, row)) for row in rows},
        starts=tuple(
            JobStart(row.job, choice=GpuChoice(row.device, row.gpus), **_columns(JobStart, row)) for row in starts
        ),
        machines=tuple(_rented(row, fleet) for row in machines),
        machine_rows=replace(queue.document, jobs=()),
        **{**_columns(StoredQueue, stored), "fleet": fleet},
    )


def _columns(kind: type[Any], row: Row[Any]) -> dict[str, Any]:
    """The fields of a dataclass that are columns of a row."""
    columns = row._mapping
    return {item.name: columns[item.name] for item in fields(kind) if item.name in columns and item.name != "job"}


def queue_row(connection: Connection, name: str) -> Row[Any]:
    """The row of a queue; for an unknown name the error lists the known ones."""
    row = connection.execute(select(queues).where(queues.c.name == name)).first()
    if row is None:
        names = connection.execute(select(queues.c.name).order_by(queues.c.id.desc()).limit(1000)).scalars()
        raise UnknownName("queue", name, names)
    return row


def _rented(row: Row[Any], fleet: Fleet) -> StoredMachine:
    if row.node_type not in fleet.by_name:
        raise BadInput(f"machine {row.number} of the queue is a {row.node_type!r}, which is no node type any more")
    return StoredMachine(kind=fleet.by_name[row.node_type], **_columns(StoredMachine, row))


def state_of(queue: StoredQueue, now_at_seconds: float) -> QueueState:
    """The state of a queue at a time.

    Jobs that were submitted by then and are not over, in the order of submission; whoever is being stopped waits. A job
    that comes after others is there when these have ended, and one that is to be cancelled is not there. One that has
    not shown its pace is expected to be as much slower or faster than its forecast as the others were
    (`StoredQueue.usual_pace`).
    """
    now = queue.seconds(now_at_seconds)
    last, usual = queue.last_starts(), queue.usual_pace
    ended = {name for name, stored in queue.jobs.items() if stored.state == ENDED}
    live = {
        name: live_job(stored if stored.is_observed else replace(stored, pace=usual), last.get(name), now_at_seconds)
        for name, stored in sorted(queue.jobs.items(), key=lambda item: (item[1].job.submit_seconds, item[1].number))
        if not (stored.is_over or stored.is_unwanted)
        and stored.job.submit_seconds <= now
        and ended.issuperset(stored.job.after)
    }
    machines = []
    for rented in queue.machines:
        if rented.returned_at_seconds is not None:
            continue
        jobs = [job for job in live.values() if job.machine == rented.number]
        residents = tuple((job.job.id, job.choice.gpus) for job in jobs if job.choice is not None)
        machines.append(RentedMachine(rented.number, rented.kind, residents, any(job.alone for job in jobs)))
    next_number = max((rented.number + 1 for rented in queue.machines), default=0)
    return QueueState(queue.fleet, now, live, tuple(machines), next_number)


def live_job(stored: StoredJob, last: JobStart | None, now_at_seconds: float) -> LiveJob:
    """A job as a policy sees it; one that runs went on since it was last seen."""
    live = LiveJob(
        stored.job,
        left=max(LEAST_LEFT, stored.left_fraction),
        has_run=last is not None,
        pace=stored.pace,
        is_observed=stored.is_observed,
        served_gpu_seconds=stored.served_gpu_seconds,
        last_choice=None if last is None else last.choice,
    )
    if last is None or last.state not in (ASKED, STARTED):
        return live
    live.choice, live.machine, live.alone = last.choice, last.machine, last.is_alone
    passed = max(0.0, now_at_seconds - stored.told_at_seconds)
    live.owed_seconds = max(0.0, stored.owed_seconds - passed)
    worked = max(0.0, passed - stored.owed_seconds)
    live.left = max(LEAST_LEFT, stored.left_fraction - worked / live.run_seconds(last.choice))
    live.served_gpu_seconds += passed * last.choice.gpus
    return live
