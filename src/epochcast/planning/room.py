"""Whether a step fits on a GPU, asked as seldom as possible: replays of an allocator are the dearest part of a plan.

More samples never need less memory, so a batch that fits answers for all smaller ones and a batch that does not for
all larger ones. (How blocks happen to lie in a device that is almost full can make an exception of this, and
`epochcast forecast` would see it.) GPUs of one kind that hold the same share of a model are one question.
"""

from dataclasses import dataclass, field
from functools import cached_property
from math import inf

from epochcast.forecasting.placement import Placement
from epochcast.forecasting.strategies.strategy import Strategy
from epochcast.graph.trace import Trace
from epochcast.memory.context import room_bytes
from epochcast.memory.largest import FACTORS
from epochcast.memory.lifetimes import Role
from epochcast.memory.peak import Step, step_on
from epochcast.memory.sharding import Shares


@dataclass
class _Known:
    """A step on one kind of GPU: the room for it, and between which batches it ceases to fit."""

    step: Step
    room_bytes: int
    fitting: float = 0
    failing: float = inf
    safe: int | None = None

    @cached_property
    def saved_bytes(self) -> int:
        live = self.step.live_bytes(1)[[Role.PARAMETERS, Role.OPTIMIZER_STATE]]
        return int(live.max(axis=1).sum())

    def fits(self, batch: int) -> bool:
        if self.fitting < batch < self.failing:
            if self.step.fits(batch, self.room_bytes):
                self.fitting = batch
            else:
                self.failing = batch
        return batch <= self.fitting


@dataclass(frozen=True)
class Room:
    """What is known so far of a model's memory."""

    shares: dict[tuple[Strategy, int, int], Shares] = field(default_factory=dict)
    known: dict[tuple[str, Shares], _Known] = field(default_factory=dict)

    def fits(self, trace: Trace, placement: Placement) -> bool:
        """Whether a GPU holds the step at the trace's batch."""
        return self._known(trace, placement).fits(trace.batch)

    def largest(self, trace: Trace, placement: Placement, most: int) -> int:
        """The largest power of two, up to `most`, that a GPU holds almost surely; 0 where not even one sample."""
        known = self._known(trace, placement)
        if known.safe is None:
            batch = power_of_two(most)
            while batch and not known.step.fits(batch, int(known.room_bytes / FACTORS["safe"])):
                batch //= 2
            known.safe, known.fitting = batch, max(known.fitting, batch)
        return known.safe

    def saved_bytes(self, trace: Trace, placement: Placement) -> int:
        """What a checkpoint of a GPU writes: its parameters and optimizer state, whatever the batch."""
        return self._known(trace, placement).saved_bytes

    def _known(self, trace: Trace, placement: Placement) -> _Known:
        held = placement.strategy, placement.gpus, trace.batch
        if held not in self.shares:
            self.shares[held] = placement.strategy.memory_shares(trace, placement.gpus)
        key = placement.device.name, self.shares[held]
        if key not in self.known:
            step = step_on(trace, placement.device, shares=self.shares[held])
            self.known[key] = _Known(step, room_bytes(placement.device))
        return self.known[key]


def power_of_two(most: int) -> int:
    """The largest power of two that is no more than `most`, which is at least 1."""
    return 1 << most.bit_length() - 1
