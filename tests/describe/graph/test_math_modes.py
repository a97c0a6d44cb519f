import pytest
from tests.every import every

from epochcast.describe.graph.math_modes import MATHS, OP_MATHS, op_math_index
from epochcast.describe.graph.op import Op
from epochcast.describe.graph.op_kinds import Elementwise
from epochcast.describe.graph.tensor import DType, Tensor
from epochcast.describe.graph.trace import columns_of
from epochcast.errors import UnknownName


@every("dtype", DType)
def test_every_dtype_has_a_math_that_ops_can_be_in(dtype: DType) -> None:
    x = Tensor((2, 3), dtype, "x")
    columns = columns_of([Op("op", Elementwise(), (x,), (x,))])
    assert OP_MATHS[columns.math[0]] == dtype.math


def test_the_table_names_only_maths_that_it_has() -> None:
    for math in MATHS.values():
        assert {math.stand_in, math.vector} <= {"", *MATHS}


def test_fitted_models_know_the_maths_of_ops_in_this_order() -> None:
    assert OP_MATHS == ("fp32", "tf32", "fp16", "bf16", "fp64", "fp8", "fp4")


@pytest.mark.parametrize("name", ["int8", "fp17", ""])
def test_a_math_that_no_op_is_in_is_refused(name: str) -> None:
    with pytest.raises(UnknownName, match="math of an op"):
        op_math_index(name)
