import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.serialization import ops_from_json
from epochcast.describe.graph.tensor import DType
from epochcast.errors import UnknownName
from epochcast.measure.bench import ops_bench as ops
from epochcast.measure.bench.campaign import BenchQuestion, measure
from epochcast.measure.bench.random_shapes import forward_and_backward

points = st.lists(st.tuples(st.floats(-10, 10), st.floats(-10, 10)), min_size=1, max_size=30)


@pytest.fixture(scope="module")
def asked() -> list[BenchQuestion]:
    return ops.questions("cpu", draws=150)


# by hand: the middle is 2.4; 9 is farthest from it, then 0; of 3 (0.6 off) and 2 (0.4 off) the first
def test_the_next_point_is_the_farthest() -> None:
    order = ops.farthest_first(np.array([[0.0], [2.0], [3.0], [9.0], [2.4]]))
    assert order == [4, 3, 0, 2, 1]


@given(points=points)
def test_an_order_holds_every_point_once(points: list[tuple[float, float]]) -> None:
    assert sorted(ops.farthest_first(np.array(points))) == list(range(len(points)))


def test_heavy_classes_come_first_and_every_beginning_is_mixed(asked: list[BenchQuestion]) -> None:
    first = [op.op_class for q in asked[:40] for op in ops_from_json(q.ask["ops"])]
    assert {OpClass.CONV, OpClass.LINEAR, OpClass.CONV_POINTWISE, OpClass.ELEMENTWISE, OpClass.UPDATE} <= set(first)
    assert first.count(OpClass.CONV) >= 3


def test_questions_differ_and_come_from_the_seed_alone(asked: list[BenchQuestion]) -> None:
    keys = [q.key for q in asked]
    assert len(set(keys)) == len(keys)
    assert keys == [q.key for q in ops.questions("cpu", draws=150)]
    assert keys != [q.key for q in ops.questions("cpu", seed=1, draws=150)]


def test_forward_and_backward_are_asked_apart(asked: list[BenchQuestion]) -> None:
    phases = [[op.phase for op in ops_from_json(q.ask["ops"])] for q in asked]
    assert all(len(p) == 1 for p in phases)
    assert {p for (p,) in phases} == set(Phase)


def test_a_row_is_the_op_that_was_timed() -> None:
    b = Builder("conv", 4)
    b.conv(b.input("x", (8, 16, 16)), 8, 3, padding=1, name="conv")
    row = measure(ops.question_of(b.ops[0], "cpu"))
    assert row.failed is None
    assert ops_from_json(row.question["ops"]) == (b.ops[0],)
    assert row.seconds is not None and row.low_seconds is not None
    assert 1e-6 < row.low_seconds <= row.seconds < 5
    assert {"date", "threads", "processor_seconds"} <= set(row.details)


def test_an_op_that_torch_cannot_run_is_a_row_with_the_reason() -> None:
    b = Builder("norm", 1)
    b.norm(b.input("x", (4, 4)), "spectral", 4, name="norm")
    row = measure(ops.question_of(b.ops[0], "cpu"))
    assert row.failed == "no kernel to measure for spectral normalisation"


def test_results_are_kept_until_their_operands_are_used_again() -> None:
    b = Builder("relu", 1)
    b.relu(b.input("x", (4,)))
    execute = ops.executions(b.ops[0], "cpu")
    for _ in range(3 * ops.MOST_COPIES):
        execute()


def test_unknown_dtypes_are_named() -> None:
    assert ops.find_dtypes("float32, bfloat16") == [DType.FLOAT32, DType.BFLOAT16]
    assert ops.find_dtypes(None) == []
    with pytest.raises(UnknownName, match="no dtype to measure called 'int4'"):
        ops.find_dtypes("int4")


def test_indices_of_a_max_pool_point_into_the_image() -> None:
    """A kernel writes wherever an index points, also behind the end of its memory."""
    b = Builder("pool", 64)
    pooled = b.pool(b.input("x", (2, 6, 6)), "max", 2, 2, name="pool")
    backward = [op for op in forward_and_backward(tuple(b.ops)) if op.is_gradient]
    assert pooled.shape == (64, 2, 3, 3)
    (op,) = backward
    indices = [t for t in ops.operands(op, op.inputs, "cpu") if not t.is_floating_point()]
    assert indices and all(int(t.max()) < 36 for t in indices)
