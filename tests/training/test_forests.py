import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.predict.cost.test_tree_ensembles import FOREST

from epochcast.errors import BadInput
from epochcast.predict.cost.tree_dump import flattened
from epochcast.predict.cost.tree_ensembles import LEAF, Forest
from training.forests import forest_document, rounded


def test_a_document_gives_the_forest_back() -> None:
    again = Forest.from_document(forest_document(FOREST, 0.5))
    rows = np.random.default_rng(0).uniform(-1, 4, (50, 2))
    assert np.array_equal(again.values(rows), FOREST.values(rows))


@given(step=st.sampled_from([1e-3, 1e-2, 0.1]), values=st.lists(st.floats(-5, 5), min_size=2, max_size=9))
def test_rounding_moves_a_sum_by_half_a_step_per_tree_at_most(step: float, values: list[float]) -> None:
    forest = Forest.from_preorder(("x",), [[(LEAF, value)] for value in values])
    moved = rounded(forest, step, 6).values(np.zeros((1, 1))) - forest.values(np.zeros((1, 1)))
    assert abs(moved[0]) <= len(values) * step / 2 + 1e-9


def test_values_equal_lightgbm() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(800, 4))
    rows[:, 3] = rng.integers(0, 3, 800)
    target = np.sin(rows[:, 0]) + rows[:, 1] * (rows[:, 3] > 1)
    booster = lightgbm.train(
        {"verbose": -1, "num_leaves": 15, "num_threads": 1}, lightgbm.Dataset(rows, target), num_boost_round=40
    )
    forest = flattened(booster.dump_model())
    assert np.abs(forest.values(rows) - booster.predict(rows)).max() < 1e-6


def test_a_categorical_split_is_refused() -> None:
    leaf = {"leaf_value": 0.0}
    node = {"split_feature": 0, "threshold": "0||2", "decision_type": "==", "left_child": leaf, "right_child": leaf}
    with pytest.raises(BadInput, match="splits by '<=' only, the dump has '=='"):
        flattened({"feature_names": ["x"], "tree_info": [{"tree_structure": node}]})
