"""Ranks in boxes: an inner link joins the ranks of a box, an outer link joins the boxes.

The outer link is the box's, shared by its ranks. Boxes are alike; a heterogeneous group is not modelled.
"""

from dataclasses import dataclass

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
    def slowest(self) -> Link:
        """The link of least bandwidth among those the group uses (at a tie, of greater latency)."""
        if self.nodes == 1:
            return self.inner
        if self.ranks_per_node == 1:
            return self.outer
        return min(self.inner, self.outer, key=lambda link: (link.bandwidth_bytes_per_second, -link.latency_seconds))
