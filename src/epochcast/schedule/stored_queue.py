"""Queues in the store: kept from a file, read back as what a policy sees.

`state_of` is the state of a queue now: what the scheduler wrote down last, and since then every running job went on
at the pace it had shown.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
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
from epochcast.schedule.queue_rows import ASKED, ENDED, STARTED, WAITING, JobStart, KeptJob, KeptMachine, KeptQueue
from epochcast.schedule.queue_state import LiveJob, QueueState, RentedMachine
from epochcast.schedule.workload_jobs import Fleet, GpuChoice

# A job whose end nobody has seen has at least so much left.
LEAST_LEFT = 1e-3


def keep_queue(store: Store, name: str, queue: QueueFile, now_at_seconds: float | None = None) -> list[str]:
    """Keep a queue under a name, or add what is new in it to the one that is there; gives the ids of new jobs.

    Times in a file count from when the queue was first kept. The machines are those of the newest file; jobs that are
    there stay as they are (`changed_jobs`).
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
        found = queue_row(connection, name)
        added = add_rows(connection, found.id, queue.rows, now)
        read_queue_rows(connection, name)  # all jobs fit the machines of the file
    return added


def add_rows(connection: Connection, queue_id: int, rows: Mapping[str, QueueJobRow], now: float) -> list[str]:
    """Add jobs that are not there yet, within a transaction; gives their ids."""
    known = set(connection.execute(select(queue_jobs.c.job).where(queue_jobs.c.queue_id == queue_id)).scalars())
    number = len(known)
    added = []
    for job, row in rows.items():
        if job in known:
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
    """The jobs of a file that differ from those of the same name in the kept queue, which stay as they are."""
    with store.reading() as connection:
        of = queue_row(connection, name).id
        rows = connection.execute(select(queue_jobs.c.job, queue_jobs.c.row).where(queue_jobs.c.queue_id == of))
        kept = {row.job: parse_job(row.row, 1) for row in rows}
    return [job for job, row in queue.rows.items() if job in kept and kept[job] != row]


def queue_names(store: Store) -> list[str]:
    """Of all kept queues, the newest first."""
    with store.reading() as connection:
        return list(connection.execute(select(queues.c.name).order_by(queues.c.id.desc())).scalars())


def kept_queue(store: Store, name: str) -> KeptQueue:
    """A queue as it was last written down."""
    with store.snapshot() as connection:
        return read_queue_rows(connection, name)


def read_queue_rows(connection: Connection, name: str) -> KeptQueue:
    """The same, within a transaction."""
    found = queue_row(connection, name)
    of = found.id
    rows = connection.execute(select(queue_jobs).where(queue_jobs.c.queue_id == of).order_by(queue_jobs.c.number)).all()
    queue = queue_of({**found.fleet, "jobs": [row.row for row in rows]}, Path("/"))
    jobs = {job.id: job for job in queue.workload.jobs}
    fleet = queue.workload.fleet
    starts = connection.execute(
        select(queue_starts).where(queue_starts.c.queue_id == of).order_by(queue_starts.c.job, queue_starts.c.attempt)
    )
    machines = connection.execute(
        select(queue_machines).where(queue_machines.c.queue_id == of).order_by(queue_machines.c.number)
    )
    return KeptQueue(
        id=of,
        name=found.name,
        fleet=fleet,
        added_at_seconds=found.added_at_seconds,
        seen_at_seconds=found.seen_at_seconds,
        jobs={
            row.job: KeptJob(
                jobs[row.job],
                queue.works.get(row.job),
                row.number,
                row.state,
                row.left_fraction,
                row.pace,
                row.is_observed,
                row.owed_seconds,
                row.served_gpu_seconds,
                row.failures,
                row.told_at_seconds,
                row.ended_at_seconds,
                row.reason,
                row.cancel_at_seconds,
            )
            for row in rows
        },
        starts=tuple(_start(row) for row in starts),
        machines=tuple(_rented(row, fleet) for row in machines),
        engine=found.engine,
        policy=found.policy,
        holder=found.holder,
        held_until_seconds=found.held_until_seconds,
        machine_rows=replace(queue.document, jobs=()),
    )


