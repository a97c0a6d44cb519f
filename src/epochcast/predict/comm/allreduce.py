"""Time of an all-reduce: every rank begins with a buffer and ends with the sum of all ranks' buffers.

Notation, after Thakur, Rabenseifner & Gropp (2005), "Optimization of Collective Communication Operations in MPICH",
IJHPCA 19(1):

    n  bytes in a buffer           α  latency of one message, seconds
    p  ranks                       B  bytes per second of one link, in each direction at once

A message takes α + n/B (`Link.seconds`, B as sustained); adding two buffers is free. k boxes hold g ranks each; a group
may have more levels (GPUs on a switch, switches in a box, boxes; `hardware.cluster`), level i with fᵢ children.
The textbook algorithms except "hierarchical" are flat: they ignore which ranks share a switch or a box, so each message
is charged to the slowest link of the group. "auto" and "double_tree" are NCCL's and use the levels. Every formula is
closed: 10,000 ranks take as long to forecast as two.

PALEO (Qi et al. 2017) uses one_to_all, tree, butterfly and butterfly_mixing with α = 0.
"""

from collections.abc import Callable, Mapping
from math import ceil, isfinite, log2

from epochcast.base.caching import remembered
from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.cluster import Group
from epochcast.hardware.link import Link
from epochcast.predict.comm import nccl
from epochcast.predict.comm.protocol import tuning


def ring(size_bytes: float, group: Group) -> float:
    """2(p-1)(α + n/pB). The minimum of bytes per link (Patarasuk & Yuan 2009); latency grows with p."""
    return _ring(size_bytes, group.ranks, group.slowest)


def tree(size_bytes: float, group: Group) -> float:
    """2⌈log₂p⌉(α + n/B). Reduce along a binomial tree to one rank, then broadcast; whole buffers, no pipelining."""
    return 2 * ceil(log2(group.ranks)) * group.slowest.seconds(size_bytes)


def butterfly(size_bytes: float, group: Group) -> float:
    """⌊log₂p⌋(α + n/B); two messages more when p is not a power of two.

    Recursive doubling: in round i every rank swaps its whole buffer with the one 2ⁱ away. Ranks beyond the largest
    power of two first send their buffer to a partner and receive the sum at the end.
    """
    rounds = group.ranks.bit_length() - 1
    folding = 0 if group.ranks == 2**rounds else 2
    return (rounds + folding) * group.slowest.seconds(size_bytes)


def butterfly_mixing(size_bytes: float, group: Group) -> float:
    """α + n/B, whatever p > 1: one round of the butterfly per training step.

    Not an all-reduce: after a step a rank holds the mean of two ranks, after log₂p steps every gradient has reached all
    ranks, and each step uses weights that are only partly mixed (Zhao & Canny 2013, SDM). It is faster but stale, so
    "fastest" never picks it.
    """
    return group.slowest.seconds(size_bytes) if group.ranks > 1 else 0.0


def hierarchical(size_bytes: float, group: Group) -> float:
    """Σ 2(fᵢ-1)(αᵢ + n/fᵢBᵢ) over the levels: 2(g-1)(α_in + n/gB_in) + 2(k-1)(α_out + n/kB_out) for k boxes of g ranks.

    Ranks of a box reduce-scatter, each all-reduces its g-th part with its counterparts in the other boxes, and the box
    gathers; likewise on every level below. The two halves inside cost one ring. The g rings across share the box's
    outer link, so together they cost what one ring of n bytes would.
    """
    return sum(_ring(size_bytes, level.fanout, level.link) for level in group.levels)


def halving_doubling(size_bytes: float, group: Group) -> float:
    """2⌊log₂p⌋α + 2n(p'-1)/p'B, p' the largest power of two in p; two whole messages more when p is not one.

    Rabenseifner: recursive halving scatters the sums, recursive doubling gathers them.
    """
    rounds = group.ranks.bit_length() - 1
    power, link = 1 << rounds, group.slowest
    folding = 0.0 if group.ranks == power else 2 * link.seconds(size_bytes)
    moved_bytes = 2 * size_bytes * (power - 1) / power
    return 2 * rounds * link.latency_seconds + moved_bytes / link.sustained_bytes_per_second + folding


def double_tree(size_bytes: float, group: Group) -> float:
    """start + 2((g-1)α_in + ⌈log₂k⌉α_out) + 2n/0.92B: two trees over the boxes, each with half of the bytes, pipelined.

    Sanders, Speck & Träff (2009), "Two-tree algorithms for full bandwidth broadcast, reduction and scan": a rank
    inside one tree is a leaf of the other, so both directions of all links are busy. In a box the tree is a chain.
    """
    constants = tuning()
    return nccl.tree_line(size_bytes, group, constants.protocols[0], constants) if group.ranks > 1 else 0.0


def one_to_all(size_bytes: float, group: Group) -> float:
    """2(p-1)(α + n/B). One rank receives every buffer in turn, then sends the sum to each: one parameter server."""
    return 2 * (group.ranks - 1) * group.slowest.seconds(size_bytes)


def reduce_to_one_device(size_bytes: float, group: Group) -> float:
    """One to all, as tf.distribute.ReductionToOneDevice names it."""
    return one_to_all(size_bytes, group)


def hierarchical_copy(size_bytes: float, group: Group) -> float:
    """2⌈log₂p⌉(α + n/B): tf.distribute.HierarchicalCopyAllReduce sums along a tree of copies and copies back."""
    return tree(size_bytes, group)


def auto(size_bytes: float, group: Group) -> float:
    """What NCCL would choose: ring, double tree or a sum in the switch, whichever is fastest by its own model, each by
    LL, LL128 or Simple (`predict.comm.nccl`).
    """
    return nccl.all_reduce(size_bytes, group)


def _ring(size_bytes: float, ranks: int, link: Link) -> float:
    return 2 * (ranks - 1) * link.seconds(size_bytes / ranks)


ALGORITHMS: Mapping[str, Callable[[float, Group], float]] = {
    "auto": auto,
    "nccl": auto,
    "ring": ring,
    "tree": tree,
    "double_tree": double_tree,
    "butterfly": butterfly,
    "butterfly_mixing": butterfly_mixing,
    "halving_doubling": halving_doubling,
    "hierarchical": hierarchical,
    "hierarchical_copy": hierarchical_copy,
    "one_to_all": one_to_all,
    "reduce_to_one_device": reduce_to_one_device,
}
PARTIAL = frozenset({"butterfly_mixing"})
"""Algorithms after which ranks do not yet hold the whole sum."""


@remembered(4096)  # buckets of one size on the same links are requested many times
def all_reduce_seconds(size_bytes: float, group: Group, algorithm: str = "auto") -> float:
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
