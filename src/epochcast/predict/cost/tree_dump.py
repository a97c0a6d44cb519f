"""Forests from what the libraries that grew them give out: LightGBM's dump, scikit-learn's arrays."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from epochcast.errors import BadInput
from epochcast.predict.cost.tree_ensembles import LEAF, Forest


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


def of_sklearn(features: Sequence[str], trees: Sequence[Any]) -> Forest:
    """The mean of scikit-learn's regression trees (`estimator.tree_`); its nodes are in preorder already."""
    return Forest.from_preorder(features, [list(_sklearn_nodes(tree, len(trees))) for tree in trees])


def _sklearn_nodes(tree: Any, count: int) -> Iterator[tuple[int, float]]:
    left, feature, threshold = tree.children_left.tolist(), tree.feature.tolist(), tree.threshold.tolist()
    values = tree.value[:, 0, 0].tolist()
    for node in range(tree.node_count):
        if left[node] < 0:
            yield LEAF, values[node] / count
        else:
            yield feature[node], threshold[node]
