"""Part of the ranks of a cluster as a group of its own.

Ranks are numbered box by box. A subgroup takes every `stride`-th of them, and all subgroups of a kind talk at once: the
outer link of a box is shared by as many subgroups as have members in it, so each sees its part of the bandwidth.
"""

from dataclasses import replace

from epochcast.hardware.cluster import Group
from epochcast.hardware.link import Link


def subgroup(group: Group, ranks: int, stride: int) -> Group:
    """`ranks` members, `stride` apart, with what is left of the wires for one such group."""
    each = group.ranks_per_node
    if ranks * stride <= each:
        return replace(group, nodes=1, ranks_per_node=ranks)
    in_a_box = max(1, each // stride)
    return replace(
        group,
        nodes=-(-ranks // in_a_box),
        ranks_per_node=in_a_box,
        outer=shared(group.outer, each // in_a_box),
    )


def shared(link: Link, users: int) -> Link:
    """One user's part of a link."""
    return replace(link, bandwidth_bytes_per_second=link.bandwidth_bytes_per_second / users) if users > 1 else link
