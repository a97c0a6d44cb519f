"""Data parallelism: every GPU has the whole model, and the gradients of all are summed before the update.

PyTorch's DistributedDataParallel and Horovod sum them in buckets, on a second stream beside the backward pass: a bucket
may leave when its last gradient is ready and the wire is free (Li et al. 2020, "PyTorch Distributed"); Horovod looks
for ready ones every cycle. What is still travelling when the backward pass ends is exposed; the rest was hidden behind
it, and slowed it down where both need the same memory (`predict.comm.stragglers`). tf.distribute sums all at once
behind the backward pass. The update begins when the last gradients have arrived.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from epochcast.describe.graph.trace import Trace
from epochcast.hardware.cluster import Group
from epochcast.hardware.device import Device
from epochcast.predict.comm.allreduce import all_reduce_seconds
from epochcast.predict.comm.stragglers import ALIKE, Batch, Waiting, contention_fraction, waiting, waiting_seconds
from epochcast.predict.forecast.exchange import Buckets, Gradients, batch_of, gradients
from epochcast.predict.forecast.step_parts import Kernels, StepParts, assembled
from epochcast.predict.forecast.strategies.strategy import Strategy, Timing
from epochcast.predict.forecast.streams import Seconds, kernel_ends
from epochcast.predict.memory.sharding import RankShares, bucket_fraction


@dataclass(frozen=True, slots=True)
class Exchange:
    """What the exchange of one step costs: `wire_seconds` of collectives, of which `exposed_seconds` are left behind
    the backward pass and the others slow kernels down by `slowed_seconds`; then everybody waits for the slowest rank.
    """

    wire_seconds: float
    exposed_seconds: float
    slowed_seconds: float
    waiting_seconds: float

    @property
    def seconds(self) -> float:
        """What it adds to the step."""
        return self.exposed_seconds + self.slowed_seconds + self.waiting_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class DataParallel(Strategy):
    """`buckets` of gradients travel together (None: all at once, behind the backward pass); what is ready is looked at
    every `cycle_seconds`. `on_boxes` is what stands in for a strategy of one box on several.
    """

    buckets: Buckets | None = None
    cycle_seconds: float = 0.0
    on_boxes: Strategy | None = None

    def timing(self, trace: Trace, middle: Kernels, group: Group, device: Device) -> Timing:
        def parts(kernels: Kernels) -> StepParts:
            if trace.recipe.mode == "forward":
                return assembled(kernels)
            ends = kernel_ends(*kernels.passes)
            return assembled(kernels, comm_seconds=self.exchange(trace, ends, group, device).seconds)

        return parts

    def memory_shares(self, trace: Trace, gpus: int) -> RankShares:
        """DistributedDataParallel, which looks at no cycle, keeps its buckets beside the gradients."""
        has_buckets = self.buckets is not None and not self.cycle_seconds
        return RankShares(bucket_fraction=bucket_fraction(trace) if has_buckets else 0.0)

    def across(self, nodes: int) -> Strategy:
        return self.on_boxes if self.on_boxes is not None and nodes > 1 else self

    def exchange(self, trace: Trace, ends: Seconds, group: Group, device: Device) -> Exchange:
        """The exchange of a step whose forward and backward kernels end at `ends`."""
        backward_end_seconds = float(ends[-1]) if len(ends) else 0.0
        return self.exchange_ready(
            self.ready(gradients(trace), ends, backward_end_seconds),
            backward_end_seconds,
            group,
            device,
            accumulate=trace.recipe.accumulate,
            batch=batch_of(trace),
        )

    def ready(self, summands: Gradients, ends: Seconds, backward_end_seconds: float) -> tuple[tuple[float, float], ...]:
        """(bytes, seconds) of what travels together, and when it may leave."""
        if self.buckets is None:
            return ((float(summands.total_bytes), backward_end_seconds),)
        return tuple((float(size_bytes), float(ends[place])) for size_bytes, place in self.buckets.filled(summands))

    def exchange_ready(
        self,
        ready: Sequence[tuple[float, float]],
        backward_end_seconds: float,
        group: Group,
        device: Device,
        *,
        accumulate: int = 1,
        batch: Batch = ALIKE,
        constants: Waiting | None = None,
    ) -> Exchange:
        """Two streams: buckets of so many bytes are ready at so many seconds; collectives run one after another.

        `constants` are other constants than those of the runner.
        """
        constants = constants or waiting(self.runner)
        wire_seconds = free_seconds = 0.0
        for size_bytes, ready_seconds in ready:
            bucket_seconds = all_reduce_seconds(size_bytes, group, self.algorithm)
            begin_seconds = max(free_seconds, ready_seconds) + constants.bucket_seconds + self.cycle_seconds
            free_seconds = begin_seconds + bucket_seconds
            wire_seconds += bucket_seconds
        exposed = max(0.0, free_seconds - backward_end_seconds)
        slowed = max(0.0, wire_seconds - exposed) * contention_fraction(group, device, constants)
        computing_seconds = accumulate * backward_end_seconds
        waits = waiting_seconds(computing_seconds, group, constants, accumulate=accumulate, batch=batch)
        return Exchange(wire_seconds, exposed, slowed, waits)
