"""What a scheduler sees at a moment: the clock, the jobs that were submitted and have not ended, the machines rented.

One object, cheap to copy: what a policy decides follows from it alone. `left` is the fraction of the whole run that is
still to do, as far as anybody knows; `owed_seconds` pass before progress goes on (booting, restarting).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from epochcast.schedule.workload_jobs import Fleet, GpuChoice, NodeType, QueuedJob


@dataclass(slots=True)
class LiveJob:
    """A job between submission and end. `pace` is observed over forecast seconds: 1 until it is known better."""

    job: QueuedJob
    left: float = 1.0
    owed_seconds: float = 0.0
    choice: GpuChoice | None = None
    alone: bool = False
    machine: int | None = None
    has_run: bool = False
    pace: float = 1.0
    is_observed: bool = False
    served_gpu_seconds: float = 0.0
    last_choice: GpuChoice | None = None

    @property
    def is_running(self) -> bool:
        """Whether it has GPUs now."""
        return self.choice is not None

    def run_seconds(self, choice: GpuChoice) -> float:
        """The whole run with a choice, as it is believed now."""
        return self.job.seconds[choice].mid * self.pace

    def seconds_left(self, choice: GpuChoice) -> float:
        """Until its end, were it to run with a choice from now on; with its restart where that is a change."""
        if choice == self.choice:
            return self.owed_seconds + self.left * self.run_seconds(choice)
        restart = self.job.restart_seconds if self.has_run else 0.0
        return restart + self.left * self.run_seconds(choice)


@dataclass(frozen=True, slots=True)
class RentedMachine:
    """A rented machine and who is on it: jobs with their numbers of GPUs."""

    number: int
    kind: NodeType
    residents: tuple[tuple[str, int], ...]
    is_exclusive: bool = False

    def without(self, job: str) -> "RentedMachine":
        """The same machine when a job has left it."""
        return replace(self, residents=tuple(resident for resident in self.residents if resident[0] != job))


@dataclass(slots=True)
class QueueState:
    """Everything at one moment. `live` is in order of submission."""

    fleet: Fleet
    seconds: float = 0.0
    live: dict[str, LiveJob] = field(default_factory=dict)
    machines: tuple[RentedMachine, ...] = ()
    next_machine_number: int = 0

    def copy(self) -> "QueueState":
        """A copy that can be changed without changing this one."""
        return QueueState(self.fleet, self.seconds, self._copied(), self.machines, self.next_machine_number)

    def _copied(self) -> dict[str, LiveJob]:
        return {name: replace(live) for name, live in self.live.items()}

    @property
    def waiting(self) -> list[LiveJob]:
        """Who has no GPU, in order of submission."""
        return [live for live in self.live.values() if live.choice is None]

    @property
    def running(self) -> list[LiveJob]:
        """Who has GPUs, in order of submission."""
        return [live for live in self.live.values() if live.choice is not None]


@dataclass(frozen=True, slots=True)
class GpuGrant:
    """What a job gets: a choice, and whether nobody else may be on its machine."""

    choice: GpuChoice
    alone: bool = False


Decision = Mapping[str, GpuGrant]
"""Who runs from now on, and with what; whoever is not named waits."""


def unchanged(state: QueueState) -> dict[str, GpuGrant]:
    """The decision that changes nothing."""
    return {live.job.id: GpuGrant(live.choice, live.alone) for live in state.live.values() if live.choice is not None}


def dollars_per_second(machines: Iterable[RentedMachine]) -> float:
    """What rented machines cost in a second."""
    return sum(machine.kind.dollars_per_second for machine in machines)
