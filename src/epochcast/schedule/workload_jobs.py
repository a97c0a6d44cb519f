"""The scheduling problem: jobs with deadlines, kinds of machines with prices, and how many may be rented at a time.

    dollars = Σ machines: seconds rented · dollars_per_hour/3600  +  Σ jobs: tardiness_dollars_per_second · max(0, end −
    deadline)

A job runs on GPUs of one device within one machine: a `GpuChoice`. What a policy knows of it are forecast seconds of
the whole run per choice, with an interval. Progress is a fraction: a job that ran x seconds of T has x/T behind it, and
keeps that when it is stopped, moved or resized.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import Any

from epochcast.base.caching import Cache, Derived, derived_property
from epochcast.base.options import check_fields, option, options_of, required
from epochcast.errors import BadInput
from epochcast.interval import Interval


def check_declared(value: object, label: str = "") -> None:
    """Check the fields of a new value as they are declared; a message begins with what it is."""
    try:
        check_fields(value, options_of(type(value)))
    except BadInput as error:
        raise BadInput(f"{label}: {error}" if label else str(error)) from None


def _undeclared() -> Any:
    """A field that is no option and has no default."""
    return field()


@dataclass(frozen=True, slots=True, order=True)
class GpuChoice:
    """So many GPUs of one device, within one machine."""

    device: str
    gpus: int

    def __post_init__(self) -> None:
        if self.gpus < 1:
            raise BadInput(f"a job needs at least one GPU, got {self.gpus}")

    def __str__(self) -> str:
        return f"{self.gpus}x{self.device}"


@dataclass(frozen=True, slots=True)
class NodeType:
    """A kind of machine. A quota of None is as many as there are nodes."""

    name: str = required("Name of the node type.")
    device: str = required("Device of its GPUs.")
    gpus: int = required("GPUs of one machine.", least=1)
    dollars_per_hour: float = required("Price of one machine.", unit="dollars per hour", least=0)
    quota: int | None = option(None, "How many may be rented at a time (in-house: how many there are).", least=0)
    boot_seconds: float = option(0.0, "From renting a machine until jobs can start on it.", unit="seconds", least=0)
    interruptions_per_hour: float = option(0.0, "How often a spot machine is taken away, on average.", least=0)
    slow_fraction: float = option(0.0, "Fraction of the machines that are slow.", least=0, most=1)
    slowdown: float = option(2.0, "How many times as long everything takes on a slow machine.", least=1)
    is_in_house: bool = False
    instance: str | None = option(None, "Name in the catalogue of machines.")

    def __post_init__(self) -> None:
        check_declared(self, f"node type {self.name!r}")

    @property
    def dollars_per_second(self) -> float:
        """The price of a second."""
        return self.dollars_per_hour / 3600


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """One job of the queue, as a policy knows it. `seconds` are forecasts of the whole run, for choices that fit it."""

    id: str = required("Name of the job.")
    submit_seconds: float = required("When the job is submitted.", unit="seconds", least=0)
    deadline_seconds: float = required("When the job should end.", unit="seconds")
    tardiness_dollars_per_second: float = required("Cost of lateness.", unit="dollars per second", least=0)
    seconds: Mapping[GpuChoice, Interval] = _undeclared()
    restart_seconds: float = option(
        0.0, "Added whenever the job is stopped and started again, moved or resized.", unit="seconds", least=0
    )
    checkpoint_seconds: float = option(
        0.0, "Time between two checkpoints, which a failure may cost [default: progress is never lost].", least=0
    )
    is_preemptible: bool = True
    priority: float | None = option(None, "Importance; larger goes first [default: the cost of lateness].")
    budget_dollars: float | None = option(None, "Most that its GPUs may cost.", unit="dollars", above=0)
    after: tuple[str, ...] = option((), "Jobs that must end before this one starts.")

    def __post_init__(self) -> None:
        check_declared(self, f"job {self.id!r}")
        if self.deadline_seconds < self.submit_seconds:
            raise BadInput(
                f"job {self.id!r}: its deadline ({self.deadline_seconds:g} s) is before it is submitted "
                f"({self.submit_seconds:g} s)"
            )
        if not self.seconds:
            raise BadInput(f"job {self.id!r} does not fit on any machine of the list")
        for choice, seconds in self.seconds.items():
            if seconds.low <= 0:
                raise BadInput(f"job {self.id!r}: {seconds.low:g} seconds on {choice}; more than 0 is needed")

    @property
    def rank(self) -> float:
        """What orders jobs by importance: its priority, or what its lateness costs."""
        return self.tardiness_dollars_per_second if self.priority is None else self.priority

    @property
    def fastest_seconds(self) -> float:
        """The shortest whole run."""
        return min(seconds.mid for seconds in self.seconds.values())


@dataclass(frozen=True)
class Fleet:
    """What can be rented: at most `nodes` machines at a time, each of any of the types (within quotas)."""

    nodes: int
    types: tuple[NodeType, ...]
    derived: Derived = field(init=False, compare=False, repr=False, default_factory=partial(Cache, 2))

    def __post_init__(self) -> None:
        if self.nodes < 1:
            raise BadInput(f"at least one node is needed, got {self.nodes}")
        if not self.types:
            raise BadInput("no node type is given")
        names = [kind.name for kind in self.types]
        if len(set(names)) < len(names):
            raise BadInput(f"two node types are called {next(name for name in names if names.count(name) > 1)!r}")

    @derived_property
    def by_device(self) -> Mapping[str, tuple[NodeType, ...]]:
        """The types of every device, the smallest and cheapest first."""
        by_device: dict[str, list[NodeType]] = {}
        for kind in self.types:
            by_device.setdefault(kind.device, []).append(kind)
        return {
            device: tuple(sorted(kinds, key=lambda kind: (kind.gpus, kind.dollars_per_hour, kind.name)))
            for device, kinds in by_device.items()
        }

    @derived_property
    def by_name(self) -> Mapping[str, NodeType]:
        """Every type by its name."""
        return {kind.name: kind for kind in self.types}

    def holds(self, choice: GpuChoice) -> bool:
        """Whether some machine has that many GPUs of the device."""
        kinds = self.by_device.get(choice.device, ())
        return any(kind.gpus >= choice.gpus and kind.quota != 0 for kind in kinds)

    def dollars_per_second(self, choice: GpuChoice) -> float:
        """Of the cheapest machine with exactly so many GPUs; where there is none, of as many GPUs in a full one."""
        exact = [kind.dollars_per_second for kind in self.by_device[choice.device] if kind.gpus == choice.gpus]
        return min(exact) if exact else choice.gpus * self.gpu_dollars_per_second(choice.device)

    def gpu_dollars_per_second(self, device: str) -> float:
        """The least that a GPU of the device costs in a second, in a full machine."""
        return min(kind.dollars_per_second / kind.gpus for kind in self.by_device[device])


@dataclass(frozen=True)
class QueueWorkload:
    """A fleet, the jobs that come, and, for a simulation, what their runs really take."""

    fleet: Fleet
    jobs: tuple[QueuedJob, ...]
    true_seconds: Mapping[str, Mapping[GpuChoice, float]] = field(default_factory=dict)
    failures: "tuple[MachineFailure, ...]" = ()
    stragglers: "tuple[Straggler, ...]" = ()

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for job in self.jobs:
            if job.id in seen:
                raise BadInput(f"two jobs are called {job.id!r}")
            seen.add(job.id)
            if not any(self.fleet.holds(choice) for choice in job.seconds):
                raise BadInput(f"job {job.id!r} does not fit on any machine of the list")
        for fault in order_faults({job.id: job.after for job in self.jobs}).values():
            raise BadInput(fault)

    def run_seconds(self, job: QueuedJob, choice: GpuChoice) -> float:
        """What the whole run really takes; the forecast's middle where nobody says otherwise."""
        truth = self.true_seconds.get(job.id)
        return job.seconds[choice].mid if truth is None else truth[choice]


