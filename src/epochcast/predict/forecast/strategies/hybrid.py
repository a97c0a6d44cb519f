"""One weird trick: data parallel convolutions, model parallel products (Krizhevsky 2014, scheme b).

Every rank runs the convolutions on its own images. Then, in as many rounds as there are ranks, all of them work on the
images of one: its activations are sent to the others, each computes its part of the products, and parts are gathered.
Activations of the next round travel while this one is computed, so that only the first shows; a gathering waits for its
product and the next product waits for it. The backward pass does the same the other way round. Only the gradients of
the convolutions are summed over all ranks, in buckets behind the backward pass; a rank updates its own part alone.

The products are those behind the last convolution. What a rank computes of them is `tensor`'s: half of the products are
split by rows there and not by columns, which costs the same.

Parts travel by NCCL's collectives, or, under the collective "one_to_all", as in the paper: by plain copies between
every two ranks, of which those that leave a box share its outer link. Then each rank sums a p-th of the gradients of
all and sends it back to all.
"""

from dataclasses import dataclass, replace

import numpy as np

from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.op_kinds import Conv, Matmul
from epochcast.describe.graph.trace import SMALL_BATCH, Trace
from epochcast.errors import BadInput
from epochcast.hardware.cluster import Group
from epochcast.hardware.device import Device
from epochcast.predict.comm.collectives import (
    all_gather_seconds,
    all_reduce_seconds,
    all_to_all_seconds,
    broadcast_seconds,
)
from epochcast.predict.forecast.exchange import DDP_BUCKETS, Gradients, gradients, waiting_for_the_slowest
from epochcast.predict.forecast.step_parts import BACKWARD, FORWARD, Kernels, StepParts, assembled
from epochcast.predict.forecast.strategies.messages import Message, pass_seconds
from epochcast.predict.forecast.strategies.strategy import Strategy, Timing
from epochcast.predict.forecast.strategies.tensor_parallel import parameter_fraction, rank_of
from epochcast.predict.forecast.streams import kernel_ends
from epochcast.predict.memory.sharding import RankShares


@dataclass(frozen=True)
class Head:
    """The products of a network: which entries they are, what enters the first and what each makes, per sample.

    `forward` and `backward` are the entries of the head. `products` are the forward entries of its products, `returned`
    the backward entries behind which the gradient of what entered a product is complete.
    """

    forward: tuple[int, ...]
    backward: tuple[int, ...]
    products: tuple[int, ...]
    returned: tuple[int, ...]
    product_bytes: tuple[float, ...]
    entering_bytes: float


def head_of(trace: Trace) -> Head:
    """Everything from the first weighted product behind the last convolution on."""
    ops = [trace.template.base[int(place)] for place in trace.places]
    convolutions = [e for e, op in enumerate(ops) if isinstance(op.kind, Conv) and op.phase is Phase.FORWARD]
    products = [
        e
        for e, op in enumerate(ops)
        if isinstance(op.kind, Matmul) and op.weights and op.phase is Phase.FORWARD and e > max(convolutions, default=e)
    ]
    if not products:
        raise BadInput(f"hybrid parallel is for products behind convolutions, and {trace.name} has none")
    phase = trace.columns.phase
    forward = tuple(e for e in np.flatnonzero(phase == FORWARD).tolist() if e >= products[0])
    layers = {ops[e].layer for e in products}
    behind = [e for e in np.flatnonzero(phase == BACKWARD).tolist() if ops[e].layer in layers]
    returned = tuple(e for e in behind if isinstance(ops[e].kind, Matmul) and ops[e].weights)
    backward = tuple(range(int(np.flatnonzero(phase == BACKWARD)[0]), behind[-1] + 1)) if behind else ()
    product_bytes = tuple(ops[e].output.bytes / SMALL_BATCH for e in products)
    return Head(
        forward, backward, tuple(products), returned, product_bytes, ops[products[0]].inputs[0].bytes / SMALL_BATCH
    )


@dataclass(frozen=True, slots=True)
class Hybrid(Strategy):
    """Every rank has the convolutions and a part of the products."""

    def timing(self, trace: Trace, middle: Kernels, group: Group, device: Device) -> Timing:
        wires = Wires(group, self.algorithm)
        return lambda kernels: waiting_for_the_slowest(wired_parts(kernels, wires, trace), trace, group, self.runner)

    def rank_trace(self, trace: Trace, gpus: int) -> Trace:
        """One rank's step for one round: a part of the products, on the images of one rank."""
        head_of(trace)
        return rank_of(trace, gpus).trace

    def memory_shares(self, trace: Trace, gpus: int) -> RankShares:
        """The products' parameters by rank."""
        part = parameter_fraction(trace, self.rank_trace(trace, gpus))
        return RankShares(part, part, part)


