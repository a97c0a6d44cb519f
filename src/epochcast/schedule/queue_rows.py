"""What the store has of a queue that a scheduler runs.

A *start* is one time that a job was given to the engine, with a key of its own by which the engine knows it. It is
written down before the engine is asked, so that a scheduler that dies in between finds out afterwards whether the
engine has it. Times are seconds since 1970, named `…_at_seconds`; a queue's own clock counts from `added_at_seconds`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp, log

from epochcast.schedule.queue_document import QueueDocument
from epochcast.schedule.queue_file import JobCommand
from epochcast.schedule.workload_jobs import Fleet, GpuChoice, NodeType, QueuedJob

WAITING, RUNNING, ENDED, FAILED, CANCELLED = "waiting", "running", "ended", "failed", "cancelled"
"""States of a job: a job that is being stopped is running until it has let go of its GPUs."""
ASKED, STARTED, STOPPING, OVER = "asked", "running", "stopping", "over"
"""States of a start: `asked` is recorded, and the engine may not know of it yet."""
FINISHED, STOPPED, BROKE, LOST = "finished", "stopped", "failed", "lost"
"""Ends of a start: as planned, on our wish, by itself, or with its machine."""
# The usual pace counts this many jobs more, at the pace of their forecasts: a single job says little.
AS_FORECAST = 2


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A job of a stored queue, as of `told_at_seconds`; `work` is None where it has no command.

    `cancel_at_seconds` is when somebody asked that it be cancelled; the scheduler does so.
    """

    job: QueuedJob
    work: JobCommand | None
    number: int
    state: str
    left_fraction: float
    pace: float
    is_observed: bool
    owed_seconds: float
    served_gpu_seconds: float
    failures: int
    told_at_seconds: float
    ended_at_seconds: float | None = None
    reason: str | None = None
    cancel_at_seconds: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether it ended, failed for good or was cancelled."""
        return self.state in (ENDED, FAILED, CANCELLED)

    @property
    def is_unwanted(self) -> bool:
        """Whether it is to be cancelled and is not over yet."""
        return self.cancel_at_seconds is not None and not self.is_over


@dataclass(frozen=True, slots=True)
class JobStart:
    """A start of a job: `attempt` counts from 1, `machine` is the number of the rented machine."""

    job: str
    attempt: int
    key: str
    choice: GpuChoice
    machine: int
    asked_at_seconds: float
    is_alone: bool = False
    state: str = ASKED
    engine_id: str | None = None
    stop_at_seconds: float | None = None
    ended_at_seconds: float | None = None
    exit_code: int | None = None
    end: str | None = None

    @property
    def has_gpus(self) -> bool:
        """Whether it has, or may have, GPUs."""
        return self.state != OVER


@dataclass(frozen=True, slots=True)
class StoredMachine:
    """A machine from when the first job was put on it until the last had left; `node` is what the engine calls it."""

    number: int
    kind: NodeType
    node: str | None
    rented_at_seconds: float
    returned_at_seconds: float | None = None

    def dollars(self, now_at_seconds: float) -> float:
        """What it cost until now."""
        end = now_at_seconds if self.returned_at_seconds is None else self.returned_at_seconds
        return max(0.0, end - self.rented_at_seconds) * self.kind.dollars_per_second


@dataclass(frozen=True)
class StoredQueue:
    """A whole queue, as the store has it at one moment."""

    id: int
    name: str
    fleet: Fleet
    added_at_seconds: float
    seen_at_seconds: float
    jobs: Mapping[str, StoredJob]
    starts: tuple[JobStart, ...] = ()
    machines: tuple[StoredMachine, ...] = ()
    engine: str | None = None
    policy: str | None = None
    holder: str | None = None
    held_until_seconds: float | None = None
    machine_rows: QueueDocument = field(default_factory=QueueDocument, repr=False)
    """Its node types and rules of decisions."""

    def seconds(self, at_seconds: float) -> float:
        """On the queue's own clock."""
        return at_seconds - self.added_at_seconds

    @property
    def usual_pace(self) -> float:
        """What to expect of jobs that have not shown their pace: the mean (log) of those that have.

        As if two more jobs had kept to their forecasts; what slows or speeds all (busy machines, other drivers than
        the forecast knew) is seen after a few.
        """
        shown = [log(stored.pace) for stored in self.jobs.values() if stored.is_observed]
        return exp(sum(shown) / (len(shown) + AS_FORECAST))

    def open_starts(self) -> dict[str, JobStart]:
        """The start of every job that has GPUs."""
        return {start.job: start for start in self.starts if start.has_gpus}

    def last_starts(self) -> dict[str, JobStart]:
        """The latest start of every job that was ever started."""
        return {start.job: start for start in self.starts}

    def dollars(self, now_at_seconds: float) -> tuple[float, float]:
        """What machines and what lateness cost so far; who was cancelled is not late."""
        now = self.seconds(now_at_seconds)
        late = 0.0
        for stored in self.jobs.values():
            if stored.state == CANCELLED:
                continue
            end = now if stored.ended_at_seconds is None else self.seconds(stored.ended_at_seconds)
            late += max(0.0, end - stored.job.deadline_seconds) * stored.job.tardiness_dollars_per_second
        return sum(machine.dollars(now_at_seconds) for machine in self.machines), late
