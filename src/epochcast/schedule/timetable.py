"""A timetable: when each job starts and ends, on what, what it waits for, and which machines that takes.

Middles are one coherent plan: no GPU is given twice in it. Lows and highs are what 90 % of the draws of the true run
times stay within (`projection`). Times are seconds on the queue's clock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import ClassVar

from epochcast.base.display import Displayed
from epochcast.base.record import Record, json_hidden, json_name
from epochcast.errors import UnknownName
from epochcast.interval import Interval
from epochcast.schedule.queue_clock import QueueClock
from epochcast.schedule.queue_document import RefusedJob
from epochcast.schedule.workload_jobs import GpuChoice, QueueWorkload

RUNNING, WAITING, STOPPED, TO_COME = "running", "waiting", "stopped", "to come"


@dataclass(frozen=True, slots=True)
class PlannedStay(Record):
    """A job on GPUs of one machine from … to, in the plan."""

    node_type: str
    machine: int
    choice: GpuChoice = json_hidden()
    start_seconds: float = json_hidden()
    end_seconds: float = json_hidden()
    clock: QueueClock = json_hidden(repr=False)
    json_also: ClassVar[tuple[str, ...]] = ("gpus", "start_at", "end_at")

    @property
    def gpus(self) -> int:
        """How many GPUs it has."""
        return self.choice.gpus

    @property
    def start_at(self) -> datetime:
        """When it starts."""
        return self.clock.at_second(self.start_seconds)

    @property
    def end_at(self) -> datetime:
        """When it ends."""
        return self.clock.at_second(self.end_seconds)


@dataclass(frozen=True, slots=True)
class JobWait:
    """What a job waits for, until when, and who holds it now; nobody where it is not yet submitted, or held back."""

    resource: str
    until_seconds: float
    holders: tuple[str, ...] = ()

    def text(self, clock: QueueClock) -> str:
        """In words."""
        who = f", held by {', '.join(self.holders)}" if self.holders else ""
        return f"{self.resource}{who}, until {clock.text(self.until_seconds)}"


@dataclass(frozen=True, slots=True)
class TimetableRow(Record):
    """One job of the timetable. `start` of a running job is when it started, as far as that is known."""

    job: str
    state: str
    late_probability: float
    stays: tuple[PlannedStay, ...]
    position: int | None = json_hidden()
    start: Interval = json_hidden()
    end: Interval = json_hidden()
    deadline_seconds: float = json_hidden()
    clock: QueueClock = json_hidden(repr=False)
    wait: JobWait | None = json_hidden(default=None)
    json_also: ClassVar[tuple[str, ...]] = (
        *("node_type", "device", "gpus", "start_at", "start_at_low", "start_at_high"),
        *("end_at", "end_at_low", "end_at_high", "deadline_at", "waits_for", "reason"),
    )

    @property
    def node_type(self) -> str:
        """The machine that it starts on."""
        return self.stays[0].node_type

    @property
    def device(self) -> str:
        """The device that it starts on."""
        return self.stays[0].choice.device

    @property
    def gpus(self) -> int:
        """How many GPUs it starts with."""
        return self.stays[0].choice.gpus

    @property
    def start_at(self) -> datetime:
        """When it starts, in the plan."""
        return self.clock.at_second(self.start.mid)

    @property
    def start_at_low(self) -> datetime:
        """The earliest start."""
        return self.clock.at_second(self.start.low)

    @property
    def start_at_high(self) -> datetime:
        """The latest start."""
        return self.clock.at_second(self.start.high)

    @property
    def end_at(self) -> datetime:
        """When it ends, in the plan."""
        return self.clock.at_second(self.end.mid)

    @property
    def end_at_low(self) -> datetime:
        """The earliest end."""
        return self.clock.at_second(self.end.low)

    @property
    def end_at_high(self) -> datetime:
        """The latest end."""
        return self.clock.at_second(self.end.high)

    @property
    def deadline_at(self) -> datetime:
        """When it should end."""
        return self.clock.at_second(self.deadline_seconds)

    @property
    def waits_for(self) -> tuple[str, ...]:
        """Jobs that hold what it waits for."""
        return () if self.wait is None else self.wait.holders

    @property
    def reason(self) -> str | None:
        """What it waits for, in words."""
        return None if self.wait is None else self.wait.text(self.clock)


@dataclass(frozen=True, slots=True)
class PastJob:
    """A job that is over; when it started and ended, as far as that is known."""

    job: str
    state: str
    start_seconds: float | None
    end_seconds: float | None


@dataclass(frozen=True, slots=True)
class QueuePlace(Record):
    """Where a job stands in the queue; one that is over has no position."""

    job: str
    state: str
    position: int | None
    start_at: datetime | None
    start_at_low: datetime | None
    start_at_high: datetime | None
    end_at: datetime | None
    end_at_low: datetime | None
    end_at_high: datetime | None
    waits_for: tuple[str, ...] = ()
    reason: str | None = None

    @classmethod
    def of(cls, job: TimetableRow | PastJob, clock: QueueClock) -> "QueuePlace":
        """The place of a job of the timetable, or of one that is over."""
        if isinstance(job, TimetableRow):
            return cls(**{item.name: getattr(job, item.name) for item in fields(cls)})
        start, end = (
            None if seconds is None else clock.at_second(seconds) for seconds in (job.start_seconds, job.end_seconds)
        )
        return cls(job.job, job.state, None, start, start, start, end, end, end)


@dataclass(frozen=True, slots=True)
class QueueListing(Record):
    """All places of a queue, as `epochcast schedule queue --json` prints them."""

    at: datetime
    policy: str
    jobs: tuple[QueuePlace, ...]
    coverage: float
    draws: int
    drawn_by: str
    refused: tuple[RefusedJob, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MachineUse(Record):
    """Machines of a type: how many from now on, how many at most at a time, for how long and what for, in the plan."""

    node_type: str
    count: int
    most: int
    machine_seconds: float
    dollars: float
    is_in_house: bool = json_name("in_house", default=False)


@dataclass(frozen=True, kw_only=True)
class Timetable(Record, Displayed):
    """The plan of a queue.

    `drawn_by` is the policy that decided in the draws: a quick one stands in for a slow one. `commands` start the jobs
    that have one.
    """

    view: ClassVar[str] = "timetable"
    json_also: ClassVar[tuple[str, ...]] = ("at", "dollars", "coverage")

    clock: QueueClock = json_hidden()
    now_seconds: float = json_hidden()
    policy: str
    lines: tuple[TimetableRow, ...] = json_name("timetable")
    machines: tuple[MachineUse, ...]
    dollars_interval: Interval
    machine_dollars: Interval
    draws: int
    drawn_by: str
    refused: tuple[RefusedJob, ...] = ()
    notes: tuple[str, ...] = json_name("warnings", default=())
    workload: QueueWorkload | None = json_hidden(default=None, repr=False)
    commands: Mapping[str, str] = json_hidden(default_factory=dict, repr=False)
    past: tuple[PastJob, ...] = json_hidden(default=())

    @property
    def at(self) -> datetime:
        """The time of the plan."""
        return self.clock.at_second(self.now_seconds)

    @property
    def dollars(self) -> float:
        """Machines and lateness together, in the plan."""
        return self.dollars_interval.mid

    @property
    def end(self) -> Interval | None:
        """When the last job ends: at the earliest and at the latest by that of any job; None without jobs."""
        if not self.lines:
            return None
        ends = [line.end for line in self.lines]
        coverage = min(end.coverage for end in ends)
        return Interval(max(e.low for e in ends), max(e.mid for e in ends), max(e.high for e in ends), coverage)

    @property
    def coverage(self) -> float:
        """Of the intervals."""
        return self.dollars_interval.coverage

    @property
    def jobs(self) -> "tuple[TimetableRow | PastJob, ...]":
        """All of them, those that are over last."""
        return (*self.lines, *self.past)

    def line(self, job: str) -> TimetableRow | PastJob:
        """The line of a job, or what is known of one that is over."""
        lines = {line.job: line for line in self.jobs}
        if job not in lines:
            raise UnknownName("job in the queue", job, lines)
        return lines[job]

    @property
    def likely_late(self) -> tuple[TimetableRow, ...]:
        """Jobs that rather end after their deadline than not, the likeliest first."""
        late = [line for line in self.lines if line.late_probability > 0.5]
        return tuple(sorted(late, key=lambda line: -line.late_probability))

    def listing(self, jobs: Sequence[TimetableRow | PastJob] | None = None) -> QueueListing:
        """The places in the queue: of all jobs, or of those given."""
        return QueueListing(
            at=self.at,
            policy=self.policy,
            jobs=tuple(QueuePlace.of(job, self.clock) for job in (self.jobs if jobs is None else jobs)),
            coverage=self.coverage,
            draws=self.draws,
            drawn_by=self.drawn_by,
            refused=self.refused,
            warnings=self.notes,
        )
