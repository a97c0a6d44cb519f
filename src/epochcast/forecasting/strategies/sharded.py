"""ZeRO and FSDP: every rank holds a share of what data parallelism copies (Rajbhandari et al. 2020; Zhao et al. 2023).

    stage   shared out         exchanged
    1       optimizer state    reduce-scatter of gradients in the last pass, all-gather of parameters behind the update
    2       + gradients        the same, the reduce-scatter in every pass
    3       + parameters       all-gather in front of each segment's forward and backward, reduce-scatter behind it

Collectives run on a stream of their own, one after another. A segment's parameters are asked for while the segment
before it computes (prefetch of one), so that at most two are gathered at a time; the last segment of the forward pass
keeps its own for the backward pass. In half, and under autocast, parameters and gradients travel in half (FSDP's mixed
precision, DeepSpeed's bf16): two bytes an element. What is hidden slows the kernels beside it (`comm.waiting`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from epochcast.comm.collectives import all_gather_seconds, reduce_scatter_seconds
from epochcast.comm.waiting import contention_fraction
from epochcast.forecasting.exchange import bucket_fraction, waiting_for_the_slowest
from epochcast.forecasting.parts import BACKWARD, FORWARD, Kernels, StepParts, assembled
from epochcast.forecasting.strategies.cuts import Segments, segments
from epochcast.forecasting.strategies.messages import Message, pass_seconds
from epochcast.forecasting.strategies.strategy import Strategy, Timing
from epochcast.graph.trace import Trace
from epochcast.hardware.cluster import Group
from epochcast.hardware.device import Device
from epochcast.memory.sharding import Shares, zero_shares

HALF_BYTES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharded(Strategy):
    """`stage` is ZeRO's."""

    stage: int

    def timing(self, trace: Trace, middle: Kernels, group: Group, device: Device) -> Timing:
        def parts(kernels: Kernels) -> StepParts:
            return waiting_for_the_slowest(_parts(kernels, self.stage, group, device), trace, group, self.runner)

        return parts

    def memory_shares(self, trace: Trace, gpus: int) -> Shares:
        """A p-th of what is shared out; of stage 3, two gathered segments come on top. Stage 1 stands behind DDP, whose
        buckets hold the gradients a second time.
        """
        shares = zero_shares(self.stage, gpus, _gathered_bytes(trace, gpus) if self.stage == 3 else 0)
        return replace(shares, bucket_fraction=bucket_fraction(trace)) if self.stage == 1 else shares


def _gathered_bytes(trace: Trace, gpus: int) -> int:
    """Two segments at a time, as they travel; of each a rank has its own part already."""
    largest = sorted(segments(trace).parameter_bytes)[-2:]
    return int(_travelling_fraction(trace) * sum(largest) * (1 - 1 / gpus))


def _parts(kernels: Kernels, stage: int, group: Group, device: Device) -> StepParts:
    """The step of one rank."""
    trace, alone = kernels.trace, kernels.alone_seconds
    seconds, launches = kernels.passes
    cut, scale = segments(trace), _travelling_fraction(trace)
    gathers, scatters = _messages(trace, group, stage)
    slowing = contention_fraction(group, device)

    def added(messages: list[Message]) -> float:
        exposed = max(0.0, pass_seconds(seconds, launches, messages) - alone)
        return exposed + slowing * max(0.0, sum(m.seconds for m in messages) - exposed)

    behind = 0.0
    if stage < 3 and trace.recipe.mode == "training":
        behind = all_gather_seconds(scale * sum(cut.parameter_bytes), group)
    return assembled(
        kernels,
        alone_seconds=alone,
        comm_seconds=added([*gathers, *scatters]),
        repeated_comm_seconds=added([*gathers, *(scatters if stage >= 2 else [])]),
        behind_seconds=behind,
        update_fraction=1 / group.ranks,
    )


Messages = tuple[list[Message], list[Message]]


def _messages(trace: Trace, group: Group, stage: int) -> Messages:
    """Gathers and scatters of a pass. They are the same for any kernels and batch, and kept on the template."""
    is_training = trace.recipe.mode != "forward"

    def read() -> Messages:
        cut, scale = segments(trace), _travelling_fraction(trace)
        gathers = list(_gathers(trace, cut, group, scale)) if stage == 3 else []
        return gathers, list(_scatters(trace, cut, group, scale)) if is_training else []

    messages: Messages = trace.template.derived.get(("shard messages", group, stage, is_training), read)
    return messages


def _travelling_fraction(trace: Trace) -> float:
    """Bytes on the wire of a byte of parameters."""
    if trace.recipe.precision_rules.is_wide:
        return 1.0
    widest = max((p.tensor.dtype.bytes for p in trace.parameters), default=HALF_BYTES)
    return min(1.0, HALF_BYTES / widest)


def _spans(trace: Trace, cut: Segments, phase: int) -> list[tuple[int, int, int]]:
    """(segment, first entry, last entry) of the segments with parameters, in the order a phase runs them."""
    of_phase = np.flatnonzero(trace.columns.phase == phase)
    spans: dict[int, tuple[int, int]] = {}
    for entry, segment in zip(of_phase.tolist(), cut.of_entry[of_phase].tolist(), strict=True):
        if cut.parameter_bytes[segment]:
            spans[segment] = (spans.get(segment, (entry, entry))[0], entry)
    ordered = sorted(spans.items(), key=lambda item: item[1][0])
    return [(segment, first, last) for segment, (first, last) in ordered]


def _gathers(trace: Trace, cut: Segments, group: Group, scale: float) -> Iterator[Message]:
    for phase in (FORWARD, BACKWARD):
        spans = _spans(trace, cut, phase)
        before_phase = spans[0][1] - 1 if spans else -1
        for index, (segment, first, _) in enumerate(spans):
            if phase == BACKWARD and index == 0:
                continue  # still there from the forward pass
            after = spans[index - 2][2] if index >= 2 else before_phase
            seconds = all_gather_seconds(scale * cut.parameter_bytes[segment], group)
            yield Message(min(after, first - 1), first, seconds)


def _scatters(trace: Trace, cut: Segments, group: Group, scale: float) -> Iterator[Message]:
    kernels = int(np.sum(cut.of_entry >= 0))
    for segment, _, last in _spans(trace, cut, BACKWARD):
        yield Message(last, kernels, reduce_scatter_seconds(scale * cut.parameter_bytes[segment], group))
