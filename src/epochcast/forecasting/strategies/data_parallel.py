"""Data parallelism: every GPU has the whole model, and the gradients of all are summed before the update.

PyTorch's DistributedDataParallel and Horovod sum them in buckets beside the backward pass, tf.distribute all at once
behind it (`exchange`). The update begins when the last gradients have arrived.
"""

from dataclasses import dataclass

from epochcast.forecasting.exchange import Buckets, Exchange, batch_of, exchange_ready, gradients
from epochcast.forecasting.parts import Kernels, StepParts, assembled
from epochcast.forecasting.strategies.strategy import Strategy, Timing
from epochcast.forecasting.streams import Seconds, kernel_ends
from epochcast.graph.trace import Trace
from epochcast.hardware.cluster import Group
from epochcast.hardware.device import Device
from epochcast.memory.sharding import Shares


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

    def memory_shares(self, trace: Trace, gpus: int) -> Shares:
        """DistributedDataParallel, which looks at no cycle, keeps its buckets beside the gradients."""
        return Shares(has_buckets=self.buckets is not None and not self.cycle_seconds)

    def across(self, nodes: int) -> Strategy:
        return self.on_boxes if self.on_boxes is not None and nodes > 1 else self

    def exchange(self, trace: Trace, ends: Seconds, group: Group, device: Device) -> Exchange:
        """The exchange of a step whose forward and backward kernels end at `ends`."""
        made, backward_end_seconds = gradients(trace), float(ends[-1]) if len(ends) else 0.0
        ready = [(float(made.total_bytes), backward_end_seconds)]
        if self.buckets is not None:
            filled = self.buckets.filled(made)
            ready = [(float(size_bytes), float(ends[place])) for size_bytes, place in filled]
        return exchange_ready(
            ready,
            backward_end_seconds,
            group,
            device,
            algorithm=self.algorithm,
            runner=self.runner,
            cycle_seconds=self.cycle_seconds,
            accumulate=trace.recipe.accumulate,
            batch=batch_of(trace),
        )
