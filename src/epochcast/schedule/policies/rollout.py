"""Apparent tardiness cost with roll-outs: many settings are played to the end of the queue, the best one's decision
counts.

The settings differ in how much waiting jobs raise the price of a GPU, in how far ahead urgency looks, and in how much
counts what waiting adds to a job's own bill. One goes by time to spare, as greedy does. Then the order of jobs is
searched: around the best roll-out so far the places of some jobs are perturbed at random, and what is cheaper becomes
the new middle. Roll-outs are made until a fixed amount of work is done (jobs looked at, not seconds), so that decisions
over hundreds of jobs stay quick and the same state always gets the same answer. Jobs that may come later were played
along, too (drawn from those that came): it gained nothing.
"""

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from epochcast.schedule.policies.ordered_policies import packable
from epochcast.schedule.policies.state_arrays import StateArrays, arrays_of
from epochcast.schedule.queue_state import Decision, GpuGrant, QueueState

if TYPE_CHECKING:
    from epochcast.schedule.policies.atc_dispatch import RollOutSetting

Weights = tuple[float, float, float, float]
"""Congestion, look-ahead, loss by waiting, patience."""

# Chosen on two overloaded workloads (ten and twenty nodes) among 0 to 64, 0.03 to 5 and 0 to 20.
CONGESTION = (3.0, 0.0, 4.0, 2.0, 6.0)
AHEAD = (0.1, 0.03, 0.3)
LOSSES = (5.0, 1.0)
# Another choice than the best is taken only if it costs at most so many times as much; otherwise the job waits. Who may
# be resized later takes what there is.
TAKE_ANY = 1e30
PATIENCE = (1.0, 1.3, 2.0, TAKE_ANY)
SETTINGS = tuple((congestion, ahead, loss, TAKE_ANY) for loss, ahead, congestion in product(LOSSES, AHEAD, CONGESTION))
# Where quotas bind, waiting for a cheap machine may be better than a dear one at once, though a job may move later.
PATIENT = tuple((congestion, 0.1, 1.0, p) for congestion, p in product((3.0, 0.0), (1.0, 2.0)))
# Orders jobs by time to spare, as greedy does: where few roll-outs can be made, none is far above greedy.
BY_SLACK: Weights = (0.0, 0.0, 0.0, TAKE_ANY)
KEEPING = tuple((congestion, ahead, 1.0, p) for ahead, congestion, p in product((0.1, 0.3), (0.0, 1.0, 3.0), PATIENCE))
# Without preemption, the share of GPUs kept for jobs that cannot wait, and how long before it must a job begins. Chosen
# on the reference workload of high load, where 0.1, 0.2 and 0.3 save 12, 15 and 15 % against edf, and none 8 %. On nine
# drawn ones of high load all change next to nothing; on one in overload they cost 1 (0.2) and 21 % (0.3). Keeping none
# while jobs wait that find no place saves 13 % and costs 2 %.
RESERVE = 0.2
MARGIN_SECONDS = 600.0
# Width (log) of the perturbations of the order of jobs, and the share of jobs that one perturbs.
NOISES = (0.3, 1.0)
PERTURBED_FRACTION = 0.25
PERTURBED = 150
# Jobs that all roll-outs of a decision together may look at: about a third of a second on one core of 2020.
WORK = 700_000


@dataclass(slots=True)
class RollOut:
    """The default policy. `keeps`: who runs keeps its GPUs to the end; `resizes`: a job may go on with other GPUs.

    `work` is how many jobs all roll-outs of a decision may look at: less is quicker, and worse.
    """

    keeps: bool = False
    resizes: bool = True
    perturbed: int = PERTURBED
    seed: int = 0
    work: int = WORK
    wake_seconds: float | None = None

    def __call__(self, state: QueueState) -> Decision:
        """The first decision of the best roll-out."""
        arrays = arrays_of(state, self.keeps, self.resizes)
        jobs = len(arrays.run_seconds)
        may_change = self.resizes and not self.keeps
        best = _BestRollOut(arrays)
        weights = SETTINGS if may_change else KEEPING
        if may_change and arrays.is_limited:
            weights = (*weights[:1], *PATIENT, *weights[1:])
        settings = [_setting(each, may_change, self.keeps) for each in weights]
        if may_change:
            settings.insert(1, _setting(BY_SLACK, may_change, self.keeps, by_slack=True))
        for setting in settings:
            best.try_out(setting, np.ones(jobs))
            if best.work > self.work or jobs < 2:
                break
        random = np.random.default_rng([self.seed, int(state.seconds) % 2**31, jobs])
        for number in range(self.perturbed if jobs > 1 else 0):
            if best.work > self.work:
                break
            moved = random.random(jobs) < PERTURBED_FRACTION
            best.try_out(
                best.setting, best.noise * np.exp(moved * random.normal(0.0, NOISES[number % len(NOISES)], jobs))
            )
        self.wake_seconds = best.wake_seconds
        decision = _packed(state, arrays, best.chosen)
        if not self.keeps:
            return decision
        reserved, wake = with_reserve(state, decision, arrays.capacity)
        self.wake_seconds = min((seconds for seconds in (wake, best.wake_seconds) if seconds is not None), default=None)
        return reserved


