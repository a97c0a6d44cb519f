from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.every import every

from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Op, Phase
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.tensor import DType
from epochcast.measure.bench.random_shapes import LAYERS, OpLimits, draw, log_uniform, width

LIMITS = OpLimits(1e9, 2**26)


def drawn(seed: int, count: int, dtype: DType = DType.FLOAT32) -> list[Op]:
    random = Random(seed)
    return [op for _ in range(count) for op in draw(random, LIMITS, dtype)]


@given(seed=st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_nothing_beyond_the_limits_is_drawn(seed: int) -> None:
    for op in drawn(seed, 5):
        done = op.work
        assert done.flops <= LIMITS.flops and done.read_bytes + done.written_bytes <= LIMITS.bytes


def test_one_seed_draws_the_same_ops() -> None:
    assert drawn(7, 50) == drawn(7, 50)
    assert drawn(7, 50) != drawn(8, 50)


def test_every_class_of_op_is_drawn_in_both_directions() -> None:
    ops = drawn(0, 1500)
    assert {op.op_class for op in ops} == set(OpClass) - {OpClass.OPAQUE, OpClass.VIEW}
    backward = {op.op_class for op in ops if op.phase is Phase.BACKWARD}
    assert {OpClass.CONV, OpClass.LINEAR, OpClass.ATTENTION, OpClass.RECURRENT, OpClass.BATCH_NORM} <= backward


def test_half_precision_leaves_indices_alone() -> None:
    tensors = [t for op in drawn(0, 300, DType.BFLOAT16) for t in (*op.inputs, *op.weights, *op.outputs)]
    assert {t.dtype for t in tensors} == {DType.BFLOAT16, DType.INT64, DType.BOOL}


@every("name", LAYERS)
def test_every_layer_can_be_drawn_at_batch_1_and_at_512(name: str) -> None:
    for batch in (1, 512):
        for seed in range(5):
            assert all(op.outputs for op in LAYERS[name][1](Random(seed), Builder(name, batch)))


@given(seed=st.integers(0, 10**6), low=st.integers(1, 50), more=st.integers(0, 5000))
def test_sizes_stay_in_their_range(seed: int, low: int, more: int) -> None:
    assert low <= log_uniform(Random(seed), low, low + more) <= low + more
    assert 1 <= width(Random(seed), low, low + more) <= low + more + 4


def test_octaves_are_equally_likely() -> None:
    random = Random(0)
    draws = [log_uniform(random, 1, 256) for _ in range(4000)]
    assert sum(n < 16 for n in draws) / 4000 == pytest.approx(0.5, abs=0.04)
