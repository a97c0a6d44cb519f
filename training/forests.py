"""Forests that LightGBM grew, flattened, shortened and as documents for JSON; `epochcast.cost.trees` reads them."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from epochcast.cost.trees import LEAF, Forest
from epochcast.errors import BadInput


def flattened(dump: Mapping[str, Any]) -> Forest:
    """What `lightgbm.Booster.dump_model()` returns, exactly."""
    trees = [list(_preorder(tree["tree_structure"])) for tree in dump["tree_info"]]
    return Forest.from_preorder(dump["feature_names"], trees)


def _preorder(node: Mapping[str, Any]) -> Iterator[tuple[int, float]]:
    if "leaf_value" in node:
        yield LEAF, float(node["leaf_value"])
        return
    if node["decision_type"] != "<=":
        raise BadInput(f"a forest splits by '<=' only, the dump has {node['decision_type']!r} (a categorical feature?)")
    yield int(node["split_feature"]), float(node["threshold"])
    yield from _preorder(node["left_child"])
    yield from _preorder(node["right_child"])


def rounded(forest: Forest, value_step: float, digits: int) -> Forest:
    """Leaf values to multiples of `value_step`, thresholds to `digits` significant digits: shorter text."""
    is_leaf = forest.feature == LEAF
    short = np.array([float(f"{number:.{digits}g}") if abs(number) > 1e-30 else 0.0 for number in forest.number])
    return replace(forest, number=np.where(is_leaf, np.round(forest.number / value_step) * value_step, short))


def forest_document(forest: Forest, value_step: float) -> dict[str, Any]:
    """For JSON: thresholds by their place in a table per feature, leaf values in units of `value_step`."""
    tables = [np.unique(forest.number[forest.feature == f]) for f in range(len(forest.features))]
    numbers = np.zeros(len(forest.feature), dtype=np.int64)
    for f, table in enumerate(tables):
        mine = forest.feature == f
        numbers[mine] = np.searchsorted(table, forest.number[mine])
    is_leaf = forest.feature == LEAF
    numbers[is_leaf] = np.round(forest.number[is_leaf] / value_step).astype(np.int64)
    return {
        "features": list(forest.features),
        "value_step": value_step,
        "thresholds": [table.tolist() for table in tables],
        "roots": forest.roots.tolist(),
        "split": forest.feature.tolist(),
        "number": numbers.tolist(),
    }
