import numpy as np
import pytest

from epochcast.describe.capture.onnx.constant_folding import fold


@pytest.mark.parametrize("op", ["Max", "Min", "Add", "Div", "Where"])
def test_small_constants_that_broadcast_to_a_huge_one_are_left_unknown(op: str) -> None:
    count = {"Max": 6, "Min": 6, "Where": 3}.get(op, 2)
    arrays = [np.ones([4000 if axis == i else 1 for axis in range(count)], dtype=np.int64) for i in range(count)]
    assert fold(op, arrays, {}) is None  # six of them would have 4·10²¹ elements


def test_rows_gathered_many_times_are_left_unknown() -> None:
    assert fold("Gather", [np.ones((1, 4000)), np.zeros(4000)], {"axis": 0}) is None
    gathered = fold("Gather", [np.arange(4), np.array([2, 0])], {"axis": 0})
    assert gathered is not None
    assert gathered[0].tolist() == [2, 0]
