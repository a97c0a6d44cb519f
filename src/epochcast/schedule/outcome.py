"""What a simulation ended with: bills, ends of jobs, who was where and when."""

from dataclasses import dataclass
from typing import ClassVar

from epochcast.base.record import Record, json_hidden
from epochcast.schedule.workload_jobs import GpuChoice


@dataclass(frozen=True, slots=True)
class JobEnd:
    """One job, ended. `restarts` are the times it began again."""

    job: str
    submit_seconds: float
    start_seconds: float
    end_seconds: float
    tardiness_seconds: float
    restarts: int


@dataclass(frozen=True, slots=True)
class JobStay:
    """A job on a machine, with the same GPUs, from … to."""

    job: str
    machine: int
    choice: GpuChoice
    start_seconds: float
    end_seconds: float


@dataclass(frozen=True, slots=True)
class Rental:
    """A machine, rented from … to."""

    machine: int
    node_type: str
    start_seconds: float
    end_seconds: float


@dataclass
class SimulationOutcome(Record):
    """The account of a simulation, filled while it runs. `bound_dollars` is the least that such a policy can pay."""

    machine_dollars: float = 0.0
    tardiness_dollars: float = 0.0
    preemptions: int = 0
    moves: int = 0
    resizes: int = 0
    failures: int = 0
    stragglers: int = 0
    most_machines: int = 0
    bound_dollars: float | None = None
    ends: list[JobEnd] = json_hidden(default_factory=list)
    stays: list[JobStay] = json_hidden(default_factory=list)
    rentals: list[Rental] = json_hidden(default_factory=list)
    decision_seconds: list[float] = json_hidden(default_factory=list)
    json_also: ClassVar[tuple[str, ...]] = (
        *("dollars", "tardiness_seconds", "mean_completion_seconds", "makespan_seconds", "deadline_misses"),
        *("decision_seconds_p99", "jobs", "gap"),
    )

    @property
    def dollars(self) -> float:
        """Machines and lateness together."""
        return self.machine_dollars + self.tardiness_dollars

    @property
    def gap(self) -> float | None:
        """By what fraction it costs more than the bound."""
        return self.dollars / self.bound_dollars - 1 if self.bound_dollars else None

    @property
    def tardiness_seconds(self) -> float:
        """How late all jobs ended together."""
        return sum(end.tardiness_seconds for end in self.ends)

    @property
    def mean_completion_seconds(self) -> float:
        """From submission to end, in the mean."""
        if not self.ends:
            return 0.0
        return sum(end.end_seconds - end.submit_seconds for end in self.ends) / len(self.ends)

    @property
    def makespan_seconds(self) -> float:
        """When the last job ended."""
        return max((end.end_seconds for end in self.ends), default=0.0)

    @property
    def deadline_misses(self) -> int:
        """How many jobs ended after their deadline."""
        return sum(end.tardiness_seconds > 0 for end in self.ends)

    @property
    def decision_seconds_p99(self) -> float:
        """What 99 of 100 decisions take at most."""
        seconds = sorted(self.decision_seconds)
        return seconds[min(len(seconds) - 1, int(0.99 * len(seconds)))] if seconds else 0.0

    @property
    def jobs(self) -> int:
        """How many jobs ended."""
        return len(self.ends)
