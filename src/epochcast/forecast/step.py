"""One training step on a placement: kernels, launches, gradient exchange. Parts are exposed seconds that sum to it.

    step = forward + backward + update   (kernels busy)
         + host                          (the device waits for a launch)
         + exposed communication + input stall

With gradient accumulation forward and backward run `accumulate` times for one exchange and one update.
"""

from dataclasses import dataclass

import numpy as np

from epochcast.cost.launch import host_seconds
from epochcast.cost.model import CostModel, Costs
from epochcast.forecast.exchange import exposed_seconds
from epochcast.forecast.placement import Placement
from epochcast.forecast.streams import Seconds, kernel_ends
from epochcast.graph.op import Phase
from epochcast.graph.trace import PHASES, Trace
from epochcast.interval import Interval

_FORWARD, _BACKWARD, _UPDATE = (PHASES.index(p) for p in (Phase.FORWARD, Phase.BACKWARD, Phase.UPDATE))


@dataclass(frozen=True, slots=True)
class StepParts:
    """Exposed seconds of a step, middle values."""

    forward: float
    backward: float
    update: float
    exposed_comm: float
    exposed_input: float
    host: float

    @property
    def total_seconds(self) -> float:
        """The whole step."""
        return self.forward + self.backward + self.update + self.exposed_comm + self.exposed_input + self.host

    def as_dict(self) -> dict[str, float]:
        """By the names of the JSON contract."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True)
class StepForecast:
    """A step: how long, made of what, answered by whom.

    `forward_seconds` is one forward pass with its launches, as a validation step runs it; `costs` has the seconds of
    every op.
    """

    seconds: Interval
    parts: StepParts
    forward_seconds: float
    answered_by: dict[str, float]
    costs: Costs


def step_forecast(
    trace: Trace, placement: Placement, model: CostModel, *, exposed_input_seconds: float = 0.0
) -> StepForecast:
    """Cost every op, run the two streams, exchange the gradients."""
    costs = model.costs(trace, placement.device)
    launches = host_seconds(trace, placement.device)
    parts = [
        _parts(trace, kernels, launches, placement, exposed_input_seconds)
        for kernels in (costs.low, costs.mid, costs.high)
    ]
    low, mid, high = (p.total_seconds for p in parts)
    low, high = min(low, mid), max(mid, high)  # against rounding alone: more kernel seconds never make a shorter step
    is_forward = trace.columns.phase == _FORWARD
    forward = kernel_ends(costs.mid[is_forward], launches[is_forward])
    forward_seconds = float(forward[-1]) if len(forward) else 0.0
    return StepForecast(Interval(low, mid, high), parts[1], forward_seconds, dict(costs.time_fractions()), costs)


def _parts(trace: Trace, kernels: Seconds, launches: Seconds, placement: Placement, input_seconds: float) -> StepParts:
    """Forward and backward on the two streams; the update begins when the last gradients have arrived."""
    phase = trace.columns.phase
    forward, backward, update = (float(kernels[phase == index].sum()) for index in (_FORWARD, _BACKWARD, _UPDATE))
    ends = kernel_ends(kernels, launches)
    is_update = phase == _UPDATE
    backward_end = float(ends[~is_update][-1]) if not np.all(is_update) else 0.0
    is_training = trace.recipe.mode != "forward"
    comm = exposed_seconds(trace, ends, backward_end, placement) if is_training else 0.0
    arrived = backward_end + comm
    total = _update_end(kernels[is_update], launches[is_update], arrived, float(launches[~is_update].sum()))
    accumulate = trace.recipe.accumulate
    repeated = backward_end - forward - backward  # the host's share of one forward and backward
    host = total - comm - forward - backward - update + (accumulate - 1) * max(0.0, repeated)
    return StepParts(accumulate * forward, accumulate * backward, update, comm, input_seconds, max(0.0, host))


def _update_end(kernels: Seconds, launches: Seconds, arrived_seconds: float, launched_seconds: float) -> float:
    """When the update is done that may begin once the gradients have arrived; its launches follow all the others."""
    if not len(kernels):
        return arrived_seconds
    # The wait is a kernel in front of the others that was launched at once.
    waited = kernel_ends(
        np.array([arrived_seconds, *kernels]), np.array([0.0, launched_seconds + launches[0], *launches[1:]])
    )
    return float(waited[-1])
