"""Time of the collectives other than the all-reduce, as NCCL runs them: rings, and messages between pairs.

Notation as in `predict.comm.allreduce`: p ranks in k boxes of g, α and B of the slowest link, n bytes. Boxes may have
levels.
"""

from math import isfinite

from epochcast.errors import BadInput
from epochcast.hardware.cluster import Group
from epochcast.predict.comm import nccl
from epochcast.predict.comm.allreduce import all_reduce_seconds

__all__ = [
    "all_gather_seconds",
    "all_reduce_seconds",
    "all_to_all_seconds",
    "broadcast_seconds",
    "point_to_point_seconds",
    "reduce_scatter_seconds",
    "ring_shift_seconds",
]


def reduce_scatter_seconds(size_bytes: float, group: Group) -> float:
    """Once around NCCL's ring: every rank begins with n bytes and ends with its p-th part of the sum."""
    _check(size_bytes)
    return nccl.ring(size_bytes, group, 1)


def all_gather_seconds(size_bytes: float, group: Group) -> float:
    """Once around NCCL's ring: every rank begins with its p-th part of n bytes and ends with all of them."""
    _check(size_bytes)
    return nccl.ring(size_bytes, group, 1)


def broadcast_seconds(size_bytes: float, group: Group) -> float:
    """(p-1)α + n/B: a chain through all ranks, pipelined in small pieces."""
    _check(size_bytes)
    if group.ranks == 1:
        return 0.0
    link = group.slowest
    return (group.ranks - 1) * link.latency_seconds + size_bytes / link.sustained_bytes_per_second


def all_to_all_seconds(size_bytes: float, group: Group) -> float:
    """Every rank has n bytes, a p-th part for each of the others: messages between all pairs (`nccl.pairwise`)."""
    _check(size_bytes)
    return nccl.pairwise(size_bytes, group)


def point_to_point_seconds(size_bytes: float, group: Group) -> float:
    """α + n/B between neighbours: of one box, or, where the group has several, all ranks of a box at once to the next.

    The ranks of a box share its outer link, so each gets a g-th of it; the same holds for parts of a box.
    """
    _check(size_bytes)
    seconds, below = 0.0, 1
    for level in group.levels:
        if level.fanout > 1:
            seconds = level.link.seconds(below * size_bytes)
        below *= level.fanout
    return seconds


def ring_shift_seconds(size_bytes: float, group: Group) -> float:
    """α + n/B of the slowest link: every rank sends n bytes to the next one of a ring, all at once."""
    _check(size_bytes)
    return group.slowest.seconds(size_bytes) if group.ranks > 1 else 0.0


def _check(size_bytes: float) -> None:
    if not (isfinite(size_bytes) and size_bytes >= 0):
        raise BadInput(f"a collective needs at least 0 bytes, got {size_bytes}")