def queue_row(connection: Connection, name: str) -> Row[Any]:
    """The row of a queue; for an unknown name the error lists the known ones."""
    found = connection.execute(select(queues).where(queues.c.name == name)).first()
    if found is None:
        known = connection.execute(select(queues.c.name).order_by(queues.c.id.desc()).limit(1000)).scalars()
        raise UnknownName("queue", name, known)
    return found


def _start(row: Row[Any]) -> JobStart:
    return JobStart(
        row.job,
        row.attempt,
        row.key,
        GpuChoice(row.device, row.gpus),
        row.machine,
        row.asked_at_seconds,
        row.is_alone,
        row.state,
        row.engine_id,
        row.stop_at_seconds,
        row.ended_at_seconds,
        row.exit_code,
        row.end,
    )


def _rented(row: Row[Any], fleet: Fleet) -> KeptMachine:
    if row.node_type not in fleet.by_name:
        raise BadInput(f"machine {row.number} of the queue is a {row.node_type!r}, which is no node type any more")
    kind = fleet.by_name[row.node_type]
    return KeptMachine(row.number, kind, row.node, row.rented_at_seconds, row.returned_at_seconds)


def state_of(queue: KeptQueue, now_at_seconds: float) -> QueueState:
    """The state of a queue at a time.

    Jobs that were submitted by then and are not over, in the order of submission; whoever is being stopped waits. A job
    that comes after others is there when these have ended, and one that is to be cancelled is not there. One that has
    not shown its pace is expected to be as much slower or faster than its forecast as the others were
    (`KeptQueue.usual_pace`).
    """
    now = queue.seconds(now_at_seconds)
    last, usual = queue.last_starts(), queue.usual_pace
    ended = {name for name, kept in queue.jobs.items() if kept.state == ENDED}
    live = {
        name: live_job(kept if kept.is_observed else replace(kept, pace=usual), last.get(name), now_at_seconds)
        for name, kept in sorted(queue.jobs.items(), key=lambda item: (item[1].job.submit_seconds, item[1].number))
        if not (kept.is_over or kept.is_unwanted)
        and kept.job.submit_seconds <= now
        and ended.issuperset(kept.job.after)
    }
    machines = []
    for rented in queue.machines:
        if rented.returned_at_seconds is not None:
            continue
        here = [one for one in live.values() if one.machine == rented.number]
        residents = tuple((one.job.id, one.choice.gpus) for one in here if one.choice is not None)
        machines.append(RentedMachine(rented.number, rented.kind, residents, any(one.alone for one in here)))
    made = max((rented.number + 1 for rented in queue.machines), default=0)
    return QueueState(queue.fleet, now, live, tuple(machines), made)


def live_job(kept: KeptJob, last: JobStart | None, now_at_seconds: float) -> LiveJob:
    """A job as a policy sees it; one that runs went on since it was last seen."""
    one = LiveJob(
        kept.job,
        left=max(LEAST_LEFT, kept.left),
        has_run=last is not None,
        pace=kept.pace,
        is_observed=kept.is_observed,
        served_gpu_seconds=kept.served_gpu_seconds,
        last_choice=None if last is None else last.choice,
    )
    if last is None or last.state not in (ASKED, STARTED):
        return one
    one.choice, one.machine, one.alone = last.choice, last.machine, last.is_alone
    passed = max(0.0, now_at_seconds - kept.told_at_seconds)
    one.owed_seconds = max(0.0, kept.owed_seconds - passed)
    worked = max(0.0, passed - kept.owed_seconds)
    one.left = max(LEAST_LEFT, kept.left - worked / one.run_seconds(last.choice))
    one.served_gpu_seconds += passed * last.choice.gpus
    return one
