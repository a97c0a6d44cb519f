"""The least memory a step can run in: every storage from its first write to its last use, nothing for the allocator.

Parameters, gradients once made, optimizer state and inputs stay to the end of the step; an activation lives until the
last op that reads it, which for a saved one is in the backward pass. Where several passes accumulate, the gradients of
the first are there from the beginning. Views share their source's storage. This is a floor: rounding, fragmentation,
library workspaces and the device context come on top.
"""

from dataclasses import dataclass

from epochcast.graph.kinds import View
from epochcast.graph.op import Phase
from epochcast.graph.trace import Trace


@dataclass(frozen=True, slots=True)
class MemoryFloor:
    """Bytes at the peak, by what they hold; `peak_op` is the op during which it is reached."""

    parameter_bytes: int
    gradient_bytes: int
    state_bytes: int
    activation_bytes: int
    peak_op: str

    @property
    def peak_bytes(self) -> int:
        """All of them together."""
        return self.parameter_bytes + self.gradient_bytes + self.state_bytes + self.activation_bytes


def memory_floor(trace: Trace) -> MemoryFloor:
    """Walk the step once, adding storages at birth and dropping them after their last use."""
    parameters = {p.name: p.tensor.bytes for p in trace.parameters}
    gradients = {f"grad:{name}" for name in parameters}
    root: dict[str, str] = {}
    size_bytes: dict[str, int] = {}
    born: dict[str, int] = {}
    last: dict[str, int] = {}
    state: dict[str, int] = {}
    ops = trace.ops
    is_accumulated = trace.recipe.accumulate > 1
    for place, op in enumerate(ops):
        for tensor in (*op.inputs, *op.weights):
            source = root.get(tensor.name, tensor.name)
            last[source] = place
            size_bytes[source] = max(size_bytes.get(source, 0), tensor.bytes)
            if source in parameters:
                parameters[source] = tensor.bytes  # in the precision of the step
            if source not in born:
                # Read before any write: an input, or optimizer state, which was there before the step.
                born[source] = -1
                if op.phase is Phase.UPDATE and source not in parameters and source not in gradients:
                    state[source] = tensor.bytes
        for tensor in op.outputs:
            if isinstance(op.kind, View) and op.inputs:
                root[tensor.name] = root.get(op.inputs[0].name, op.inputs[0].name)
            source = root.get(tensor.name, tensor.name)
            born.setdefault(source, place)
            last[source] = place
            size_bytes[source] = max(size_bytes.get(source, 0), tensor.bytes)
    changes = [0] * (len(ops) + 2)
    grown = [0] * (len(ops) + 2)
    for name, place in born.items():
        if name in parameters or name in state:
            continue
        if name in gradients:
            grown[0 if is_accumulated else place + 1] += size_bytes[name]
            continue
        changes[place + 1] += size_bytes[name]
        if place >= 0:
            changes[last[name] + 2] -= size_bytes[name]
    peak, now, made, where, made_then = 0, 0, 0, 0, 0
    for place in range(len(ops) + 1):
        now += changes[place]
        made += grown[place]
        if now + made > peak + made_then:
            peak, where, made_then = now, place, made
    name = ops[where - 1].name if ops and where else "start"
    return MemoryFloor(sum(parameters.values()), made_then, sum(state.values()), peak, name)
