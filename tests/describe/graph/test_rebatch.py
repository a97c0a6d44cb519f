from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph, Op
from epochcast.describe.graph.op_kinds import Elementwise, Matmul
from epochcast.describe.graph.rebatch import Template
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import DType, Tensor
from epochcast.describe.graph.trace import trace_from
from epochcast.describe.graph.training import step_ops
from epochcast.errors import BadInput

MODELS = ("resnet18", "mobilenet_v2", "vit_ti_16", "mnist_cnn", "lstm_lm", "dlrm")
batches = st.integers(1, 300)


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=4, deadline=None)
@given(batch=st.integers(2, 300), precision=st.sampled_from(["fp32", "amp"]))
def test_a_template_at_n_is_what_building_at_n_gives(name: str, batch: int, precision: str) -> None:
    recipe = Recipe(batch, optimizer="adam", precision=precision, attention="eager")
    trace = zoo_model(name).trace(recipe)
    built = step_ops(zoo_model(name).graph(batch), recipe)
    assert trace.ops == built
    assert np.array_equal(trace.template.work(batch), [op.work for op in built])


def lookup(batch: int) -> Graph:
    """Up to batch 25 the table is larger than what is looked up in it, then smaller."""
    b = Builder("lookup", batch)
    return b.finish(b.embedding(b.input("ids", (4,), DType.INT64), 100, 8, name="table"), loss="none")


@given(batch=batches)
def test_a_number_with_a_bend_is_right_on_both_sides_of_it(batch: int) -> None:
    trace = trace_from(lookup, Recipe(batch))
    gradient = trace.columns.m[trace.layers.index("table", 1)]
    assert gradient == max(100 * 8, batch * 4 * 8)


def pair(shape: tuple[int, ...]) -> list[Op]:
    x, y = Tensor(shape, name="x"), Tensor(shape, name="y")
    return [Op("op", Elementwise("relu"), (x,), (y,))]


@given(a=st.integers(0, 9), b=st.integers(0, 9), width=st.integers(1, 9), batch=batches)
def test_every_dimension_is_affine_in_the_batch(a: int, b: int, width: int, batch: int) -> None:
    template = Template.learn(pair((a + 4 * b, width)), 4, pair((a + 6 * b, width)), 6)
    (op,) = template.ops(batch)
    assert op.output.shape == (a + b * batch, width)


@given(batch=batches)
def test_a_product_of_two_growing_sides_is_quadratic(batch: int) -> None:
    def similarity(n: int) -> list[Op]:
        x = Tensor((n, 7), name="x")
        return [Op("op", Matmul(transpose_b=True), (x, x), (Tensor((n, n), name="y"),))]

    template = Template.learn(similarity(4), 4, similarity(6), 6)
    assert template.work(batch)[0, 0] == 2 * batch * batch * 7


def test_what_does_not_grow_is_the_same_op() -> None:
    template = Template.fixed(pair((3,)))
    assert template.ops(99)[0] is template.base[0]
    assert np.array_equal(template.work(99), template.work(1))


def test_layers_that_are_alike_are_counted_once() -> None:
    template = zoo_model("bert_base").trace(Recipe(8)).template
    samples, like = template.distinct
    assert len(samples) < len(template.base) / 5
    for op, number in zip(template.base, like, strict=True):
        assert op.work == samples[number][0].work


def test_a_template_of_no_ops_has_no_work() -> None:
    assert Template.fixed(()).work(5).shape == (0, 8)


def test_another_number_of_ops_is_refused() -> None:
    with pytest.raises(BadInput, match="runs 1 ops at batch 4 and 2 at batch 6: its control flow depends on the batch"):
        Template.learn(pair((4,)), 4, pair((6,)) * 2, 6)


def test_another_kind_is_refused() -> None:
    other = [replace(op, kind=Elementwise("tanh")) for op in pair((6,))]
    with pytest.raises(BadInput, match=r"op 'op' changes: .*relu.* at batch 4, .*tanh.* at batch 6"):
        Template.learn(pair((4,)), 4, other, 6)


def test_another_number_of_operands_is_refused() -> None:
    other = [replace(op, inputs=op.inputs * 2) for op in pair((6,))]
    with pytest.raises(BadInput, match="op 'op' has 1 operands at batch 4 and 2 at batch 6"):
        Template.learn(pair((4,)), 4, other, 6)


def test_another_rank_is_refused() -> None:
    with pytest.raises(BadInput, match="tensor 'x' changes its rank with the batch"):
        Template.learn(pair((4,)), 4, pair((6, 1)), 6)


def test_uneven_growth_is_refused() -> None:
    with pytest.raises(BadInput, match="tensor 'x' does not grow evenly with the batch"):
        Template.learn(pair((4,)), 4, pair((7,)), 6)
