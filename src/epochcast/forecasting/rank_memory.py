"""The memory of the GPU that holds most of a step; which share that is of the whole is the strategy's."""

from epochcast.forecasting.placement import Placement
from epochcast.graph.trace import Trace
from epochcast.memory.peak import PeakMemory, peak_memory


def rank_memory(
    trace: Trace, placement: Placement, *, set_to_none: bool = True, allocator: str = "caching"
) -> PeakMemory:
    """The peak memory of the GPU that holds most."""
    shares = placement.strategy.memory_shares(trace, placement.gpus)
    return peak_memory(trace, placement.device, set_to_none=set_to_none, allocator=allocator, shares=shares)
