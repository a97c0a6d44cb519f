from collections import Counter

import pytest

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.backward import backward, differentiable
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Gradient, Graph, Op
from epochcast.describe.graph.op_kinds import Conv, Copy, Elementwise, Embedding, Kind, Matmul, Norm, Pool, Reduce, View
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import DType
from epochcast.describe.graph.training import with_loss


def matrix_flops(ops: tuple[Op, ...]) -> int:
    return sum(op.work.flops for op in ops if op.op_class.is_matrix)


def of_kind(ops: tuple[Op, ...], kind: type[Kind]) -> list[Op]:
    return [op for op in ops if isinstance(op.kind, kind)]


def written(ops: tuple[Op, ...]) -> set[str]:
    return {tensor.name for op in ops for tensor in op.outputs}


def three_layers() -> Graph:
    b = Builder("three", 2)
    x = b.input("x", (5,))
    for index, width in enumerate((7, 11, 3)):
        x = b.relu(b.linear(x, width, name=f"fc{index}"), name=f"relu{index}")
    return with_loss(b.finish(x))


def test_resnet18_backward_is_twice_forward_without_the_first_data_gradient() -> None:
    graph = with_loss(zoo_model("resnet18").graph(2))
    first = graph.ops[0]
    assert isinstance(first.kind, Conv)
    assert matrix_flops(backward(graph)) == 2 * matrix_flops(graph.ops) - first.kind.flops(first)


def test_resnet18_backward_has_two_products_per_layer_but_the_first() -> None:
    ops = backward(with_loss(zoo_model("resnet18").graph(2)))
    directions = Counter(op.gradient for op in of_kind(ops, Conv))
    assert directions == {Gradient.WEIGHTS: 20, Gradient.DATA: 19}
    assert Counter(op.gradient for op in of_kind(ops, Matmul)) == {Gradient.WEIGHTS: 1, Gradient.DATA: 1}
    assert len(of_kind(ops, Norm)) == 20


def test_every_residual_block_adds_two_gradients_once() -> None:
    ops = backward(with_loss(zoo_model("resnet18").graph(2)))
    assert sum(op.name.endswith(".accumulate") for op in ops) == 8


def test_ops_run_in_reverse_and_every_gradient_is_made_before_it_is_read() -> None:
    graph = with_loss(zoo_model("resnet18").graph(2))
    known = {t.name for t in graph.inputs} | {p.name for p in graph.parameters}
    known |= {t.name for op in graph.ops for t in op.outputs}
    for op in backward(graph):
        assert {t.name for t in (*op.inputs, *op.weights)} <= known
        known |= {t.name for t in op.outputs}


def test_every_trainable_parameter_gets_a_gradient_of_its_shape() -> None:
    graph = with_loss(zoo_model("resnet18").graph(2))
    shapes = {t.name: t.shape for op in backward(graph) for t in op.outputs}
    assert all(shapes[f"grad:{p.name}"] == p.tensor.shape for p in graph.parameters)


def test_a_frozen_layer_costs_no_weight_gradient() -> None:
    graph = three_layers()
    frozen = backward(graph.frozen(["fc1.*"]))
    assert "grad:fc1.weight" not in written(frozen)
    assert "grad:fc1.bias" not in written(frozen)
    assert matrix_flops(backward(graph)) - matrix_flops(frozen) == 2 * 2 * 7 * 11


def test_layers_in_front_of_the_first_trainable_parameter_cost_nothing() -> None:
    ops = backward(three_layers().frozen(["fc0*", "fc1*"]))
    assert {op.layer for op in ops} == {"loss", "relu2", "fc2"}
    assert matrix_flops(ops) == 2 * 2 * 11 * 3  # the weight gradient of the last layer


def test_nothing_is_differentiated_where_everything_is_frozen() -> None:
    assert backward(three_layers().frozen(["*"])) == ()


def test_a_gradient_stops_at_whole_numbers() -> None:
    b = Builder("lookup", 2)
    rows = b.embedding(b.input("ids", (3,), DType.INT64), 10, 4)
    assert differentiable(b.finish(rows)) == {"embedding.weight", rows.name}


def test_a_tensor_used_twice_collects_its_gradients_by_an_addition() -> None:
    b = Builder("twice", 2)
    x = b.linear(b.input("x", (3,)), 5, name="fc")
    y = b.add(b.relu(x), b.elementwise("tanh", x))
    ops = backward(b.finish(y, loss="none"))
    sums = [op for op in of_kind(ops, Elementwise) if op.name.endswith(".accumulate")]
    assert [op.output.name for op in sums] == [f"grad:{x.name}"]
    assert sums[0].work.read_bytes == 2 * x.bytes


def test_tied_weights_accumulate_one_gradient() -> None:
    b = Builder("tied", 2)
    x = b.embedding(b.input("ids", (3,), DType.INT64), 10, 4, name="table")
    table = b.parameters["table.weight"].tensor
    graph = with_loss(b.finish(b.linear(x, 10, bias=False, weight=table, name="head")))
    ops = backward(graph)
    assert [op.kind for op in ops if op.output.name == "grad:table.weight"] == [Matmul(transpose_a=True), Elementwise()]
    assert len(of_kind(ops, Embedding)) == 1


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_both_gradients_of_a_product_cost_what_it_costs(transpose_a: bool, transpose_b: bool) -> None:
    """A (2, 5, 7), B (2, 7, 11), each stored either way: three products of 2·2·5·7·11 flops."""
    b = Builder("product", 2)
    x = b.input("x", (1,))
    a = b.linear(x, 35)
    c = b.linear(x, 77)
    a = b.view(a, (2, 7, 5) if transpose_a else (2, 5, 7))
    c = b.view(c, (2, 11, 7) if transpose_b else (2, 7, 11))
    y = b.matmul(a, c, transpose_a=transpose_a, transpose_b=transpose_b, name="product")
    ops = tuple(op for op in backward(b.finish(y, loss="none")) if op.layer == "product")
    assert [op.work.flops for op in ops] == [2 * 2 * 5 * 7 * 11] * 2
    assert [op.output.shape for op in ops] == [c.shape, a.shape]  # bmm: mat2 before self


