"""Parameter servers: N of the ranks each hold an N-th of the parameters.

    2(p-1)(α + n/NB)     every server takes the gradients of the others and sends them the parameters
    2((N-1)α + n/B)      what a worker sends and receives in all, and no number of servers can shorten

N = 1 is one to all. Nothing is hidden: parameters are asked for when the gradients have left.
"""

from dataclasses import dataclass

from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.hardware.cluster import Group
from epochcast.hardware.device import Device
from epochcast.predict.comm.allreduce import one_to_all
from epochcast.predict.forecast.exchange import gradients, waiting_for_the_slowest
from epochcast.predict.forecast.step_parts import Kernels, StepParts, assembled
from epochcast.predict.forecast.strategies.strategy import Strategy, Timing
from epochcast.predict.memory.sharding import WHOLE, RankShares


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterServers(Strategy):
    """`servers` of the ranks hold parameters."""

    servers: int

    def __post_init__(self) -> None:
        if self.servers < 1:
            raise BadInput(f"the number of servers must be at least 1, got {self.servers}")

    def timing(self, trace: Trace, middle: Kernels, group: Group, device: Device) -> Timing:
        def parts(kernels: Kernels) -> StepParts:
            if trace.recipe.mode == "forward":
                return assembled(kernels)
            comm_seconds = servers_seconds(gradients(trace).total_bytes, group, self.servers)
            return waiting_for_the_slowest(assembled(kernels, comm_seconds=comm_seconds), trace, group, self.runner)

        return parts

    def memory_shares(self, trace: Trace, gpus: int) -> RankShares:
        return WHOLE


def servers_seconds(size_bytes: float, group: Group, servers: int) -> float:
    """Seconds to send all gradients to their servers and get the parameters back."""
    if group.ranks == 1:
        return 0.0
    link = group.slowest
    at_a_server = one_to_all(size_bytes / servers, group)
    at_a_worker = 2 * ((servers - 1) * link.latency_seconds + size_bytes / link.sustained_bytes_per_second)
    return at_a_server if servers == 1 else max(at_a_server, at_a_worker)
