"""Sums of decision trees as text, evaluated with numpy.

    f(x) = Σ_trees leaf(x);     at a node: left if x[feature] ≤ threshold, else right

LightGBM grows the trees (Ke et al. 2017), `training/forests.py` flattens and writes them; evaluating them needs neither
LightGBM nor its system library. A forest is written as the nodes of each tree in preorder, so the left child of a node
is the next node and only features, thresholds and leaf values need to be stored.

Limits: numerical splits only (no categories), and no missing values: a NaN raises.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochcast.base.caching import Cache, Derived, derived_property
from epochcast.errors import BadInput

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

LEAF = -1
# Rows are routed in blocks with so many places (rows times trees): arrays of a few megabytes.
BLOCK_PLACES = 400_000


@dataclass(frozen=True)
class Forest:
    """Trees over named features. Arrays run over all nodes of all trees, each tree in preorder.

    `feature` is LEAF for a leaf; `number` is the threshold of a split or the value of a leaf; `right` is the place of
    a split's right child (a leaf's own).
    """

    features: tuple[str, ...]
    feature: Integers
    number: Array
    right: Integers
    roots: Integers
    derived: Derived = field(init=False, compare=False, repr=False, default_factory=partial(Cache, 1))

    def __post_init__(self) -> None:
        if not len(self.feature) == len(self.number) == len(self.right):
            raise BadInput("a forest needs a feature, a number and a right child for every node")
        if len(self.feature) and not (self.feature >= LEAF).all() & (self.feature < len(self.features)).all():
            raise BadInput(f"a forest of {len(self.features)} features splits on unknown features")
        if not np.isfinite(self.number).all():
            raise BadInput("a forest needs finite thresholds and values")

    @classmethod
    def from_preorder(cls, features: Sequence[str], trees: Sequence[Sequence[tuple[int, float]]]) -> "Forest":
        """Trees given as (feature or LEAF, threshold or value) in preorder."""
        flat = [node for tree in trees for node in tree]
        roots = np.cumsum([0, *(len(tree) for tree in trees)])[:-1]
        feature = np.array([node[0] for node in flat], dtype=np.int64)
        number = np.array([node[1] for node in flat], dtype=np.float64)
        return cls(tuple(features), feature, number, _right_children(feature, roots), roots.astype(np.int64))

    def values(self, rows: Array) -> Array:
        """f(x) of every row; columns in the order of `features`."""
        if rows.ndim != 2 or rows.shape[1] != len(self.features):
            raise BadInput(f"a forest of {len(self.features)} features was given rows of shape {rows.shape}")
        if not np.isfinite(rows).all():
            wrong = self.features[int(np.flatnonzero(~np.isfinite(rows).all(axis=0))[0])]
            raise BadInput(f"a forest takes no missing values; {wrong} has some")
        if not len(self.roots):
            return np.zeros(len(rows))
        block = max(1, BLOCK_PLACES // len(self.roots))
        parts = [self._block(np.ascontiguousarray(rows[i : i + block])) for i in range(0, len(rows), block)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _block(self, rows: Array) -> Array:
        """All trees at once: every row goes down every tree; at a leaf it stays."""
        left, split, threshold = self._walk
        node = np.tile(self.roots, len(rows))
        starts = np.repeat(np.arange(len(rows)) * rows.shape[1], len(self.roots))
        flat = rows.reshape(-1)
        while True:
            goes_left = flat[starts + split[node]] <= threshold[node]
            next_node = np.where(goes_left, left[node], self.right[node])
            if np.array_equal(next_node, node):
                return np.asarray(self.number[node].reshape(len(rows), -1).sum(axis=1))
            node = next_node

    @derived_property
    def _walk(self) -> tuple[Integers, Integers, Array]:
        """Left children, features and thresholds, such that a leaf leads to itself."""
        is_leaf, places = self.feature == LEAF, np.arange(len(self.feature))
        return (
            np.where(is_leaf, places, places + 1),
            np.where(is_leaf, 0, self.feature),
            np.where(is_leaf, np.inf, self.number),
        )

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Forest":
        """Thresholds by their place in a table per feature, leaf values in units of `value_step`."""
        feature = np.array(document["split"], dtype=np.int64)
        places = np.array(document["number"], dtype=np.int64)
        number: Array = np.asarray(places * float(document["value_step"]), dtype=np.float64)
        for f, table in enumerate(document["thresholds"]):
            splits = feature == f
            number[splits] = np.array(table, dtype=np.float64)[places[splits]] if splits.any() else 0.0
        roots = np.array(document["roots"], dtype=np.int64)
        return cls(tuple(document["features"]), feature, number, _right_children(feature, roots), roots)


def _right_children(feature: Integers, roots: Integers) -> Integers:
    """Where the right subtree of every split begins: after all of its left one. Raises if the nodes are not in
    preorder.
    """
    right = np.zeros(len(feature), dtype=np.int64)
    ends = [*roots[1:].tolist(), len(feature)][: len(roots)]
    for root, end in zip(roots.tolist(), ends, strict=True):
        waiting: list[int] = []  # splits whose right child has not begun
        place = root
        while place < end:
            if feature[place] != LEAF:
                waiting.append(place)
            elif waiting:
                right[place] = place
                right[waiting.pop()] = place + 1
            elif place != end - 1:
                break
            else:
                right[place] = place
            place += 1
        if waiting or place != end or end == root or right[root:end].max() >= end:
            raise BadInput(f"the tree that begins at node {root} is not complete")
    return right