def test_a_matrix_shared_by_all_samples_gets_one_flat_product() -> None:
    b = Builder("shared", 2)
    x = b.linear(b.input("x", (3, 1)), 5, name="fc")
    shared = b.matmul(b.parameter("left", (5, 4)), b.parameter("right", (4, 7)), name="made")
    ops = backward(b.finish(b.matmul(x, shared, name="product"), loss="none"))
    assert [op.work.flops for op in ops if op.layer == "product"] == [2 * 6 * 5 * 7] * 2


def test_a_broadcast_operand_of_a_product_gets_a_sum() -> None:
    b = Builder("heads", 2)
    x = b.input("x", (1,))
    q = b.view(b.linear(x, 60), (2, 3, 4, 5))
    k = b.view(b.linear(x, 30), (2, 1, 6, 5))
    ops = backward(b.finish(b.matmul(q, k, transpose_b=True, name="scores"), loss="none"))
    mine = [op for op in ops if op.layer == "scores"]
    assert [type(op.kind) for op in mine] == [Matmul, Reduce, Matmul]
    assert mine[0].work.flops == 2 * 2 * 3 * 4 * 5 * 6


@pytest.mark.parametrize("bias", [False, True])
def test_gradients_come_in_the_order_of_the_generated_code_of_pytorch(bias: bool) -> None:
    """Without a bias a linear layer is mm (mat2, self), with one it is addmm (mat1, mat2, self); mul is other, self."""
    b = Builder("order", 2)
    x = b.linear(b.input("x", (4,)), 8, name="first")
    gate = b.parameter("gate", (1, 8))
    y = b.linear(b.mul(x, gate, name="mul"), 8, bias=bias, name="last")
    made = [op.output.name for op in backward(b.finish(y, loss="none")) if op.layer in ("mul", "last")]
    last = ["grad:mul/out", "grad:last.weight", "grad:last.bias"] if bias else ["grad:last.weight", "grad:mul/out"]
    assert made[: len(last)] == last
    assert made[len(last) :] == ["grad:gate*mul/out", "grad:first/out", "grad:gate"]


def one_layer(layer: str) -> list[Op]:
    """The backward ops of one layer behind a linear one."""
    b = Builder("one", 2)
    x = b.view(b.linear(b.input("x", (1,)), 64, name="fc"), (2, 4, 4, 4))
    match layer:
        case "max":
            y = b.max_pool(x, 2, name="layer")
        case "average":
            y = b.average_pool(x, 2, name="layer")
        case "global":
            y = b.adaptive_average_pool(x, name="layer")
        case "dropout":
            y = b.dropout(x, name="layer")
        case "scale":
            y = b.mul(x, b.parameter("gate", (4, 1, 1)), name="layer")
        case "difference":
            y = b.elementwise("sub", x, b.relu(x), name="layer")
        case "concatenate":
            y = b.concatenate([x, b.relu(x)], name="layer")
        case _:
            y = b.elementwise(layer, x, name="layer")
    return [op for op in backward(b.finish(y, loss="none")) if op.layer == "layer"]


# Elements: the input has 128, a 2x2 pool's output 32; 4 bytes each, a mask 1, indices 8.
@pytest.mark.parametrize(
    ("layer", "kinds", "read_bytes"),
    [
        ("relu", [Elementwise("relu")], 4 * 256),  # the gradient and its own output
        ("gelu", [Elementwise("gelu")], 4 * 256),  # the gradient and its input
        ("dropout", [Elementwise("dropout")], 4 * 128 + 128),  # the gradient and a boolean mask
        ("neg", [Elementwise("neg")], 4 * 128),
        ("max", [Pool("max")], 4 * 32 + 4 * 128 + 8 * 32),
        ("average", [Pool("average")], 4 * 32),
        ("global", [Elementwise("div")], 4 * 8),
        ("difference", [View("pass"), Elementwise("neg")], 4 * 128),
        ("concatenate", [View("slice"), View("slice")], 0),
    ],
)
def test_a_rule_reads_what_it_saved(layer: str, kinds: list[Kind], read_bytes: int) -> None:
    ops = one_layer(layer)
    assert [op.kind for op in ops if not op.name.endswith(".accumulate")] == kinds
    assert sum(op.work.read_bytes for op in ops) == read_bytes


def test_a_broadcast_factor_gets_the_sum_of_its_gradient() -> None:
    assert [op.kind for op in one_layer("scale")] == [Elementwise("mul"), Elementwise("mul"), Reduce("sum")]


def test_an_expansion_is_summed_and_a_split_is_written_back() -> None:
    b = Builder("views", 2)
    token = b.view(b.parameter("token", (1, 1, 4)), (2, 1, 4), "expand")
    left, right = b.split(b.linear(token, 6, name="fc"), 2)
    ops = backward(b.finish(b.mul(left, right), loss="none"))
    assert [op.kind for op in ops if op.layer in ("split", "expand")] == [Copy("concatenate"), Reduce("sum")]


def test_the_rules_hold_for_a_step_of_the_whole_model() -> None:
    step = zoo_model("resnet18").trace(Recipe(2)).flops
    graph = zoo_model("resnet18").graph(2)
    assert step["forward"] == matrix_flops(graph.ops)
    assert step["backward"] == 2 * step["forward"] - graph.ops[0].kind.flops(graph.ops[0])