DIRECT = "one_to_all"


@dataclass(frozen=True, slots=True)
class Wires:
    """How ranks reach each other: by NCCL, or by copies between every two."""

    group: Group
    algorithm: str

    def spread_seconds(self, size_bytes: float) -> float:
        """One rank's bytes to all others: (p-1)n/B by copies, of which (p-g)n leave the box; so on every level."""
        if self.algorithm != DIRECT:
            return broadcast_seconds(size_bytes, self.group)
        longest_seconds, below = 0.0, 1
        for level in self.group.levels:
            if level.fanout > 1:
                longest_seconds = max(longest_seconds, (self.group.ranks - below) * level.link.seconds(size_bytes))
            below *= level.fanout
        return longest_seconds

    def gather_seconds(self, size_bytes: float) -> float:
        """Every rank's p-th part to all others."""
        if self.algorithm != DIRECT:
            return all_gather_seconds(size_bytes, self.group)
        return all_to_all_seconds(size_bytes, self.group)

    def sum_seconds(self, size_bytes: float) -> float:
        """Gradients: a p-th of each rank's to every other, and the sums back."""
        if self.algorithm != DIRECT:
            return all_reduce_seconds(size_bytes, self.group, self.algorithm)
        return 2 * all_to_all_seconds(size_bytes, self.group)


def wired_parts(kernels: Kernels, wires: Wires, whole: Trace) -> StepParts:
    """Convolutions once, products once per rank; `whole` is the step before it was split."""
    ranks, head = wires.group.ranks, head_of(whole)
    entries = len(kernels.passes[0])
    in_head = set(head.forward) | set(head.backward)
    trunk = [e for e in range(entries) if e not in in_head]
    order = [
        *(e for e in trunk if e < head.forward[0]),
        *head.forward * ranks,
        *head.backward * ranks,
        *(e for e in trunk if e > head.forward[0]),
    ]
    seconds, launches = (values[np.array(order, dtype=np.int64)] for values in kernels.passes)
    alone = float(kernel_ends(seconds, launches)[-1])
    messages = _rounds(head, ranks, whole.batch, wires, FORWARD)
    exchanged: list[Message] = []
    if whole.recipe.mode != "forward":
        messages += _rounds(head, ranks, whole.batch, wires, BACKWARD)
        exchanged = _exchanged(whole, head, order, wires)
    each = pass_seconds(seconds, launches, messages) - alone
    last = pass_seconds(seconds, launches, [*messages, *exchanged]) - alone
    times = np.ones(len(kernels.seconds))
    times[list(in_head)] = ranks
    mine, every = (sum(p.elements for p in t.parameters if p.trainable) for t in (kernels.trace, whole))
    return assembled(
        replace(kernels, seconds=kernels.seconds * times, launches=kernels.launches * times),
        alone_seconds=alone,
        comm_seconds=max(0.0, last),
        repeated_comm_seconds=max(0.0, each),
        update_fraction=mine / every if every else 1.0,
    )


def _rounds(head: Head, ranks: int, batch: int, wires: Wires, phase: int) -> list[Message]:
    """Per round: activations from (or their gradients to) the rank whose images they are, and the parts in between."""
    entries = head.forward if phase == FORWARD else head.backward
    begin = head.forward[0] + (0 if phase == FORWARD else ranks * len(head.forward))
    sent = wires.spread_seconds(batch * head.entering_bytes)
    gathered = [wires.gather_seconds(batch * size) for size in head.product_bytes]
    messages: list[Message] = []
    for turn in range(ranks):
        start = begin + turn * len(entries)
        if phase == FORWARD:
            messages.append(Message(start - 1 if turn == 0 else start - len(entries), start, sent))
            for entry, seconds in zip(head.products, gathered, strict=True):
                at = start + entries.index(entry)
                messages.append(Message(at, at + 1, seconds))
        else:
            for place, entry in enumerate(head.returned):
                at = start + entries.index(entry)
                is_entering = place == len(head.returned) - 1
                behind = begin + ranks * len(entries) if is_entering else at + 1
                messages.append(Message(at, behind, sent if is_entering else gathered[-2 - place]))
    return messages


def _exchanged(whole: Trace, head: Head, order: list[int], wires: Wires) -> list[Message]:
    """The gradients of the convolutions, in buckets."""
    summands, in_head = gradients(whole), set(head.backward)
    pairs = zip(summands.sizes_bytes, summands.places, strict=True)
    outside = [(size, place) for size, place in pairs if place not in in_head]
    if not outside:
        return []
    position = {entry: at for at, entry in enumerate(order)}
    own = Gradients(tuple(size for size, _ in outside), tuple(position[place] for _, place in outside))
    return [Message(place, len(order), wires.sum_seconds(size)) for size, place in DDP_BUCKETS.filled(own)]
