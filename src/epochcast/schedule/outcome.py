"""What a simulation ended with: bills, ends of jobs, who was where and when."""

from dataclasses import dataclass, field
from typing import Any

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
class Stay:
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
class SimulationOutcome:
    """The account of a simulation, filled while it runs."""

    machine_dollars: float = 0.0
    tardiness_dollars: float = 0.0
    preemptions: int = 0
    moves: int = 0
    resizes: int = 0
    failures: int = 0
    stragglers: int = 0
    most_machines: int = 0
    ends: list[JobEnd] = field(default_factory=list)
    stays: list[Stay] = field(default_factory=list)
    rentals: list[Rental] = field(default_factory=list)
    decision_seconds: list[float] = field(default_factory=list)

    @property
    def dollars(self) -> float:
        """Machines and lateness together."""
        return self.machine_dollars + self.tardiness_dollars

    @property
    def late_jobs(self) -> int:
        """How many ended after their deadline."""
        return sum(end.tardiness_seconds > 0 for end in self.ends)

    def as_dict(self) -> dict[str, Any]:
        """By the names of the JSON contract."""
        ends = self.ends
        waits = sorted(self.decision_seconds)
        return {
            "dollars": self.dollars,
            "machine_dollars": self.machine_dollars,
            "tardiness_dollars": self.tardiness_dollars,
            "tardiness_seconds": sum(end.tardiness_seconds for end in ends),
            "mean_completion_seconds": sum(e.end_seconds - e.submit_seconds for e in ends) / len(ends) if ends else 0.0,
            "makespan_seconds": max((end.end_seconds for end in ends), default=0.0),
            "deadline_misses": self.late_jobs,
            "decision_seconds_p99": waits[min(len(waits) - 1, int(0.99 * len(waits)))] if waits else 0.0,
            "jobs": len(ends),
            "preemptions": self.preemptions,
            "moves": self.moves,
            "resizes": self.resizes,
            "failures": self.failures,
            "stragglers": self.stragglers,
            "most_machines": self.most_machines,
        }
