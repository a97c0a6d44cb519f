"""Forests that LightGBM grew, shortened and as documents for JSON; `epochcast.predict.cost.tree_ensembles` reads
them."""

from dataclasses import replace
from typing import Any

import numpy as np

from epochcast.predict.cost.tree_ensembles import LEAF, Forest


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
