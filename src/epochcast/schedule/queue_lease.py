"""A lease on a queue: one scheduler holds it, and nobody else writes to it meanwhile.

The row of the queue names its holder and until when it is held. Every transaction of the holder renews that, and fails
where somebody else has taken the queue since: a scheduler that was frozen for long cannot start anything any more,
because a start is written down first. A holder that died on the same machine is recognized at once; one elsewhere when
its time has run out. Clocks of machines that share a queue should agree within seconds.
"""

import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from uuid import uuid4

from sqlalchemy import Connection, select, update

from epochcast.errors import EpochcastError, UnknownName
from epochcast.observe.store.database_tables import queue_jobs, queue_machines, queue_starts, queues
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_rows import bounded
from epochcast.schedule.engines.job_supervisor import start_mark
from epochcast.schedule.queue_rows import JobStart, StoredMachine, StoredQueue
from epochcast.schedule.stored_queue import read_queue_rows

HELD_SECONDS = 60.0


class QueueHeld(EpochcastError):
    """Another scheduler runs the queue."""


@dataclass(frozen=True, slots=True)
class HeldQueue:
    """The queue and who holds it."""

    store: Store
    name: str
    id: int
    key: str
    holder: str
    held_seconds: float = HELD_SECONDS

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction of the holder."""
        with self.store.writing() as connection:
            now = time.time()
            mine = (queues.c.id == self.id) & (queues.c.holder == self.holder)
            renewed = connection.execute(
                update(queues).where(mine).values(held_until_seconds=now + self.held_seconds, seen_at_seconds=now)
            )
            if renewed.rowcount != 1:
                raise QueueHeld(f"the queue {self.name!r} was taken over by another scheduler; this one stops")
            yield connection

    def read(self) -> StoredQueue:
        """The queue as it is, renewing the hold on it."""
        with self.writing() as connection:
            return read_queue_rows(connection, self.name)

    def release(self) -> None:
        """Let others take it at once."""
        with self.store.writing() as connection:
            mine = (queues.c.id == self.id) & (queues.c.holder == self.holder)
            connection.execute(update(queues).where(mine).values(holder=None, held_until_seconds=None))

    def put_start(self, start: JobStart, machine: StoredMachine | None = None, **job: object) -> None:
        """Write down a new start before the engine is asked, with the machine it begins and how its job stands."""
        values = {
            "queue_id": self.id,
            "job": start.job,
            "attempt": start.attempt,
            "key": start.key,
            "machine": start.machine,
            "device": start.choice.device,
            "gpus": start.choice.gpus,
            "is_alone": start.is_alone,
            "state": start.state,
            "asked_at_seconds": start.asked_at_seconds,
        }
        with self.writing() as connection:
            if machine is not None:
                rented = {
                    "number": machine.number,
                    "node_type": machine.kind.name,
                    "node": machine.node,
                    "rented_at_seconds": machine.rented_at_seconds,
                }
                connection.execute(queue_machines.insert().values(queue_id=self.id, **rented))
            connection.execute(queue_starts.insert().values(**values))
            self._change_job(connection, start.job, job)

    def change_start(self, start: JobStart, values: Mapping[str, object], **job: object) -> JobStart:
        """Write down how a start stands now, and its job with it."""
        of = queue_starts.c
        mine = (of.queue_id == self.id) & (of.job == start.job) & (of.attempt == start.attempt)
        with self.writing() as connection:
            connection.execute(update(queue_starts).where(mine).values(**values))
            self._change_job(connection, start.job, job)
        return replace(start, **values)  # type: ignore[arg-type]  # the names are those of its fields

    def change_job(self, job: str, **values: object) -> None:
        """Write down how a job stands now."""
        with self.writing() as connection:
            self._change_job(connection, job, values)

    def _change_job(self, connection: Connection, job: str, values: Mapping[str, object]) -> None:
        mine = (queue_jobs.c.queue_id == self.id) & (queue_jobs.c.job == job)
        if values:
            short = {name: bounded(value) if isinstance(value, str) else value for name, value in values.items()}
            connection.execute(update(queue_jobs).where(mine).values(**short))

    def return_machine(self, number: int, now_at_seconds: float) -> None:
        """Write down that nobody uses a machine any more."""
        mine = (queue_machines.c.queue_id == self.id) & (queue_machines.c.number == number)
        with self.writing() as connection:
            connection.execute(update(queue_machines).where(mine).values(returned_at_seconds=now_at_seconds))


def take_queue(
    store: Store, name: str, engine: str, policy: str, held_seconds: float = HELD_SECONDS
) -> tuple[HeldQueue, str | None]:
    """Take the lease of a stored queue; returns it with the engine that ran the queue before.

    Refused while another scheduler holds it, and where its jobs run on another engine.
    """
    holder = f"{socket.gethostname()}:{os.getpid()}:{start_mark(os.getpid())}:{uuid4().hex[:8]}"
    with store.writing() as connection:
        row = connection.execute(select(queues).where(queues.c.name == name).with_for_update()).first()
        if row is None:
            raise UnknownName("queue", name, connection.execute(select(queues.c.name).limit(1000)).scalars())
        now = time.time()
        if is_held(row.holder, row.held_until_seconds, now):
            host, pid, *_ = row.holder.split(":")
            raise QueueHeld(
                f"the queue {name!r} is run by process {pid} on {host}; stop that scheduler first, "
                f"or wait {row.held_until_seconds - now:.0f} s if it is gone"
            )
        if row.engine not in (None, engine) and _has_open_starts(connection, row.id):
            raise QueueHeld(f"jobs of the queue {name!r} run on {row.engine}; continue with --engine {row.engine}")
        values = {"holder": holder, "held_until_seconds": now + held_seconds, "engine": engine, "policy": policy}
        connection.execute(update(queues).where(queues.c.id == row.id).values(**values))
    return HeldQueue(store, name, row.id, row.key, holder, held_seconds), row.engine


def _has_open_starts(connection: Connection, queue_id: int) -> bool:
    query = select(queue_starts.c.key).where(queue_starts.c.queue_id == queue_id, queue_starts.c.state != "over")
    return connection.execute(query.limit(1)).first() is not None


def is_held(holder: str | None, until_seconds: float | None, now_at_seconds: float) -> bool:
    """Whether a scheduler works on a queue that names such a holder."""
    return bool(holder) and (until_seconds or 0) > now_at_seconds and not _is_dead(holder or "")


def _is_dead(holder: str) -> bool:
    """Whether the holder was a process of this machine that is not there any more."""
    host, pid, mark, _ = holder.split(":")
    return host == socket.gethostname() and start_mark(int(pid)) != mark
