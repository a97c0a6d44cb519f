"""A state as arrays, one row per live job, for the compiled policies.

Machines come in *pools*. Where no quota binds, a device is one pool of its largest machines: renting finds the types.
Where one does, every type of the device is a pool of its own, with its own price and number: a free machine of one's
own does not make those rented beside it look free, and small ones count where there are no more large ones. A job's
choice then is there once for every pool that holds it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from epochcast.schedule.queue_state import Decision, GpuGrant, LiveJob, QueueState
from epochcast.schedule.workload_jobs import Fleet, GpuChoice, NodeType

if TYPE_CHECKING:
    from epochcast.schedule.policies.atc_dispatch import DispatchPlaces, DispatchQueue

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

IMPOSSIBLE_SECONDS = 1e30
"""The run of a job with a choice that it does not have."""


@dataclass(frozen=True, slots=True)
class StateArrays:
    """Rows are jobs in order of submission, columns of `run_seconds` are choices; `now_on` is −1 for who waits.

    `device` is the pool of a choice; `size` and `quota` are of pools; `is_limited`: some quota binds.
    """

    names: tuple[str, ...]
    choices: tuple[GpuChoice, ...]
    now: float
    left: Floats
    run_seconds: Floats
    owed: Floats
    restart: Floats
    pay: Floats
    due: Floats
    weight: Floats
    now_on: Ints
    held: npt.NDArray[np.bool_]
    rate: Floats
    device: Ints
    gpus: Ints
    size: Ints
    quota: Ints
    nodes: int
    capacity: float
    is_limited: bool = False

    def queue(self) -> "DispatchQueue":
        """The jobs, as the compiled functions take them."""
        from epochcast.schedule.policies.atc_dispatch import DispatchQueue

        fixed = (self.left, self.run_seconds, self.owed, self.restart, self.pay, self.due, self.weight)
        least = (self.run_seconds * self.rate).min(axis=1)
        return DispatchQueue(*fixed, self.now_on, self.held, least, self.run_seconds.min(axis=1), self._steps())

    def _steps(self) -> Ints:
        """Of each job the choices of which none is slower and dearer than another, from fast to slow; then −1."""
        steps = np.full(self.run_seconds.shape, -1, np.int64)
        dollars = self.run_seconds * self.rate
        by_seconds = np.argsort(self.run_seconds, axis=1, kind="stable")
        least = np.full(len(self.run_seconds), np.inf)
        count = np.zeros(len(self.run_seconds), np.int64)
        rows = np.arange(len(self.run_seconds))
        for column in by_seconds.T:
            cheaper = (dollars[rows, column] < least) & (self.run_seconds[rows, column] < IMPOSSIBLE_SECONDS)
            steps[rows[cheaper], count[cheaper]] = column[cheaper]
            least[cheaper] = dollars[rows, column][cheaper]
            count += cheaper
        return steps

    def place(self) -> "DispatchPlaces":
        """The choices and the machines, as the compiled functions take them."""
        from epochcast.schedule.policies.atc_dispatch import DispatchPlaces

        return DispatchPlaces(self.rate, self.device, self.gpus, self.size, self.quota, self.nodes, self.capacity)

    def decision(self, chosen: Ints) -> Decision:
        """Choices by number as a decision."""
        named = zip(self.names, chosen, strict=True)
        return {name: GpuGrant(self.choices[choice]) for name, choice in named if choice >= 0}


def arrays_of(state: QueueState, keeps: bool = False, resizes: bool = True) -> StateArrays:
    """The live jobs.

    `keeps`: who runs is held to what it has; without `resizes` a job that has run keeps its choice.
    """
    fleet = state.fleet
    jobs = list(state.live.values())
    pools = _pools(fleet)
    wanted = sorted({choice for live in jobs for choice in live.job.seconds})
    columns = [(choice, number) for choice in wanted for number, pool in enumerate(pools) if pool.holds(choice)]
    size = np.array([pool.size for pool in pools], np.int64)
    quota = np.array([pool.machines for pool in pools], np.int64)
    most = np.sort(size.repeat(quota))[::-1][: fleet.nodes]
    return StateArrays(
        names=tuple(live.job.id for live in jobs),
        choices=tuple(choice for choice, _ in columns),
        now=state.seconds,
        left=np.array([live.left for live in jobs]),
        run_seconds=_run_seconds(jobs, columns, resizes),
        owed=np.array([live.owed_seconds for live in jobs]),
        restart=np.array([live.job.restart_seconds if live.has_run else 0.0 for live in jobs]),
        pay=np.array([live.job.restart_seconds for live in jobs]),
        due=np.array([live.job.deadline_seconds for live in jobs]),
        weight=np.array([live.job.tardiness_dollars_per_second for live in jobs]),
        now_on=np.array(_now_on(state, pools, columns), np.int64),
        held=np.array([live.choice is not None and (keeps or not live.job.is_preemptible) for live in jobs]),
        rate=np.array([pools[pool].dollars_per_second(choice) for choice, pool in columns]),
        device=np.array([pool for _, pool in columns], np.int64),
        gpus=np.array([choice.gpus for choice, _ in columns], np.int64),
        size=size,
        quota=quota,
        nodes=fleet.nodes,
        capacity=float(most.sum()),
        is_limited=bool((quota < fleet.nodes).any()),
    )


def _run_seconds(jobs: list[LiveJob], columns: list[tuple[GpuChoice, int]], resizes: bool) -> Floats:
    run_seconds = np.full((len(jobs), len(columns)), IMPOSSIBLE_SECONDS)
    for row, live in enumerate(jobs):
        for column, (choice, _) in enumerate(columns):
            is_open = resizes or live.last_choice in (None, choice)
            if choice in live.job.seconds and is_open:
                run_seconds[row, column] = live.run_seconds(choice)
    return run_seconds


def _now_on(state: QueueState, pools: tuple["_Pool", ...], columns: list[tuple[GpuChoice, int]]) -> list[int]:
    """The choice of everybody who runs, in the pool of the machine it is on; −1 for who waits."""
    kinds = {machine.number: machine.kind.name for machine in state.machines}
    number = {column: index for index, column in enumerate(columns)}
    columns_now = []
    for live in state.live.values():
        if live.choice is None or live.machine is None:
            columns_now.append(-1)
            continue
        holding = [index for index, pool in enumerate(pools) if pool.holds(live.choice)]
        own_pools = [index for index in holding if pools[index].has(kinds.get(live.machine))]
        columns_now.append(number[live.choice, (own_pools or holding)[0]])
    return columns_now


@dataclass(frozen=True, slots=True)
class _Pool:
    """Machines of a device that are alike for a decision: so many, with so many GPUs each at most."""

    fleet: Fleet
    kinds: tuple[NodeType, ...]
    size: int
    machines: int

    def holds(self, choice: GpuChoice) -> bool:
        """Whether there are machines that have the GPUs."""
        return self.machines > 0 and self.kinds[0].device == choice.device and choice.gpus <= self.size

    def has(self, name: str | None) -> bool:
        """Whether a type belongs to it."""
        return any(kind.name == name for kind in self.kinds)

    def dollars_per_second(self, choice: GpuChoice) -> float:
        """Of the GPUs of a choice: their share of a machine, where this is one type's."""
        if len(self.kinds) > 1:
            return self.fleet.dollars_per_second(choice)
        return self.kinds[0].dollars_per_second * choice.gpus / self.size


def _pools(fleet: Fleet) -> tuple[_Pool, ...]:
    pools = []
    for kinds in fleet.by_device.values():
        if all(kind.quota is None or kind.quota >= fleet.nodes for kind in kinds):
            pools.append(_Pool(fleet, kinds, max(kind.gpus for kind in kinds), fleet.nodes))
        else:
            quotas = [fleet.nodes if kind.quota is None else min(fleet.nodes, kind.quota) for kind in kinds]
            pools += [_Pool(fleet, (kind,), kind.gpus, quota) for kind, quota in zip(kinds, quotas, strict=True)]
    return tuple(pools)
