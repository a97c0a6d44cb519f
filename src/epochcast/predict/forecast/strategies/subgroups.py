"""Part of the ranks of a cluster as a group of its own.

Ranks are numbered box by box, and in a box part by part. A subgroup takes every `stride`-th of them, and all subgroups
of a kind talk at once: what leaves a box, or a part of one, is shared by as many subgroups as have members in it, so
each sees its share of the bandwidth.
"""

from dataclasses import replace

from epochcast.hardware.cluster import Group, Level
from epochcast.hardware.link import Link


def subgroup(group: Group, ranks: int, stride: int) -> Group:
    """`ranks` members, `stride` apart, with what is left of the wires for one such group."""
    each = group.ranks_per_node
    in_a_box = ranks if ranks * stride <= each else max(1, each // stride)
    within = _within(group, in_a_box, stride) if group.within else ()
    if in_a_box == ranks:
        return replace(group, nodes=1, ranks_per_node=ranks, within=within)
    return replace(
        group,
        nodes=-(-ranks // in_a_box),
        ranks_per_node=in_a_box,
        outer=shared(group.outer, each // in_a_box),
        within=within,
    )


def _within(group: Group, members: int, stride: int) -> tuple[Level, ...]:
    """The levels of a box between so many members; below a level that they do not share out evenly all meet on it."""
    levels: list[Level] = []
    below = group.box_levels[0].fanout
    inside = min(members, max(1, below // stride))  # members in one part
    for level in group.within:
        above = below * level.fanout
        around = min(members, max(1, above // stride))
        if around % inside:
            levels, inside = [], 1
        levels.append(Level(around // inside, shared(level.link, below // inside)))
        below, inside = above, around
    return tuple(level for level in levels if level.fanout > 1)


def shared(link: Link, users: int) -> Link:
    """One user's part of a link."""
    return replace(link, bandwidth_bytes_per_second=link.bandwidth_bytes_per_second / users) if users > 1 else link
