"""A state as arrays, one row per live job, for the compiled policies."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from epochcast.scheduling.state import Decision, LiveJob, Placed, State
from epochcast.scheduling.workload import Choice, Fleet

if TYPE_CHECKING:
    from epochcast.scheduling.policies.dispatching import Place, Queue

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

IMPOSSIBLE_SECONDS = 1e30
"""The run of a job with a choice that it does not have."""


@dataclass(frozen=True, slots=True)
class Arrays:
    """Rows are jobs in order of submission, columns of `whole` are choices; `now_on` is −1 for who waits."""

    names: tuple[str, ...]
    choices: tuple[Choice, ...]
    now: float
    left: Floats
    whole: Floats
    owed: Floats
    restart: Floats
    pay: Floats
    due: Floats
    weight: Floats
    now_on: Whole
    held: npt.NDArray[np.bool_]
    rate: Floats
    device: Whole
    gpus: Whole
    size: Whole
    quota: Whole
    nodes: int
    capacity: float

    def queue(self) -> "Queue":
        """The jobs, as the compiled functions take them."""
        from epochcast.scheduling.policies.dispatching import Queue

        fixed = (self.left, self.whole, self.owed, self.restart, self.pay, self.due, self.weight)
        least = (self.whole * self.rate).min(axis=1)
        return Queue(*fixed, self.now_on, self.held, least, self.whole.min(axis=1), self._steps())

    def _steps(self) -> Whole:
        """Of each job the choices of which none is slower and dearer than another, from fast to slow; then −1."""
        found = np.full(self.whole.shape, -1, np.int64)
        dollars = self.whole * self.rate
        by_seconds = np.argsort(self.whole, axis=1, kind="stable")
        least = np.full(len(self.whole), np.inf)
        count = np.zeros(len(self.whole), np.int64)
        rows = np.arange(len(self.whole))
        for column in by_seconds.T:
            cheaper = (dollars[rows, column] < least) & (self.whole[rows, column] < IMPOSSIBLE_SECONDS)
            found[rows[cheaper], count[cheaper]] = column[cheaper]
            least[cheaper] = dollars[rows, column][cheaper]
            count += cheaper
        return found

    def place(self) -> "Place":
        """The choices and the machines, as the compiled functions take them."""
        from epochcast.scheduling.policies.dispatching import Place

        return Place(self.rate, self.device, self.gpus, self.size, self.quota, self.nodes, self.capacity)

    def decision(self, chosen: Whole) -> Decision:
        """Choices by number as a decision."""
        named = zip(self.names, chosen, strict=True)
        return {name: Placed(self.choices[choice]) for name, choice in named if choice >= 0}


def arrays(state: State, keeps: bool = False, resizes: bool = True) -> Arrays:
    """The live jobs.

    `keeps`: who runs is held to what it has; without `resizes` a job that has run keeps its choice.
    """
    fleet = state.fleet
    devices = tuple(fleet.by_device)
    live = list(state.live.values())
    choices = tuple(sorted({c for one in live for c in one.job.seconds if fleet.holds(c)}))
    number = {choice: index for index, choice in enumerate(choices)}
    size = np.array([max(kind.gpus for kind in fleet.by_device[d]) for d in devices], np.int64)
    quota = np.array([_machines(fleet, device) for device in devices], np.int64)
    most = np.sort(size.repeat(quota))[::-1][: fleet.nodes]
    return Arrays(
        names=tuple(one.job.id for one in live),
        choices=choices,
        now=state.seconds,
        left=np.array([one.left for one in live]),
        whole=_whole(live, number, resizes),
        owed=np.array([one.owed_seconds for one in live]),
        restart=np.array([one.job.restart_seconds if one.has_run else 0.0 for one in live]),
        pay=np.array([one.job.restart_seconds for one in live]),
        due=np.array([one.job.deadline_seconds for one in live]),
        weight=np.array([one.job.tardiness_dollars_per_second for one in live]),
        now_on=np.array([-1 if one.choice is None else number[one.choice] for one in live], np.int64),
        held=np.array([one.choice is not None and (keeps or not one.job.is_preemptible) for one in live]),
        rate=np.array([fleet.dollars_per_second(c) for c in choices]),
        device=np.array([devices.index(c.device) for c in choices], np.int64),
        gpus=np.array([c.gpus for c in choices], np.int64),
        size=size,
        quota=quota,
        nodes=fleet.nodes,
        capacity=float(most.sum()),
    )


def _whole(live: list[LiveJob], number: dict[Choice, int], resizes: bool) -> Floats:
    whole = np.full((len(live), len(number)), IMPOSSIBLE_SECONDS)
    for row, one in enumerate(live):
        for choice in one.job.seconds:
            is_open = resizes or one.last_choice in (None, choice)
            if choice in number and is_open:
                whole[row, number[choice]] = one.whole_seconds(choice)
    return whole


def _machines(fleet: Fleet, device: str) -> int:
    """How many of the largest machines of a device may be rented; smaller ones are left out where quotas bind."""
    kinds = fleet.by_device[device]
    most = max(kind.gpus for kind in kinds)
    quotas = [kind.quota for kind in kinds if kind.gpus == most]
    return fleet.nodes if None in quotas else min(fleet.nodes, sum(quota or 0 for quota in quotas))
