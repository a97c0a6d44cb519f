import pytest

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.checkpointing import blocks_of, checkpointed
from epochcast.describe.graph.op import Gradient, Phase
from epochcast.describe.graph.op_kinds import Attention, Matmul
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput, UnknownName
from epochcast.predict.memory.lifetimes import Role
from epochcast.predict.memory.peak import peak_memory, step_on

PLAIN, AGAIN_RECIPE = Recipe(2), Recipe(2, checkpointing=True)


@pytest.mark.parametrize("name", ["resnet18", "bert_base_classification", "densenet121", "swin_t"])
def test_a_block_runs_again_before_its_backward(name: str) -> None:
    plain, again = (zoo_model(name).trace(recipe) for recipe in (PLAIN, AGAIN_RECIPE))
    extra = [op for op in again.ops if op.is_recomputed]
    assert len(again.ops) == len(plain.ops) + len(extra) and extra
    assert all(op.phase is Phase.BACKWARD and op.gradient is Gradient.NONE for op in extra)
    assert plain.flops["forward"] == again.flops["forward"]
    assert plain.flops["backward"] < again.flops["backward"] <= plain.flops["backward"] + plain.flops["forward"]


def test_nothing_is_read_before_it_is_made() -> None:
    made: set[str] = set()
    for op in zoo_model("resnet18").trace(AGAIN_RECIPE).ops:
        assert all(t.name in made for t in op.inputs if t.relation.is_recomputed)
        made.update(t.name for t in op.outputs)


def test_a_forward_pass_has_nothing_to_run_again() -> None:
    ops = zoo_model("resnet18").trace(Recipe(2, mode="forward")).ops
    assert checkpointed(ops) == ops


def test_two_layers_are_blocks_too() -> None:
    layers = {"bert.encoder.layer.0.attention", "bert.encoder.layer.1.output", "bert.pooler", "cls"}
    blocks = {
        "bert.encoder.layer.0.attention": "bert.encoder.layer.0",
        "bert.encoder.layer.1.output": "bert.encoder.layer.1",
    }
    assert blocks_of(layers) == blocks


def test_a_network_without_blocks_is_refused() -> None:
    with pytest.raises(BadInput, match="vgg16 has no repeated blocks to checkpoint"):
        zoo_model("vgg16").trace(AGAIN_RECIPE)


def selective(attention: str, name: str = "gpt2") -> tuple[Trace, Trace]:
    """Without and with."""
    recipes = [Recipe(2, attention=attention, checkpointing=again) for again in (False, "selective")]
    plain, again = (zoo_model(name, (256,)).trace(recipe) for recipe in recipes)
    return plain, again


def test_selective_runs_the_scores_again_and_keeps_none() -> None:
    """Two products of 4·b·s²·h flops together, twelve layers; nothing of the size of the scores is kept."""
    plain, again = selective("eager")
    assert again.flops["backward"] - plain.flops["backward"] == 12 * 4 * 2 * 256**2 * 768
    kept = [step_on(trace, None).live_bytes(2)[Role.ACTIVATIONS].max() for trace in (plain, again)]
    scores_bytes = 4 * 2 * 12 * 256**2
    assert kept[0] - kept[1] >= 11 * scores_bytes


def test_selective_changes_nothing_under_a_fused_kernel() -> None:
    plain, again = selective("flash")
    assert again.template.base == plain.template.base


def test_selective_needs_attention() -> None:
    with pytest.raises(BadInput, match="resnet18 has no attention"):
        zoo_model("resnet18").trace(Recipe(2, checkpointing="selective"))
    with pytest.raises(UnknownName, match="selective"):
        Recipe(2, checkpointing="selectiv")


def test_by_operators_attention_and_every_second_product_are_kept() -> None:
    """Of the seven products of a Llama block four results stay (the first, third, …), and that of attention."""
    model = zoo_model("tinyllama_1_1b", (64,))
    whole, by_operators, full = (
        model.trace(Recipe(2, "sgd", "bf16", checkpointing=how)) for how in (False, "operators", True)
    )
    again = [op for op in by_operators.ops if op.is_recomputed]
    assert not any(isinstance(op.kind, Attention) for op in again)
    assert sum(isinstance(op.kind, Matmul) for op in again) == 3 * 22
    held = [peak_memory(step).timeline.live_bytes["activations"].max() for step in (full, by_operators, whole)]
    assert held == sorted(held) and len(set(held)) == 3
    assert sum(full.flops.values()) > sum(by_operators.flops.values()) > sum(whole.flops.values())


def test_half_runs_every_second_block_again() -> None:
    model = zoo_model("gpt2")
    full, half = (model.trace(Recipe(1, checkpointing=kind)).ops for kind in (True, "half"))
    plain = len(model.trace(Recipe(1)).ops)
    # a dozen equal blocks: six of them run again
    assert len(half) - plain == (len(full) - plain) / 2
