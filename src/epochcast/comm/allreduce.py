"""Time of an all-reduce: every rank begins with a buffer and ends with the sum of all ranks' buffers.

Notation, after Thakur, Rabenseifner & Gropp (2005), "Optimization of Collective Communication Operations in MPICH",
IJHPCA 19(1):

    n  bytes in a buffer           α  latency of one message, seconds
    p  ranks                       B  bytes per second of one link, in each direction at once

A message takes α + n/B (`Link.seconds`); adding two buffers is taken as free. All algorithms but "hierarchical" are
flat: they do not know who shares a box, so each message is charged to the slowest link of the group.

PALEO (Qi et al. 2017) uses one_to_all, tree, butterfly and butterfly_mixing with α = 0.
"""

from collections.abc import Callable, Mapping
from math import ceil, isfinite, log2

from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.cluster import Group
from epochcast.hardware.link import Link


def ring(size_bytes: float, group: Group) -> float:
    """2(p-1)(α + n/pB). The least bytes per link there can be (Patarasuk & Yuan 2009); latency grows with p."""
    return _ring(size_bytes, group.ranks, group.slowest)


def tree(size_bytes: float, group: Group) -> float:
    """2⌈log₂p⌉(α + n/B). Sums climb a binomial tree to one rank and come down again; whole buffers, no pipelining."""
    return 2 * ceil(log2(group.ranks)) * group.slowest.seconds(size_bytes)


def butterfly(size_bytes: float, group: Group) -> float:
    """⌊log₂p⌋(α + n/B); two messages more when p is no power of two.

    Recursive doubling: in round i every rank swaps its whole buffer with the one 2ⁱ away. Ranks beyond the largest
    power of two first hand their buffer to a partner and receive the sum at the end.
    """
    rounds = group.ranks.bit_length() - 1
    folding = 0 if group.ranks == 2**rounds else 2
    return (rounds + folding) * group.slowest.seconds(size_bytes)


def butterfly_mixing(size_bytes: float, group: Group) -> float:
    """α + n/B, whatever p > 1: one round of the butterfly per training step.

    Not an all-reduce: after a step a rank holds the mean of two ranks, after log₂p steps every gradient has reached
    everybody, each step being computed on weights that are only partly mixed (Zhao & Canny 2013, SDM). It buys time
    with staleness, so "fastest" never picks it.
    """
    return group.slowest.seconds(size_bytes) if group.ranks > 1 else 0.0


def hierarchical(size_bytes: float, group: Group) -> float:
    """2(g-1)(α_in + n/gB_in) + 2(k-1)(α_out + n/kB_out) for k boxes of g ranks.

    Ranks of a box reduce-scatter, each all-reduces its g-th part with its counterparts in the other boxes, and the box
    gathers. The two halves inside cost one ring. The g rings across share the box's outer link, so together they cost
    what one ring of n bytes would.
    """
    inside = _ring(size_bytes, group.ranks_per_node, group.inner)
    across = _ring(size_bytes, group.nodes, group.outer)
    return inside + across


def one_to_all(size_bytes: float, group: Group) -> float:
    """2(p-1)(α + n/B). One rank receives every buffer in turn, then sends the sum to each: one parameter server."""
    return 2 * (group.ranks - 1) * group.slowest.seconds(size_bytes)


def _ring(size_bytes: float, ranks: int, link: Link) -> float:
    return 2 * (ranks - 1) * link.seconds(size_bytes / ranks)


ALGORITHMS: Mapping[str, Callable[[float, Group], float]] = {
    "ring": ring,
    "tree": tree,
    "butterfly": butterfly,
    "butterfly_mixing": butterfly_mixing,
    "hierarchical": hierarchical,
    "one_to_all": one_to_all,
}
PARTIAL = frozenset({"butterfly_mixing"})
"""Algorithms after which ranks do not yet hold the whole sum."""


def all_reduce_seconds(size_bytes: float, group: Group, algorithm: str = "fastest") -> float:
    """Seconds to all-reduce `size_bytes` over `group`; "fastest" is the best of those that finish the sum."""
    if not (isfinite(size_bytes) and size_bytes >= 0):
        raise BadInput(f"an all-reduce needs at least 0 bytes, got {size_bytes}")
    if algorithm == "fastest":
        return min(seconds(size_bytes, group) for name, seconds in ALGORITHMS.items() if name not in PARTIAL)
    try:
        chosen = ALGORITHMS[algorithm]
    except KeyError:
        raise UnknownName("all-reduce algorithm", algorithm, [*ALGORITHMS, "fastest"]) from None
    return chosen(size_bytes, group)
