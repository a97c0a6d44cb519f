"""The least memory a step can run in: every storage from its first write to its last use, nothing for the allocator.

Parameters, gradients once made, optimizer state and inputs stay to the end of the step; an activation lives until the
last op that reads it, which for a saved one is in the backward pass. Where several passes accumulate, the gradients of
the first are there from the beginning. Views share their source's storage. This is a floor: rounding, fragmentation,
library workspaces and the device context come on top.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epochcast.graph.kinds import View
from epochcast.graph.op import Phase
from epochcast.graph.trace import LARGE_BATCH, SMALL_BATCH, Trace


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


@dataclass(frozen=True)
class _Timeline:
    """Bytes before the first op and during each: activations, and gradients made by then."""

    activation_bytes: NDArray[np.int64]
    gradient_bytes: NDArray[np.int64]
    parameter_bytes: int
    state_bytes: int


def memory_floor(trace: Trace) -> MemoryFloor:
    """The peak of the step. Every storage is affine in the batch, so two walks serve all batch sizes of a template."""
    small, large = _timelines(trace)
    beyond = trace.batch - SMALL_BATCH
    slope = (large.activation_bytes - small.activation_bytes) // (LARGE_BATCH - SMALL_BATCH)
    activations = small.activation_bytes + beyond * slope
    where = int(np.argmax(activations + small.gradient_bytes))
    base = trace.template.base
    return MemoryFloor(
        small.parameter_bytes,
        int(small.gradient_bytes[where]),
        small.state_bytes,
        int(activations[where]),
        base[where - 1].name if base and where else "start",
    )


def _timelines(trace: Trace) -> tuple[_Timeline, _Timeline]:
    """At the two sizes a model is looked at; kept on the template."""
    kept: dict[bool, tuple[_Timeline, _Timeline]] = trace.template.__dict__.setdefault("_timelines", {})
    is_accumulated = trace.recipe.accumulate > 1
    if is_accumulated not in kept:
        kept[is_accumulated] = (_timeline(trace.rebatch(SMALL_BATCH)), _timeline(trace.rebatch(LARGE_BATCH)))
    return kept[is_accumulated]


def _timeline(trace: Trace) -> _Timeline:
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
    return _Timeline(
        np.cumsum(changes[: len(ops) + 1]),
        np.cumsum(grown[: len(ops) + 1]),
        sum(parameters.values()),
        sum(state.values()),
    )
