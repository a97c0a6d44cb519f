import pytest

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.adapters import matched
from epochcast.describe.graph.op_kinds import OptimizerUpdate
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
        ({"quantize": "nf4"}, "a quantised base is frozen: give a rank"),
    ],
)
def test_a_recipe_refuses_what_makes_no_sense(recipe: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Recipe(1, **recipe)  # type: ignore[arg-type]
