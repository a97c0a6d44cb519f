"""NCCL's rings, trees, sums in the switch, and messages between pairs, by the lines of `predict.comm.protocol`.

Notation as in `predict.comm.allreduce`: p ranks in k boxes of g, n bytes, α and B of a link; κ is what copying a
rank's own part costs of a part that comes by wire. `rounds` is how often the ring is gone around: 2 by an all-reduce,
1 by an all-gather or a reduce-scatter.
"""

from math import ceil, log2

from epochcast.hardware.cluster import Group
from epochcast.predict.comm.protocol import Protocol, Tuning, tuning


def all_reduce(size_bytes: float, group: Group, constants: Tuning | None = None) -> float:
    """The fastest by NCCL's own model: a ring, two trees, or a sum in the switch where all ranks hang on such."""
    if group.ranks == 1:
        return 0.0
    nccl_tuning = constants or tuning()
    fastest = min(ring(size_bytes, group, 2, nccl_tuning), trees(size_bytes, group, nccl_tuning))
    if all(link.sums_in_switch for link in group.used_links):
        fastest = min(fastest, switch_sum(size_bytes, group, nccl_tuning))
    return fastest


def ring(size_bytes: float, group: Group, rounds: int, constants: Tuning | None = None) -> float:
    """start + r(p-k)α_in + r·kα_out + n(r(p-1) + κ)/pB with the lowest line of LL, LL128 and Simple.

    A ring crosses a level as often as the level has children in all; its other hops are inside the levels below.
    """
    if group.ranks == 1:
        return 0.0
    nccl_tuning = constants or tuning()
    usable = (protocol for protocol in nccl_tuning.protocols if protocol.runs_on(group))
    return min(_ring(size_bytes, group, rounds, protocol, nccl_tuning) for protocol in usable)


def trees(size_bytes: float, group: Group, constants: Tuning | None = None) -> float:
    """start + 2((g-1)α_in + ⌈log₂k⌉α_out) + 2n/0.92B, with the lowest line."""
    if group.ranks == 1:
        return 0.0
    nccl_tuning = constants or tuning()
    usable = (protocol for protocol in nccl_tuning.protocols if protocol.runs_on(group))
    return min(tree_line(size_bytes, group, protocol, nccl_tuning) for protocol in usable)


def switch_sum(size_bytes: float, group: Group, constants: Tuning | None = None) -> float:
    """start + ⌈log₂p⌉α + n/fB: NVLink SHARP, which reads and writes each byte once, however many ranks there are."""
    line = (constants or tuning()).switch_line
    seconds = line.start_seconds + ceil(log2(group.ranks)) * line.hop_seconds(group.slowest)
    return seconds + size_bytes / line.bytes_per_second(group.slowest)


def pairwise(size_bytes: float, group: Group, constants: Tuning | None = None) -> float:
    """start + (p-1)α + max over levels of n(c(p-c) + κ)/pB: every rank sends a p-th part to each of the others.

    The link of a child with c ranks carries what they send to all others; the links of all levels work at once.
    """
    if group.ranks == 1:
        return 0.0
    nccl_tuning = constants or tuning()
    usable = (protocol for protocol in nccl_tuning.pairwise if protocol.runs_on(group))
    return min(_pairwise(size_bytes, group, protocol, nccl_tuning) for protocol in usable)


def tree_line(size_bytes: float, group: Group, protocol: Protocol, constants: Tuning) -> float:
    """Two trees over the boxes by one protocol; in a box the tree is a chain."""
    hops_seconds = _chain_hops_seconds(group, protocol)
    if group.nodes > 1:
        hops_seconds += ceil(log2(group.nodes)) * protocol.hop_seconds(group.across)
    rate = constants.tree_fraction * min(protocol.bytes_per_second(link) for link in group.used_links)
    return protocol.start_seconds(group) + 2 * hops_seconds + 2 * size_bytes / rate


def _ring(size_bytes: float, group: Group, rounds: int, protocol: Protocol, constants: Tuning) -> float:
    p = group.ranks
    slowest_seconds = max(
        size_bytes
        * (rounds * (p - 1) + constants.own_fractions.get(link.medium, 0.0))
        / p
        / protocol.bytes_per_second(link)
        for link in group.used_links
    )
    hops_seconds = rounds * _ring_hops_seconds(group, protocol)
    return protocol.start_seconds(group) + hops_seconds + slowest_seconds


def _ring_hops_seconds(group: Group, protocol: Protocol) -> float:
    """Latency of p-1 hops around a ring. A level with c children in all has c, less those of outer levels."""
    seconds, outer_hops, children = 0.0, 0, 1
    levels = group.levels
    for place in range(len(levels) - 1, -1, -1):
        level = levels[place]
        children *= level.fanout
        if level.fanout > 1 or place == 0:
            hops = children if place else children - 1
            more = max(0, hops - outer_hops)
            seconds += more * protocol.hop_seconds(level.link) if more else 0.0
            outer_hops = max(outer_hops, hops)
    return seconds


def _chain_hops_seconds(group: Group, protocol: Protocol) -> float:
    """Latency of the g-1 hops of a chain through a box: (fᵢ-1) on a level for every part it is in."""
    seconds, parts = 0.0, 1
    for level in reversed(group.box_levels):
        if level.fanout > 1:
            seconds += parts * (level.fanout - 1) * protocol.hop_seconds(level.link)
        parts *= level.fanout
    return seconds


def _pairwise(size_bytes: float, group: Group, protocol: Protocol, constants: Tuning) -> float:
    p, below, longest_seconds, hops_seconds = group.ranks, 1, 0.0, 0.0
    for level in group.levels:
        if level.fanout == 1:
            continue
        around = min(p, below * level.fanout)
        parts = below * (p - below) + constants.own_fractions.get(level.link.medium, 0.0)
        longest_seconds = max(longest_seconds, size_bytes * parts / p / protocol.bytes_per_second(level.link))
        hops_seconds += (around - below) * protocol.hop_seconds(level.link)
        below = around
    return protocol.start_seconds(group) + hops_seconds + longest_seconds
