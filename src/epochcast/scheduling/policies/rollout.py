"""Apparent tardiness cost with roll-outs: many settings are played to the end of the queue, the best first decision counts.

The settings differ in how much waiting jobs raise the price of a GPU, in how far ahead urgency looks, and in how much
counts what waiting adds to a job's own bill; around the best of them the order of jobs is perturbed at random. As many
roll-outs are made as a fixed amount of work allows, so that decisions over hundreds of jobs stay quick and the same state
always gets the same answer. Jobs that may come later were played along, too (drawn from those that came): it gained nothing.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from epochcast.scheduling.policies.arrays import Arrays, arrays
from epochcast.scheduling.state import Decision, State

# Chosen on two overloaded workloads (ten and twenty nodes) among 0 to 64, 0.03 to 5 and 0 to 20.
CONGESTION = (3.0, 0.0, 4.0, 2.0, 6.0)
AHEAD = (0.1, 0.03, 0.3)
LOSSES = (5.0, 1.0)
SETTINGS = tuple((congestion, ahead, loss) for loss, ahead, congestion in product(LOSSES, AHEAD, CONGESTION))
# Width (log) of the perturbations of the order of jobs.
NOISES = (0.3, 1.0)
PERTURBED = 40
# Elementary steps that one decision may take: some tenths of a second on one core.
WORK = 3e7

Setting = tuple[float, float, float]


@dataclass(slots=True)
class RollOut:
    """The default policy. `keeps`: who runs keeps its GPUs to the end; `resizes`: a job may go on with other GPUs."""

    keeps: bool = False
    resizes: bool = True
    perturbed: int = PERTURBED
    seed: int = 0
    settings: tuple[Setting, ...] = SETTINGS
    wake_seconds: float | None = None

    def __call__(self, state: State) -> Decision:
        """The first decision of the best roll-out."""
        told = arrays(state, self.keeps, self.resizes)
        jobs, choices = told.whole.shape
        affordable = max(4, int(WORK / (jobs * jobs * (choices * choices + 20))))
        best = _Best(told, self.keeps)
        for setting in self.settings[: affordable if jobs > 1 else 1]:
            best.try_out(setting, np.ones(jobs))
        random = np.random.default_rng([self.seed, int(state.seconds) % 2**31, jobs])
        perturbed = min(self.perturbed, affordable - len(self.settings)) if jobs > 1 else 0
        for number in range(perturbed):
            width = NOISES[number % len(NOISES)]
            best.try_out(best.setting, np.exp(random.normal(0.0, width, jobs)))
        self.wake_seconds = best.wake_seconds
        return told.decision(best.chosen)


@dataclass(slots=True)
class Index:
    """One setting without roll-outs: apparent tardiness cost as it is."""

    keeps: bool = False
    resizes: bool = True
    setting: Setting = (3.0, 0.1, 5.0)
    wake_seconds: float | None = None

    def __call__(self, state: State) -> Decision:
        """Who comes first by the index."""
        from epochcast.scheduling.policies.kernel import FAR, dispatch

        told = arrays(state, self.keeps, self.resizes)
        jobs = len(told.whole)
        chosen = np.empty(jobs, np.int64)
        wake = dispatch(
            told.now, np.ones(jobs, np.bool_), told.left, told.whole, told.owed, told.restart, told.pay, told.due, told.weight,
            told.now_on, told.held, np.ones(jobs), *told.place, *self.setting, chosen,
        )  # fmt: skip
        self.wake_seconds = float(wake) if wake < FAR else None
        return told.decision(chosen)


class _Best:
    """The best roll-out so far."""

    def __init__(self, told: Arrays, keeps: bool) -> None:
        self.told, self.keeps = told, keeps
        self.dollars = np.inf
        self.chosen: npt.NDArray[np.int64] = np.full(len(told.whole), -1)
        self.setting: Setting = (0.0, 1.0, 1.0)
        self.wake_seconds: float | None = None

    def try_out(self, setting: Setting, noise: npt.NDArray[np.float64]) -> None:
        """Play a setting to the end; keep its first decision if nothing was cheaper."""
        from epochcast.scheduling.policies.kernel import FAR, roll_out

        told = self.told
        first = np.empty(len(told.whole), np.int64)
        dollars, wake = roll_out(
            told.now, told.left, told.whole, told.owed, told.restart, told.pay, told.due, told.weight, told.now_on,
            told.held, noise, *told.place, *setting, self.keeps, first, self.dollars,
        )  # fmt: skip
        if dollars < self.dollars:
            self.dollars, self.chosen, self.setting = dollars, first, setting
            self.wake_seconds = float(wake) if wake < FAR else None

