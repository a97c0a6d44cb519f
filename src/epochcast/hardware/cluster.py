"""Ranks in boxes: an inner link joins the ranks of a box, an outer link joins the boxes.

A box may have several levels (GPUs on a switch, switches on a socket, sockets in the box). On every level a number of
children are joined by links. A child's link carries all traffic into and out of that child and is shared by the ranks
below it: a switch's uplink by its GPUs, a box's network cards by its ranks. A ring or a tree through all ranks leaves
and enters each child once, so it gets the whole link. All boxes are equal, except that some may have fewer ranks.
"""

from dataclasses import dataclass, replace
from math import prod, sqrt

from epochcast.base.caching import remembered
from epochcast.errors import BadInput
from epochcast.hardware.link import Link

__all__ = ["Group", "Level", "Link"]


@dataclass(frozen=True, slots=True)
class Level:
    """`fanout` children, each joined to the others by `link`, which the ranks below a child share."""

    fanout: int
    link: Link

    def __post_init__(self) -> None:
        if self.fanout < 1:
            raise BadInput(f"a level must have at least 1 child, got {self.fanout}")


@dataclass(frozen=True)
class Group:
    """`nodes` boxes of `ranks_per_node` ranks each; `inner` joins the ranks of a box.

    Where a box has levels, `inner` joins the ranks of the innermost, and `within` has the levels above it, inside out.
    `empty` places are left over if a scheduler does not fill all boxes equally (2 + 2 + 1).
    """

    nodes: int
    ranks_per_node: int
    inner: Link
    outer: Link
    within: tuple[Level, ...] = ()
    empty: int = 0

    def __post_init__(self) -> None:
        if self.nodes < 1:
            raise BadInput(f"nodes must be at least 1, got {self.nodes}")
        if self.ranks_per_node < 1:
            raise BadInput(f"ranks_per_node must be at least 1, got {self.ranks_per_node}")
        if not 0 <= self.empty <= self.nodes * (self.ranks_per_node - 1):
            raise BadInput(
                f"every box needs a rank, but {self.empty} of {self.nodes} × {self.ranks_per_node} places are empty"
            )
        if self.within and self.ranks_per_node % self._units:
            raise BadInput(f"{self.ranks_per_node} ranks cannot be divided evenly over {self._units} parts of a box")

    @property
    def _units(self) -> int:
        """How many innermost parts a box has."""
        return prod(level.fanout for level in self.within)

    @property
    def ranks(self) -> int:
        """All ranks of the group."""
        return self.nodes * self.ranks_per_node - self.empty

    @property
    def box_levels(self) -> tuple[Level, ...]:
        """The levels of a box from the ranks outwards, at least one."""
        inner = self.inner.among(self.ranks_per_node)
        if not self.within:
            return (Level(self.ranks_per_node, inner),)
        within = (Level(level.fanout, level.link.among(self.ranks_per_node)) for level in self.within)
        return (Level(self.ranks_per_node // self._units, inner), *within)

    @property
    def levels(self) -> tuple[Level, ...]:
        """All levels from the ranks outwards; the last one's children are the boxes."""
        return (*self.box_levels, Level(self.nodes, self.across if self.nodes > 1 else self.outer))

    @property
    def across(self) -> Link:
        """The link between boxes: the outer link with its sustained rate for this number of boxes and ranks."""
        if self.outer.pair_fraction == 1 and not self.outer.crowding:
            return self.outer
        return _across(self.outer, self.nodes, self.ranks)

    @property
    def rate_factor(self) -> float:
        """The factor, either way, within which the rate inside a box is on 90 % of hosts; 1 for a rank alone."""
        return self.inner.host_factor if self.ranks_per_node > 1 else 1.0

    def at_rate(self, factor: float) -> "Group":
        """The group with ranks of a box joined at so many times the rate."""
        return replace(self, inner=self.inner.at_rate(factor))

    @property
    def used_links(self) -> tuple[Link, ...]:
        """The links that carry traffic: those of levels with several children; for a single rank its inner link."""
        return tuple(level.link for level in self.levels if level.fanout > 1) or (self.inner,)

    @property
    def slowest(self) -> Link:
        """The used link with the least sustained bandwidth (of equal ones the one with the greater latency)."""
        return min(self.used_links, key=lambda link: (link.sustained_bytes_per_second, -link.latency_seconds))


@remembered(1024)
def _across(outer: Link, nodes: int, ranks: int) -> Link:
    pair_fraction = outer.pair_fraction if nodes == 2 else 1.0
    fraction = outer.sustained_fraction * pair_fraction / (1 + outer.crowding * sqrt(ranks))
    return replace(outer, sustained_fraction=fraction)
