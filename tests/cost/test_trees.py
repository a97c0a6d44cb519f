import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.cost.trees import LEAF, Forest
from epochcast.errors import BadInput

# x ≤ 2 → 10; else y ≤ 0.5 → 20; else 30
STEPS = [(0, 2.0), (LEAF, 10.0), (1, 0.5), (LEAF, 20.0), (LEAF, 30.0)]
ALWAYS_ONE = [(LEAF, 1.0)]
FOREST = Forest.from_preorder(("x", "y"), [STEPS, ALWAYS_ONE])


def test_three_rows_by_hand() -> None:
    rows = np.array([[2.0, 9.0], [2.1, 0.5], [3.0, 0.6]])
    assert FOREST.values(rows).tolist() == [11.0, 21.0, 31.0]


def test_no_rows_have_no_values() -> None:
    assert FOREST.values(np.zeros((0, 2))).tolist() == []


def test_a_forest_without_trees_is_zero() -> None:
    assert Forest.from_preorder(("x",), []).values(np.ones((2, 1))).tolist() == [0.0, 0.0]


def test_a_document_gives_the_forest_back() -> None:
    again = Forest.from_document(FOREST.as_document(0.5))
    rows = np.random.default_rng(0).uniform(-1, 4, (50, 2))
    assert np.array_equal(again.values(rows), FOREST.values(rows))


def test_leaves_are_counted_over_all_trees() -> None:
    assert FOREST.leaves == 4


@given(step=st.sampled_from([1e-3, 1e-2, 0.1]), values=st.lists(st.floats(-5, 5), min_size=2, max_size=9))
def test_rounding_moves_a_sum_by_half_a_step_per_tree_at_most(step: float, values: list[float]) -> None:
    forest = Forest.from_preorder(("x",), [[(LEAF, value)] for value in values])
    moved = forest.rounded(step, 6).values(np.zeros((1, 1))) - forest.values(np.zeros((1, 1)))
    assert abs(moved[0]) <= len(values) * step / 2 + 1e-9


def test_a_missing_value_is_refused_by_its_name() -> None:
    with pytest.raises(BadInput, match="takes no missing values; y has some"):
        FOREST.values(np.array([[1.0, np.nan]]))


def test_rows_of_another_width_are_refused() -> None:
    with pytest.raises(BadInput, match=r"2 features was given rows of shape \(1, 3\)"):
        FOREST.values(np.zeros((1, 3)))


@pytest.mark.parametrize("broken", [STEPS[:-1], [*ALWAYS_ONE, (LEAF, 2.0)], []])
def test_a_tree_that_is_no_preorder_is_refused(broken: list[tuple[int, float]]) -> None:
    with pytest.raises(BadInput, match="is not complete"):
        Forest.from_preorder(("x", "y"), [broken])


def test_a_split_on_a_feature_nobody_named_is_refused() -> None:
    with pytest.raises(BadInput, match="1 features splits on others"):
        Forest.from_preorder(("x",), [[(3, 0.0), (LEAF, 1.0), (LEAF, 2.0)]])


def test_values_equal_lightgbm() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(800, 4))
    rows[:, 3] = rng.integers(0, 3, 800)
    target = np.sin(rows[:, 0]) + rows[:, 1] * (rows[:, 3] > 1)
    booster = lightgbm.train(
        {"verbose": -1, "num_leaves": 15, "num_threads": 1}, lightgbm.Dataset(rows, target), num_boost_round=40
    )
    forest = Forest.from_dump(booster.dump_model())
    assert np.abs(forest.values(rows) - booster.predict(rows)).max() < 1e-6


def test_a_categorical_split_is_refused() -> None:
    leaf = {"leaf_value": 0.0}
    node = {"split_feature": 0, "threshold": "0||2", "decision_type": "==", "left_child": leaf, "right_child": leaf}
    with pytest.raises(BadInput, match="splits by '<=' only, the dump has '=='"):
        Forest.from_dump({"feature_names": ["x"], "tree_info": [{"tree_structure": node}]})
