import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.math_modes import OP_MATHS
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.op_kinds import Attention, View
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import CLASSES, PHASES, Columns, trace_from
from epochcast.errors import BadInput

RESNET = zoo_model("resnet18")


def test_columns_hold_every_op_that_runs_a_kernel() -> None:
    trace = RESNET.trace(Recipe(3))
    ops = [op for op in trace.ops if not isinstance(op.kind, View)]
    assert len(trace.columns) == len(ops) == len(trace.layers) == len(trace.places)
    assert trace.layers == tuple(op.layer for op in ops)
    assert np.array_equal(trace.columns.flops, [op.work.flops for op in ops])
    assert np.array_equal(trace.columns.bytes, [op.work.read_bytes + op.work.written_bytes for op in ops])


def test_columns_name_class_phase_and_math_by_their_tables() -> None:
    trace = RESNET.trace(Recipe(3, precision="tf32"))
    c = trace.columns
    for index, place in enumerate(trace.places):
        op = trace.ops[place]
        assert CLASSES[c.op_class[index]] is op.op_class
        assert PHASES[c.phase[index]] is op.phase
        assert OP_MATHS[c.math[index]] == op.math


def test_a_convolution_row_has_its_geometry() -> None:
    c = RESNET.trace(Recipe(3)).columns
    first = (c.kernel[0], c.stride[0], c.groups[0], c.channels_in[0], c.channels_out[0], c.element_bytes[0])
    assert first == (49, 4, 1, 3, 64, 4)


@given(batch=st.integers(1, 500))
def test_flops_are_proportional_to_the_batch(batch: int) -> None:
    trace = RESNET.trace(Recipe(1))
    assert trace.rebatch(batch).flops["matrix"] == batch * trace.flops["matrix"]


def test_phases_sum_to_the_matrix_flops() -> None:
    flops = RESNET.trace(Recipe(3)).flops
    assert flops["forward"] + flops["backward"] + flops["update"] == flops["matrix"]


@given(batch=st.integers(1, 100), more=st.integers(0, 100))
def test_a_larger_batch_never_has_less_work(batch: int, more: int) -> None:
    small, large = RESNET.trace(Recipe(batch)).columns, RESNET.trace(Recipe(batch + more)).columns
    assert np.all(small.flops <= large.flops)
    assert np.all(small.bytes <= large.bytes)


def test_rebatching_shares_the_template() -> None:
    trace = RESNET.trace(Recipe(3))
    assert trace.rebatch(7).template is trace.template
    assert trace.rebatch(7).batch == 7


def test_a_batch_below_one_is_refused() -> None:
    with pytest.raises(BadInput, match="batch must be at least 1, got 0"):
        RESNET.trace(Recipe(3)).rebatch(0)


def masked(batch: int) -> Graph:
    b = Builder("masked", batch)
    x = b.linear(b.input("x", (5,)), 5, name="fc")
    (y,) = b.opaque("mystery", [b.add(x, b.constant("mask", (7, 1, 5)))], [(batch, 5)])
    return b.finish(y)


def test_inputs_are_of_one_sample_and_constants_as_they_are() -> None:
    trace = trace_from(masked, Recipe(8))
    assert {t.name: t.shape for t in trace.inputs} == {"x": (1, 5), "mask": (7, 1, 5)}


def test_unknown_ops_are_listed_once_and_have_their_class() -> None:
    trace = trace_from(masked, Recipe(8))
    assert trace.opaque == ("mystery",)
    assert sum(CLASSES[i] is OpClass.OPAQUE for i in trace.columns.op_class) == 2  # forward and backward


def test_frozen_parameters_are_marked() -> None:
    trace = RESNET.trace(Recipe(3, freeze=("layer*",)))
    assert {p.trainable for p in trace.parameters if p.layer.startswith("layer")} == {False}
    assert {p.trainable for p in trace.parameters if p.layer == "fc"} == {True}


def attending(*, causal: bool, window: int = 0, attention: str = "flash") -> Columns:
    """Attention of 2 heads of 6 over 8 tokens, forward and backward."""

    def build(batch: int) -> Graph:
        b = Builder("attending", batch)
        q = b.view(b.linear(b.input("x", (8, 12)), 12), (batch, 2, 8, 6))
        return b.finish(b.op(Attention(causal, window), [q, q, q], [q.shape], name="attention")[0], loss="none")

    trace = trace_from(build, Recipe(5, mode="forward_backward", attention=attention))
    return trace.columns.at(np.array(trace.layers) == "attention")


@pytest.mark.parametrize(("window", "pairs"), [(0, 8 * 9 / 2), (3, 1 + 2 + 6 * 3), (1, 8)])
def test_causal_flash_attention_runs_what_its_mask_leaves(window: int, pairs: float) -> None:
    """Of 8 queries the first sees one key, the second two …, none more than its window."""
    columns = attending(causal=True, window=window)
    np.testing.assert_allclose(columns.flops[columns.is_matrix], [2 * 2 * 5 * 2 * pairs * 6, 5 * 2 * 5 * 2 * pairs * 6])


def test_eager_attention_computes_the_whole_square() -> None:
    causal, whole = (attending(causal=causal, attention="eager") for causal in (True, False))
    assert causal.flops[causal.is_matrix].sum() == whole.flops[whole.is_matrix].sum() > 0


def test_reported_flops_are_the_published_ones_mask_or_not() -> None:
    trace = zoo_model("gpt2", (64,)).trace(Recipe(2))
    matrix = trace.columns.flops[trace.columns.is_matrix].sum()
    assert matrix < trace.flops["matrix"] == sum(op.work.flops for op in trace.ops if op.op_class.is_matrix)
