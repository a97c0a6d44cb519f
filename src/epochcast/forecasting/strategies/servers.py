"""Parameter servers: N of the ranks each hold an N-th of the parameters.

    2(p-1)(α + n/NB)     every server takes the gradients of the others and sends them the parameters
    2((N-1)α + n/B)      what a worker sends and receives in all, and no number of servers can shorten

N = 1 is one to all. Nothing is hidden: parameters are asked for when the gradients have left.
"""

from epochcast.comm.allreduce import one_to_all
from epochcast.hardware.cluster import Group


def servers_seconds(size_bytes: float, group: Group, servers: int) -> float:
    """Seconds to send all gradients to their servers and get the parameters back."""
    if group.ranks == 1:
        return 0.0
    link = group.slowest
    at_a_server = one_to_all(size_bytes / servers, group)
    at_a_worker = 2 * ((servers - 1) * link.latency_seconds + size_bytes / link.sustained_bytes_per_second)
    return at_a_server if servers == 1 else max(at_a_server, at_a_worker)
