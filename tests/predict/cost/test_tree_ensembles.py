import numpy as np
import pytest

from epochcast.errors import BadInput
from epochcast.predict.cost.tree_ensembles import LEAF, Forest

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
    with pytest.raises(BadInput, match="1 features splits on unknown features"):
        Forest.from_preorder(("x",), [[(3, 0.0), (LEAF, 1.0), (LEAF, 2.0)]])
