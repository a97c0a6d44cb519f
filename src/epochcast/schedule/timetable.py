"""A timetable: when each job starts and ends, on what, what it waits for, and which machines that takes.

Middles are one coherent plan: no GPU is given twice in it. Lows and highs are what 90 % of the draws of the true run
times stay within (`projection`). Times are seconds on the queue's clock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from epochcast.base.display import Displayed
from epochcast.errors import UnknownName
from epochcast.interval import Interval
from epochcast.schedule.queue_clock import QueueClock
from epochcast.schedule.queue_document import RefusedJob
from epochcast.schedule.workload_jobs import GpuChoice, QueueWorkload

RUNNING, WAITING, STOPPED, TO_COME = "running", "waiting", "stopped", "to come"


@dataclass(frozen=True, slots=True)
class PlannedStay:
    """A job on GPUs of one machine from … to, in the plan."""

    node_type: str
    machine: int
    choice: GpuChoice
    start_seconds: float
    end_seconds: float


@dataclass(frozen=True, slots=True)
class Wait:
    """What a job waits for, until when, and who holds it now; nobody where it is not yet submitted, or held back."""

    what: str
    until_seconds: float
    holders: tuple[str, ...] = ()

    def text(self, clock: QueueClock) -> str:
        """In words."""
        who = f", held by {', '.join(self.holders)}" if self.holders else ""
        return f"{self.what}{who}, until {clock.text(self.until_seconds)}"


@dataclass(frozen=True, slots=True)
class TimetableRow:
    """One job of the timetable. `start` of a running job is when it started, as far as that is known."""

    job: str
    state: str
    position: int | None
    stays: tuple[PlannedStay, ...]
    start: Interval
    end: Interval
    deadline_seconds: float
    late_probability: float
    wait: Wait | None = None

    def as_dict(self, clock: QueueClock) -> dict[str, Any]:
        """By the names of the JSON contract."""
        first = self.stays[0]
        return {
            "job": self.job,
            "state": self.state,
            "node_type": first.node_type,
            "device": first.choice.device,
            "gpus": first.choice.gpus,
            **_ends("start_at", self.start, clock),
            **_ends("end_at", self.end, clock),
            "deadline_at": clock.text(self.deadline_seconds),
            "late_probability": self.late_probability,
            **self._waits(clock),
            "stays": [
                {
                    "node_type": stay.node_type,
                    "machine": stay.machine,
                    "gpus": stay.choice.gpus,
                    "start_at": clock.text(stay.start_seconds),
                    "end_at": clock.text(stay.end_seconds),
                }
                for stay in self.stays
            ],
        }

    def queue_row(self, clock: QueueClock) -> dict[str, Any]:
        """The same as a place in the queue."""
        return {
            "job": self.job,
            "state": self.state,
            "position": self.position,
            **_ends("start_at", self.start, clock),
            **_ends("end_at", self.end, clock),
            **self._waits(clock),
        }

    def _waits(self, clock: QueueClock) -> dict[str, Any]:
        return {
            "waits_for": [] if self.wait is None else list(self.wait.holders),
            "reason": None if self.wait is None else self.wait.text(clock),
        }


@dataclass(frozen=True, slots=True)
class PastJob:
    """A job that is over; when it started and ended, as far as that is known."""

    job: str
    state: str
    start_seconds: float | None
    end_seconds: float | None

    def queue_row(self, clock: QueueClock) -> dict[str, Any]:
        """As a place in the queue: it has none any more."""
        start = None if self.start_seconds is None else clock.text(self.start_seconds)
        end = None if self.end_seconds is None else clock.text(self.end_seconds)
        return {
            "job": self.job,
            "state": self.state,
            "position": None,
            **{f"start_at{part}": start for part in ("", "_low", "_high")},
            **{f"end_at{part}": end for part in ("", "_low", "_high")},
            "waits_for": [],
            "reason": None,
        }


@dataclass(frozen=True, slots=True)
class MachineUse:
    """Machines of a type: how many from now on, how many at most at a time, for how long and what for, in the plan."""

    node_type: str
    count: int
    most: int
    machine_seconds: float
    dollars: float
    is_in_house: bool = False

    def as_dict(self) -> dict[str, Any]:
        """By the names of the JSON contract."""
        return {
            "node_type": self.node_type,
            "count": self.count,
            "most": self.most,
            "machine_seconds": self.machine_seconds,
            "dollars": self.dollars,
            "in_house": self.is_in_house,
        }


@dataclass(frozen=True)
class Timetable(Displayed):
    """The plan of a queue.

    `drawn_by` is the policy that decided in the draws: a quick one stands in for a slow one. `commands` start the jobs
    that have one.
    """

    view: ClassVar[str] = "timetable"

    clock: QueueClock
    now_seconds: float
    policy: str
    lines: tuple[TimetableRow, ...]
    machines: tuple[MachineUse, ...]
    dollars: Interval
    machine_dollars: Interval
    draws: int
    drawn_by: str
    refused: tuple[RefusedJob, ...] = ()
    notes: tuple[str, ...] = ()
    workload: QueueWorkload | None = field(default=None, repr=False)
    commands: Mapping[str, str] = field(default_factory=dict, repr=False)
    past: tuple[PastJob, ...] = ()

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
        return self.dollars.coverage

    @property
    def jobs(self) -> "tuple[TimetableRow | PastJob, ...]":
        """All of them, those that are over last."""
        found: list[TimetableRow | PastJob] = [*self.lines, *self.past]
        return tuple(found)

    def line(self, job: str) -> TimetableRow | PastJob:
        """The line of a job, or what is known of one that is over."""
        found = {one.job: one for one in self.jobs}
        if job not in found:
            raise UnknownName("job in the queue", job, found)
        return found[job]

    @property
    def likely_late(self) -> tuple[TimetableRow, ...]:
        """Jobs that rather end after their deadline than not, the likeliest first."""
        late = [line for line in self.lines if line.late_probability > 0.5]
        return tuple(sorted(late, key=lambda line: -line.late_probability))

    def as_dict(self) -> dict[str, Any]:
        """By the names of the JSON contract."""
        return {
            "at": self.clock.text(self.now_seconds),
            "policy": self.policy,
            "timetable": [line.as_dict(self.clock) for line in self.lines],
            "machines": [use.as_dict() for use in self.machines],
            "dollars": self.dollars.mid,
            "dollars_low": self.dollars.low,
            "dollars_high": self.dollars.high,
            "machine_dollars": self.machine_dollars.as_dict(),
            **self._rest(),
        }

    def queue_dict(self, jobs: Sequence[TimetableRow | PastJob] | None = None) -> dict[str, Any]:
        """The same as places in the queue: of all jobs, or of those given."""
        rows = [one.queue_row(self.clock) for one in (self.jobs if jobs is None else jobs)]
        return {"at": self.clock.text(self.now_seconds), "policy": self.policy, "jobs": rows, **self._rest()}

    def _rest(self) -> dict[str, Any]:
        return {
            "coverage": self.coverage,
            "draws": self.draws,
            "drawn_by": self.drawn_by,
            "refused": [one.as_dict() for one in self.refused],
            "warnings": list(self.notes),
        }


def _ends(name: str, told: Interval, clock: QueueClock) -> dict[str, str]:
    return {
        name: clock.text(told.mid),
        f"{name}_low": clock.text(told.low),
        f"{name}_high": clock.text(told.high),
    }
