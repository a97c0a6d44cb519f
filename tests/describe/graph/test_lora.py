import pytest

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.four_bit import with_four_bits
from epochcast.describe.graph.lora import matched
from epochcast.describe.graph.op import Gradient
from epochcast.describe.graph.op_kinds import Matmul, OptimizerUpdate, View
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.predict.memory.peak import peak_memory

TINY = zoo_model("tinyllama_1_1b", (64,))


def trace(**recipe: object) -> Trace:
    return TINY.trace(Recipe(2, optimizer="adamw", precision="bf16", **recipe))  # type: ignore[arg-type]


def trained(made: Trace) -> int:
    return sum(p.elements for p in made.parameters if p.trainable)


def test_lora_trains_two_thin_matrices_beside_queries_and_values() -> None:
    """22 layers, rank 8: queries 2048 → 2048, values 2048 → 256."""
    assert trained(trace(lora=8)) == 22 * 8 * (2048 + 2048 + 2048 + 256)


def test_targets_are_named_by_their_last_name() -> None:
    assert trained(trace(lora=4, lora_targets=("o_proj", "lm_head"))) == 4 * (22 * (2048 + 2048) + 2048 + 32000)


def test_what_is_frozen_has_neither_gradient_nor_state() -> None:
    """Two bytes of each, for what is trained."""
    made = trace(lora=8)
    held = peak_memory(made).timeline.live_bytes
    assert held["gradients"].max() == 2 * trained(made)
    assert held["optimizer_state"].max() == 4 * trained(made)
    updated = {t.name for op in made.ops if isinstance(op.kind, OptimizerUpdate) for t in op.outputs}
    assert updated & {p.name for p in made.parameters} == {p.name for p in made.parameters if p.trainable}


def test_weight_gradients_are_saved_and_the_embedding_has_no_backward_pass() -> None:
    whole, adapted = trace(), trace(lora=8)
    assert adapted.flops["backward"] < 0.6 * whole.flops["backward"]
    assert not any(op.layer == "model.embed_tokens" and op.is_gradient for op in adapted.ops)


def test_more_rank_costs_more() -> None:
    assert trace(lora=64).flops["matrix"] > trace(lora=8).flops["matrix"]


def test_lora_beside_nothing_names_the_linear_layers() -> None:
    with pytest.raises(BadInput, match=r"no linear layer is called nope; the model has: down_proj, .*v_proj"):
        trace(lora=8, lora_targets=("nope",))


def test_a_target_that_is_no_layer_is_refused_beside_one_that_is() -> None:
    with pytest.raises(BadInput, match=r"no linear layer is called v_prj; the model has: down_proj, .*v_proj"):
        trace(lora=8, lora_targets=("q_proj", "v_prj"))


def test_among_many_layers_those_near_the_target_are_named() -> None:
    many = [f"layer{n}" for n in range(20)] + ["q_proj", "v_proj"]
    with pytest.raises(BadInput, match="no linear layer is called v_prj; near: q_proj, v_proj"):
        matched(["q_proj", "v_prj"], many, set())


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ({"lora": -1}, "`lora` must be a rank of at least 1, got -1"),
        ({"lora_targets": ("q_proj",)}, "`lora` must be a rank of at least 1, got 0"),
        ({"four_bit": True}, "`four_bit` needs frozen weights: give a rank"),
    ],
)
def test_a_recipe_refuses_what_makes_no_sense(recipe: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Recipe(1, **recipe)  # type: ignore[arg-type]


# ---- four bits ----------------------------------------------------------------------------------


def parameters_bytes(made: Trace) -> int:
    return int(peak_memory(made).timeline.live_bytes["parameters"].max())


def test_frozen_products_are_kept_in_four_bits_with_a_scale_for_every_64() -> None:
    """Half a byte and a sixteenth; tables, norms and updates in two bytes."""
    made = trace(lora=8, four_bit=True)
    linear = sum(p.elements for p in made.parameters if not p.trainable and p.layer.endswith(("proj", "lm_head")))
    rest = sum(p.elements for p in made.parameters) - linear
    assert parameters_bytes(made) == linear * 9 // 16 + 2 * rest


def test_a_weight_is_written_out_for_every_product_that_reads_it() -> None:
    """Forward and for the data gradient; the first layer's queries and values need none."""
    ops = trace(lora=8, four_bit=True).ops
    written = [op for op in ops if op.name.endswith(".dequantize")]
    reading = [op for op in ops if isinstance(op.kind, Matmul) and "@written" in str(op.inputs + op.weights)]
    assert len(written) == len(reading)
    assert {op.gradient for op in reading} == {Gradient.NONE, Gradient.DATA}


def test_inputs_of_such_products_wait_for_the_backward_pass() -> None:
    small, large = (
        peak_memory(trace(lora=8, four_bit=bits)).timeline.live_bytes["activations"].max() for bits in (False, True)
    )
    assert large > small
    assert any(op.kind == View("kept") for op in trace(lora=8, four_bit=True).ops)


def test_nothing_frozen_nothing_changed() -> None:
    made = trace()
    assert with_four_bits(made.ops, made.parameters) == made.ops
