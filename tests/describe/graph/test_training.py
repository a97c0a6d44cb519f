from collections import Counter

import pytest

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph, Op, Phase
from epochcast.describe.graph.op_kinds import Loss, Softmax
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.training import step_ops, with_loss
from epochcast.errors import BadInput, UnknownName


def classifier(loss: str = "cross_entropy", shape: tuple[int, ...] = (7,)) -> Graph:
    b = Builder("classifier", 2)
    return b.finish(b.linear(b.input("x", shape), 10, name="fc"), loss=loss)


def phases(mode: str) -> set[Phase]:
    return {op.phase for op in step_ops(classifier(), Recipe(2, mode=mode))}


def test_a_mode_is_its_phases() -> None:
    assert phases("forward") == {Phase.FORWARD}
    assert phases("forward_backward") == {Phase.FORWARD, Phase.BACKWARD}
    assert phases("training") == set(Phase)


def test_a_step_runs_forward_then_backward_then_update() -> None:
    order = [op.phase for op in step_ops(classifier(), Recipe(2))]
    assert order == sorted(order, key=list(Phase).index)


def test_cross_entropy_is_a_log_softmax_and_a_choice() -> None:
    softmax, nll = with_loss(classifier()).ops[-2:]
    assert (softmax.kind, nll.kind) == (Softmax(log=True), Loss("nll"))
    assert nll.inputs[1].shape == (2,)


def test_a_target_per_token_or_per_pixel() -> None:
    assert with_loss(classifier(shape=(5, 7))).ops[-1].inputs[1].shape == (2, 5)
    b = Builder("segmentation", 2)
    pixels = b.finish(b.conv(b.input("image", (3, 8, 8)), 21, 1))
    assert with_loss(pixels).ops[-1].inputs[1].shape == (2, 8, 8)


@pytest.mark.parametrize("loss", ["mse", "bce"])
def test_a_regression_compares_with_a_target_of_the_same_shape(loss: str) -> None:
    op = with_loss(classifier(loss)).ops[-1]
    assert op.kind == Loss(loss)
    assert [t.shape for t in op.inputs] == [(2, 10), (2, 10)]


def test_every_output_has_its_loss() -> None:
    graph = with_loss(zoo_model("googlenet").graph(2))
    assert sum(isinstance(op.kind, Loss) for op in graph.ops) == len(graph.outputs) == 3


def test_a_graph_without_a_loss_still_has_a_backward_pass() -> None:
    graph = classifier("none")
    assert with_loss(graph) is graph
    assert {op.layer for op in step_ops(graph, Recipe(2)) if op.phase is Phase.BACKWARD} == {"fc"}


def test_the_loss_can_be_left_out() -> None:
    ops = step_ops(classifier(), Recipe(2, with_loss=False, mode="forward_backward"))
    assert {op.layer for op in ops} == {"fc"}


def test_frozen_layers_cost_no_weight_gradient_and_no_update() -> None:
    model = zoo_model("resnet18")
    recipe = Recipe(2, optimizer="adam", freeze=("conv1*", "bn1*", "layer*"))
    by_phase = Counter(op.phase for op in step_ops(model.graph(2), recipe))
    assert by_phase[Phase.BACKWARD] == 2 + 2  # loss, log-softmax, and the head's weight and bias
    update = [op for op in step_ops(model.graph(2), recipe) if op.phase is Phase.UPDATE]
    assert {t.shape for op in update for t in op.outputs} == {(1000, 512), (1000,)}


def test_freezing_layers_saves_flops_step_by_step() -> None:
    def backward(*freeze: str) -> float:
        return zoo_model("resnet18").trace(Recipe(2, freeze=freeze)).flops["backward"]

    some, more = ("conv1*", "bn1*", "layer1*"), ("conv1*", "bn1*", "layer1*", "layer2*")
    assert backward() > backward("layer2.*") > backward(*some) > backward(*more) > 0


def test_eager_attention_runs_its_products_apart() -> None:
    model = zoo_model("vit_ti_16")

    def kinds(attention: str) -> set[str]:
        ops = model.trace(Recipe(2, attention=attention)).ops
        return {op.op_class.value for op in ops}

    assert "attention" in kinds("flash") and "batched_matmul" not in kinds("flash")
    assert "attention" not in kinds("eager") and "batched_matmul" in kinds("eager")


def test_fused_updates_move_fewer_bytes() -> None:
    def moved(style: str) -> int:
        ops = step_ops(classifier(), Recipe(2, optimizer="adam", update_style=style))
        return sum(op.work.read_bytes + op.work.written_bytes for op in ops if op.phase is Phase.UPDATE)

    elements = 7 * 10 + 10
    assert (moved("fused"), moved("foreach"), moved("loop")) == (4 * 7 * elements, 4 * 18 * elements, 4 * 18 * elements)


def test_a_freeze_that_matches_nothing_says_where_layers_begin() -> None:
    with pytest.raises(
        BadInput, match=r"`freeze` pattern 'features\.\*' matches no parameter of resnet18; layers begin with: bn1"
    ):
        step_ops(zoo_model("resnet18").graph(2), Recipe(2, freeze=("features.*",)))


def test_an_unknown_loss_names_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="no loss called 'hinge'; known: bce, cross_entropy"):
        with_loss(classifier("hinge"))


def test_graph_and_recipe_agree_on_the_batch() -> None:
    with pytest.raises(ValueError, match="the graph is at batch 2, the recipe at 3"):
        step_ops(classifier(), Recipe(3))


def test_a_graph_refuses_to_read_what_is_not_made() -> None:
    graph = classifier()
    lost = Op("lost", Softmax(), (graph.outputs[0],), (graph.outputs[0],))
    with pytest.raises(ValueError, match="classifier: op 'lost' reads 'fc/out' before it is made"):
        Graph("classifier", 2, graph.inputs, (lost,), (), ())
    with pytest.raises(ValueError, match="classifier: output 'fc/out' is never made"):
        Graph("classifier", 2, graph.inputs, (), (), graph.outputs)
