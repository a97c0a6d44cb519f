"""Ranks in boxes: an inner link joins the ranks of a box, an outer link joins the boxes.

The outer link is the box's, shared by its ranks: a ring or a tree through all ranks leaves and enters each box once,
so it has the whole of it. Boxes are alike; a heterogeneous group is not modelled.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

from epochcast.errors import BadInput
from epochcast.hardware.link import Link

__all__ = ["Group", "Link"]


@dataclass(frozen=True, slots=True)
class Group:
    """`nodes` boxes of `ranks_per_node` ranks each."""

    nodes: int
    ranks_per_node: int
    inner: Link
    outer: Link

    def __post_init__(self) -> None:
        if self.nodes < 1:
            raise BadInput(f"nodes must be at least 1, got {self.nodes}")
        if self.ranks_per_node < 1:
            raise BadInput(f"ranks_per_node must be at least 1, got {self.ranks_per_node}")

    @property
    def ranks(self) -> int:
        """All ranks of the group."""
        return self.nodes * self.ranks_per_node

    @property
    def across(self) -> Link:
        """What joins the boxes: the outer link with what it sustains between so many boxes and ranks."""
        if self.outer.pair_fraction == 1 and not self.outer.crowding_per_rank:
            return self.outer
        return _across(self.outer, self.nodes, self.ranks)

    @property
    def used_links(self) -> tuple[Link, ...]:
        """The links that carry anything: inside a box of several ranks, across where there are several boxes."""
        inside = (self.inner,) if self.ranks_per_node > 1 or self.nodes == 1 else ()
        return inside + ((self.across,) if self.nodes > 1 else ())

    @property
    def slowest(self) -> Link:
        """The link of least sustained bandwidth among those the group uses (at a tie, of greater latency)."""
        return min(self.used_links, key=lambda link: (link.sustained_bytes_per_second, -link.latency_seconds))


@lru_cache(maxsize=1024)
def _across(outer: Link, nodes: int, ranks: int) -> Link:
    pair_fraction = outer.pair_fraction if nodes == 2 else 1.0
    fraction = outer.sustained_fraction * pair_fraction / (1 + outer.crowding_per_rank * ranks)
    return replace(outer, sustained_fraction=fraction)