@dataclass(slots=True)
class AtcIndex:
    """One setting without roll-outs: apparent tardiness cost as it is."""

    keeps: bool = False
    resizes: bool = True
    weights: Weights = SETTINGS[0]
    wake_seconds: float | None = None

    def __call__(self, state: QueueState) -> Decision:
        """Who comes first by the index."""
        from epochcast.schedule.policies.atc_dispatch import FAR, first_decision

        arrays = arrays_of(state, self.keeps, self.resizes)
        chosen = np.empty(len(arrays.run_seconds), np.int64)
        setting = _setting(self.weights, self.resizes and not self.keeps, self.keeps)
        wake = first_decision(arrays.queue(), arrays.place(), setting, arrays.now, np.ones(len(chosen)), chosen)
        self.wake_seconds = float(wake) if wake < FAR else None
        return _packed(state, arrays, chosen)


def _packed(state: QueueState, arrays: StateArrays, chosen: npt.NDArray[np.int64]) -> Decision:
    """The decision that machines can be rented for: of those that would start now the last are left out first."""
    decision = dict(arrays.decision(chosen))
    starting = [name for name in reversed(decision) if state.live[name].choice is None]
    return packable(state, decision, starting)


def with_reserve(state: QueueState, decision: Decision, gpus: float) -> tuple[Decision, float | None]:
    """Where nobody may be stopped: jobs that can begin later wait while few GPUs would be left.

    The last GPUs are kept for jobs to come that cannot wait. Who waits begins when it must, to be in time with the
    choice it would have had, or when GPUs are free again. Returns the decision, and after how many seconds the first
    must begin. Of `gpus` there are so many in all.
    """
    spare = {name: _spare_seconds(state, name, placed) for name, placed in decision.items()}
    used = sum(placed.choice.gpus for placed in decision.values())
    held: list[str] = []
    for name in sorted(decision, key=lambda name: -spare[name]):
        if used <= (1 - RESERVE) * gpus or len(held) + 1 == len(decision):
            break
        if state.live[name].choice is None and spare[name] > MARGIN_SECONDS:
            held.append(name)
            used -= decision[name].choice.gpus
    wake = min((spare[name] - MARGIN_SECONDS for name in held), default=None)
    return {name: placed for name, placed in decision.items() if name not in held}, wake


def _spare_seconds(state: QueueState, name: str, placed: GpuGrant) -> float:
    """How much later a job could begin and still be in time."""
    live = state.live[name]
    return live.job.deadline_seconds - state.seconds - live.seconds_left(placed.choice)


def _setting(weights: Weights, may_change: bool, keeps: bool, by_slack: bool = False) -> "RollOutSetting":
    from epochcast.schedule.policies.atc_dispatch import RollOutSetting

    return RollOutSetting(*weights, may_change, keeps, by_slack)


class _BestRollOut:
    """The best roll-out so far."""

    def __init__(self, arrays: StateArrays) -> None:
        self.arrays, self.queue, self.place = arrays, arrays.queue(), arrays.place()
        self.dollars, self.work = np.inf, 0
        self.noise = np.ones(len(arrays.run_seconds))
        self.chosen: npt.NDArray[np.int64] = np.full(len(arrays.run_seconds), -1)
        self.setting = _setting(SETTINGS[0], True, False)
        self.wake_seconds: float | None = None

    def try_out(self, setting: "RollOutSetting", noise: npt.NDArray[np.float64]) -> None:
        """Play a setting to the end; keep its first decision if nothing was cheaper."""
        from epochcast.schedule.policies.atc_dispatch import FAR
        from epochcast.schedule.policies.atc_rollout_kernel import roll_out

        first = np.empty(len(self.chosen), np.int64)
        dollars, wake, work = roll_out(self.queue, self.place, setting, self.arrays.now, noise, first, self.dollars)
        self.work += work
        if dollars < self.dollars:
            self.dollars, self.chosen, self.setting, self.noise = dollars, first, setting, noise
            self.wake_seconds = float(wake) if wake < FAR else None
