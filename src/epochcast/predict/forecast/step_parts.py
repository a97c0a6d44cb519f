"""What a step is made of: exposed seconds that sum to it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epochcast.base.record import Record, json_hidden
from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.trace import PHASES, Trace
from epochcast.predict.forecast.streams import Seconds, kernel_ends

FORWARD, BACKWARD, UPDATE = (PHASES.index(p) for p in (Phase.FORWARD, Phase.BACKWARD, Phase.UPDATE))


@dataclass(frozen=True, slots=True)
class StepParts(Record):
    """Exposed seconds of a step, middle values. `bubble` is the part of `exposed_comm` that waits for other stages."""

    forward: float
    backward: float
    update: float
    exposed_comm: float
    exposed_input: float
    host: float
    bubble: float = json_hidden(default=0.0)

    @property
    def total_seconds(self) -> float:
        """The whole step."""
        return self.forward + self.backward + self.update + self.exposed_comm + self.exposed_input + self.host

    def scaled(self, factor: float) -> "StepParts":
        """Every part `factor` times as long."""
        return StepParts(*(getattr(self, name) * factor for name in self.__slots__))


@dataclass(frozen=True)
class Kernels:
    """The kernels of a step and their launches, apart: forward and backward, then the update."""

    trace: Trace
    seconds: Seconds
    launches: Seconds

    @property
    def is_update(self) -> NDArray[np.bool_]:
        """Which entries belong to the update."""
        return self.trace.in_phase(UPDATE)

    @property
    def passes(self) -> tuple[Seconds, Seconds]:
        """Kernels and launches of forward and backward."""
        mask = ~self.is_update
        return self.seconds[mask], self.launches[mask]

    @property
    def alone_seconds(self) -> float:
        """When forward and backward are done that exchange nothing."""
        ends = kernel_ends(*self.passes)
        return float(ends[-1]) if len(ends) else 0.0

    def busy_seconds(self, phase: int) -> float:
        """Kernels of one phase."""
        return float(self.seconds[self.trace.in_phase(phase)].sum())


def assembled(
    kernels: Kernels,
    *,
    alone_seconds: float | None = None,
    comm_seconds: float = 0.0,
    repeated_comm_seconds: float = 0.0,
    behind_seconds: float = 0.0,
    update_fraction: float = 1.0,
) -> StepParts:
    """The parts of a step whose forward and backward take `alone_seconds` without any exchange (None: as long as their
    kernels and launches).

    What the last pass exposes is `comm_seconds`, every earlier one (gradient accumulation) `repeated_comm_seconds`; the
    update begins when the last gradients have arrived, works on `update_fraction` of the parameters and is followed by
    `behind_seconds` of exchange.
    """
    alone_seconds = kernels.alone_seconds if alone_seconds is None else alone_seconds
    forward, backward = kernels.busy_seconds(FORWARD), kernels.busy_seconds(BACKWARD)
    updating = kernels.seconds[kernels.is_update] * update_fraction
    launching = kernels.launches[kernels.is_update]
    update = float(updating.sum())
    arrived = alone_seconds + comm_seconds
    total = _update_end(updating, launching, arrived, float(kernels.launches.sum() - launching.sum()))
    again = kernels.trace.recipe.accumulate - 1
    repeated = alone_seconds - forward - backward  # the host's share of one forward and backward
    host = total - comm_seconds - forward - backward - update + again * max(0.0, repeated)
    comm = comm_seconds + again * repeated_comm_seconds + behind_seconds
    return StepParts((again + 1) * forward, (again + 1) * backward, update, comm, 0.0, max(0.0, host))


def _update_end(kernels: Seconds, launches: Seconds, arrived_seconds: float, launched_seconds: float) -> float:
    """When the update is done that may begin once the gradients have arrived; its launches follow all the others."""
    if not len(kernels):
        return arrived_seconds
    # The wait is a kernel in front of the others that was launched at once.
    waited = kernel_ends(
        np.concatenate([[arrived_seconds], kernels]),
        np.concatenate([[0.0, launched_seconds + launches[0]], launches[1:]]),
    )
    return float(waited[-1])
