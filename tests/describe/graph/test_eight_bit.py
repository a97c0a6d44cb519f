import pytest

from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.capture.zoo.decoder import decoder
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph, Op, Phase
from epochcast.describe.graph.op_kinds import Attention, Copy, Elementwise, Matmul, View
from epochcast.describe.graph.precision import PRECISIONS
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import DType
from epochcast.describe.graph.trace import Trace
from epochcast.predict.memory.peak import peak_memory


def net(batch: int) -> Graph:
    b = Builder("net", batch)
    x = b.input("x", (16, 32))
    x = b.relu(b.linear(x, 64, bias=False, name="first"))
    return b.finish(b.linear(x, 10, bias=False, name="head"))


def trace(precision: str = "fp8", mode: str = "training") -> Trace:
    return BuiltModel("net", net).trace(Recipe(4, precision=precision, optimizer="adamw", mode=mode))


def products(made: Trace, layer: str) -> list[Op]:
    return [op for op in made.ops if isinstance(op.kind, Matmul) and op.layer == layer]


def dtypes(op: Op) -> tuple[set[DType], DType]:
    return {t.dtype for t in (*op.inputs, *op.weights)}, op.output.dtype


@pytest.mark.parametrize("precision", ["fp8", "mxfp8", "nvfp4"])
def test_products_of_a_layer_are_narrow_and_their_results_are_not(precision: str) -> None:
    """No data gradient: the first layer reads the input."""
    forward, weights = products(trace(precision), "first")
    narrow = PRECISIONS[precision].products
    assert dtypes(forward) == ({narrow}, DType.BFLOAT16)
    assert dtypes(weights) == ({narrow}, DType.FLOAT32)


def test_the_layer_in_front_of_the_loss_stays_in_bfloat16() -> None:
    for mode in ("training", "forward"):
        assert not any(DType.FLOAT8 in dtypes(op)[0] for op in products(trace(mode=mode), "head"))


def test_an_operand_is_quantised_once_and_written_both_ways_round() -> None:
    made = trace()
    quantised = [op for op in made.ops if op.kind == Copy("quantize")]
    assert [op.inputs[0].name for op in quantised] == ["x", "grad:first/out"]
    assert {len(op.outputs) for op in quantised} == {2}
    forward, weights = products(made, "first")
    assert forward.inputs[0].name == "x@float8"
    assert [t.name for t in weights.inputs] == ["grad:first/out@float8:turned", "x@float8:turned"]


def test_attention_is_left_in_bfloat16() -> None:
    sizes = {"layers": 1, "width": 32, "heads": 4, "ffn": 64, "vocabulary": 100}
    model = BuiltModel("tiny", lambda n: decoder(n, (16,), name="tiny", **sizes))  # type: ignore[arg-type]
    ops = model.trace(Recipe(4, precision="mxfp8")).ops
    assert {op.dtype for op in ops if isinstance(op.kind, Attention)} == {DType.BFLOAT16}


def test_the_optimizer_keeps_its_own_copy_of_the_parameters() -> None:
    """Two bytes a parameter where they are multiplied; 4 of gradient; 12 of copy and moments."""
    made = trace()
    count = sum(p.elements for p in made.parameters)
    held = peak_memory(made).timeline.live_bytes
    assert held["parameters"].max() == 2 * count
    assert held["gradients"].max() == 4 * count
    assert held["optimizer_state"].max() == 12 * count


def test_parameters_are_written_once_a_step() -> None:
    update = [op for op in trace().ops if op.phase is Phase.UPDATE]
    assert [t.name for t in update[-1].outputs] == ["first.weight", "head.weight"]
    assert not any(t.name == "first.weight" for op in update[:-1] for t in (*op.inputs, *op.outputs))


def test_a_constant_of_a_frozen_norm_is_no_obstacle() -> None:
    def with_constant(batch: int) -> Graph:
        b = Builder("n", batch)
        x = b.linear(b.input("x", (8,)), 8, name="a")
        scale = b.op(View("constant"), [], [(8,)], name="scale")[0]
        return b.finish(b.linear(b.mul(x, scale), 4, name="b"))

    made = BuiltModel("n", with_constant).trace(Recipe(4, precision="fp8"))
    assert any(op.kind == Copy("quantize") for op in made.template.base)


def test_narrow_products_are_the_same_work() -> None:
    assert trace("nvfp4").flops["matrix"] == trace("fp32").flops["matrix"]


def test_four_bits_can_be_told_from_eight() -> None:
    eight, four = (trace(p, "forward").columns.element_bytes for p in ("fp8", "nvfp4"))
    assert (eight.min(), four.min()) == (1.0, 0.5)


def test_scores_that_the_network_casts_up_are_in_float32_and_norms_are_not() -> None:
    """Llama casts the scores of its loss; its norms cast, too, and are one kernel in bfloat16."""
    made = zoo_model("llama3_2_1b").trace(Recipe(1, precision="fp8", optimizer="adamw"))
    loss = [op for op in made.ops if op.layer == "loss"]
    assert {t.dtype for op in loss for t in op.outputs} == {DType.FLOAT32}
    forward = [op for op in made.ops if op.phase is Phase.FORWARD]
    assert {op.output.dtype for op in forward if op.kind == Elementwise("rsqrt")} == {DType.BFLOAT16}
    scores = next(op.inputs[0] for op in forward if op.kind == Copy("cast"))
    gradients = [t for op in made.ops for t in op.outputs if t.relation.adds_to_gradient_of == scores.name]
    assert (scores.dtype, {t.dtype for t in gradients}) == (DType.BFLOAT16, {DType.BFLOAT16})
