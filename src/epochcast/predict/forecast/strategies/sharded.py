"""ZeRO and FSDP: every rank holds a share of what data parallelism copies (Rajbhandari et al. 2020; Zhao et al. 2023).

    stage   shared out         exchanged
    1       optimizer state    reduce-scatter of gradients in the last pass, all-gather of parameters behind the update
    2       + gradients        the same, the reduce-scatter in every pass
    3       + parameters       all-gather in front of each unit's forward and backward, reduce-scatter behind it

`zero1:8` and `fsdp:8` shard over 8 neighbours alone and copy what these hold (hybrid sharding: HSDP, MiCS, InternEvo's
zero1 groups). Gathers stay among neighbours; gradients are scattered among them, and summed over the copies:

    scatter = reduce-scatter of n bytes among neighbours + all-reduce of their part over the copies

Collectives run on a stream of their own, one after another. A unit's parameters (`predict.memory.gather_units`) are
asked for while the unit before it computes, so that two are gathered at a time; the last unit of the forward pass
keeps its own for the backward pass. In half, and under autocast, parameters and gradients travel in half (FSDP's mixed
precision, DeepSpeed's bf16): two bytes an element. What is hidden slows the kernels beside it
(`predict.comm.stragglers`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from epochcast.describe.graph.recipe import OFFLOADS
from epochcast.describe.graph.tensor import DType
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.hardware.cluster import Group
from epochcast.hardware.device import Device
from epochcast.predict.comm.collectives import all_gather_seconds, all_reduce_seconds, reduce_scatter_seconds
from epochcast.predict.comm.stragglers import contention_fraction
from epochcast.predict.forecast.exchange import waiting_for_the_slowest
from epochcast.predict.forecast.step_parts import UPDATE, Kernels, StepParts, assembled
from epochcast.predict.forecast.strategies.messages import Message, pass_seconds
from epochcast.predict.forecast.strategies.strategy import Strategy, Timing
from epochcast.predict.forecast.strategies.subgroups import subgroup
from epochcast.predict.memory.gather_units import finished_gradients, units
from epochcast.predict.memory.sharding import HALF_BYTES, RankShares, offloaded, zero_shares


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharded(Strategy):
    """`stage` is ZeRO's; `before` is the stage before, or what shards nothing. `keeps_root`: what no block has stays
    gathered for a whole step. `neighbours` share what is sharded (None: all ranks do).
    """

    stage: int
    before: Strategy | None = None
    keeps_root: bool = False
    neighbours: int | None = None

    @property
    def sharing_less(self) -> Strategy | None:
        return self.before

    def check(self, gpus: int, nodes: int) -> None:
        Strategy.check(self, gpus, nodes)
        if self.neighbours is not None and gpus % self.neighbours:
            raise BadInput(f"strategy {self.name!r}: {gpus} GPUs are not a multiple of {self.neighbours}")

    def timing(self, trace: Trace, middle: Kernels, group: Group, device: Device) -> Timing:
        wires = shard_wires(group, self._sharing(group.ranks))

        def parts(kernels: Kernels) -> StepParts:
            return waiting_for_the_slowest(_parts(kernels, self.stage, wires, device), trace, group, self.runner)

        return parts

    def memory_shares(self, trace: Trace, gpus: int) -> RankShares:
        return offloaded(zero_shares(self.stage, self._sharing(gpus), trace, keeps_root=self.keeps_root), trace)

    def _sharing(self, gpus: int) -> int:
        return min(self.neighbours or gpus, gpus)

    @property
    def offloads(self) -> tuple[str, ...]:
        return OFFLOADS[1:] if self.stage == 3 else OFFLOADS[1:2]


@dataclass(frozen=True, slots=True)
class ShardWires:
    """All ranks, those that share what is sharded, and those that hold the same part of it."""

    group: Group
    sharing: Group
    copies: Group | None

    def gather_seconds(self, size_bytes: float) -> float:
        """Parameters, from the ranks that share them."""
        return all_gather_seconds(size_bytes, self.sharing)

    def scatter_seconds(self, size_bytes: float) -> float:
        """Gradients: the sum of all ranks, each part to its owners."""
        seconds = reduce_scatter_seconds(size_bytes, self.sharing)
        if self.copies is None:
            return seconds
        return seconds + all_reduce_seconds(size_bytes / self.sharing.ranks, self.copies)


def shard_wires(group: Group, sharing: int) -> ShardWires:
    """The wires of ranks of which so many neighbours share."""
    if sharing == group.ranks:
        return ShardWires(group, group, None)
    return ShardWires(group, subgroup(group, sharing, 1), subgroup(group, group.ranks // sharing, sharing))


def _parts(kernels: Kernels, stage: int, wires: ShardWires, device: Device) -> StepParts:
    """The step of one rank."""
    trace, alone = kernels.trace, kernels.alone_seconds
    seconds, launches = kernels.passes
    gathers, scatters = _messages(trace, wires, stage)
    slowing = contention_fraction(wires.group, device)

    def added(messages: list[Message]) -> float:
        exposed = max(0.0, pass_seconds(seconds, launches, messages) - alone)
        return exposed + slowing * max(0.0, sum(m.seconds for m in messages) - exposed)

    behind = 0.0
    if stage < 3 and trace.recipe.mode == "training":
        behind = wires.gather_seconds(float(sum(_travelling_bytes(trace).values())))
    return assembled(
        kernels,
        alone_seconds=alone,
        comm_seconds=added([*gathers, *scatters]),
        repeated_comm_seconds=added([*gathers, *(scatters if stage >= 2 else [])]),
        behind_seconds=behind,
        update_fraction=1 / wires.sharing.ranks,
    )


Messages = tuple[list[Message], list[Message]]


def _messages(trace: Trace, wires: ShardWires, stage: int) -> Messages:
    """Gathers and scatters of a pass. They are the same for any kernels and batch, and kept on the template."""
    is_training = trace.recipe.mode != "forward"

    def read() -> Messages:
        gathers = list(_gathers(trace, wires)) if stage == 3 else []
        return gathers, list(_scatters(trace, wires)) if is_training else []

    messages: Messages = trace.template.derived.get(("shard messages", wires, stage, is_training), read)
    return messages


def _travelling_bytes(trace: Trace) -> dict[str, float]:
    """Bytes of every parameter on the wire."""
    rules = trace.recipe.precision_rules
    most = DType.FLOAT64.bytes if rules.is_wide else HALF_BYTES
    return {p.name: p.tensor.bytes * min(1.0, most / p.tensor.dtype.bytes) for p in trace.parameters}


def _gathers(trace: Trace, wires: ShardWires) -> Iterator[Message]:
    """What is asked for and needed together travels together."""
    size_bytes, entry = _travelling_bytes(trace), np.maximum(0, trace.entries).tolist()
    together: dict[tuple[int, int], float] = {}
    for each in units(trace).gathered():
        at = entry[each.asked], entry[each.needed]
        together[at] = together.get(at, 0.0) + size_bytes[each.parameter]
    for (asked, needed), total_bytes in together.items():
        yield Message(min(asked, needed) - 1, needed, wires.gather_seconds(total_bytes))


def _scatters(trace: Trace, wires: ShardWires) -> Iterator[Message]:
    """The gradients that a unit has finished travel behind it."""
    size_bytes, entry = _travelling_bytes(trace), np.maximum(0, trace.entries).tolist()
    kernels = int(np.sum(trace.columns.phase != UPDATE))
    gather_units = units(trace)
    together: dict[int, float] = {}
    for name, place in finished_gradients(trace).items():
        last = entry[gather_units.end_of(place)]
        together[last] = together.get(last, 0.0) + size_bytes[name]
    for last, total_bytes in sorted(together.items()):
        yield Message(min(last, kernels - 1), kernels, wires.scatter_seconds(total_bytes))