@dataclass(frozen=True, slots=True)
class MachineFailure:
    """At a time a machine dies: that of the given number among those rented (modulo), or one of a type."""

    at_seconds: float = required("When it happens.", unit="seconds", least=0)
    machine: int = option(0, "Which of the rented machines, by number.", least=0)
    node_type: str | None = option(None, "Node type of the machine.")

    def __post_init__(self) -> None:
        check_declared(self, "a failure")


@dataclass(frozen=True, slots=True)
class Straggler:
    """At a time a machine becomes slow, and stays so while it is rented; which one, as for a failure."""

    at_seconds: float = required("When it happens.", unit="seconds", least=0)
    slowdown: float = required("How many times as long everything takes from then on.", least=1)
    machine: int = option(0, "Which of the rented machines, by number.", least=0)
    node_type: str | None = option(None, "Node type of the machine.")

    def __post_init__(self) -> None:
        check_declared(self, "a straggler")


Incident = MachineFailure | Straggler


def order_faults(after: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Jobs that could never begin, and why: one before them is not in the queue, or comes after them itself."""
    faults: dict[str, str] = {}
    for job, others in after.items():
        missing = next((other for other in others if other not in after), None)
        if missing is not None:
            faults[job] = f"job {job!r} comes after {missing!r}, which is not in the queue"
    while True:
        sorter = TopologicalSorter({job: others for job, others in after.items() if job not in faults})
        try:
            order = tuple(sorter.static_order())
            break
        except CycleError as error:
            circle = error.args[1]
            chain = " after ".join(map(repr, circle))
            faults |= {job: f"job {job!r} comes after itself: {chain}" for job in circle}
    for job in order:
        before = next((other for other in after[job] if other in faults), None)
        if job not in faults and before is not None:
            faults[job] = f"job {job!r} comes after {before!r}, which can never begin"
    return faults
