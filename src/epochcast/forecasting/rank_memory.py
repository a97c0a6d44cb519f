"""The memory of the GPU that holds most of a job's step."""

from typing import TypedDict

from epochcast.forecasting.job import Job
from epochcast.forecasting.placement import Placement
from epochcast.graph.trace import Trace
from epochcast.memory.peak import PeakMemory, peak_memory
from epochcast.memory.sharding import Shares


class MemoryOptions(TypedDict):
    """What the memory of a step depends on besides the step and the device, as `memory.peak` calls it."""

    set_to_none: bool
    allocator: str
    shares: Shares


def memory_options(job: Job, placement: Placement, trace: Trace) -> MemoryOptions:
    """Of the GPU that holds most: its share is the strategy's, the allocator the framework's."""
    return {
        "set_to_none": not job.keep_gradients,
        "allocator": "bfc" if job.framework == "tensorflow" else "caching",
        "shares": placement.strategy.memory_shares(trace, placement.gpus),
    }


def rank_memory(job: Job, placement: Placement, trace: Trace) -> PeakMemory:
    """The peak memory of the GPU that holds most. A compiled step needs no more than an eager one, however its fewer
    blocks happen to fall into an allocator's.
    """
    memory = peak_memory(trace, placement.device, **memory_options(job, placement, trace))
    if not trace.recipe.is_compiled:
        return memory
    eager = trace.under(trace.recipe.eager())
    unfused = peak_memory(eager, placement.device, **memory_options(job, placement, eager))
    return min((memory, unfused), key=lambda each: each.reserved_bytes)
