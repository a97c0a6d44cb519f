"""Adapters besides LoRA: on built graphs (`lora`) and by PEFT on captured modules (`peft_adapters`)."""

import pytest

from epochcast.describe.capture.hf import hf_model
from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.adapters import adapted_layers, matched, target_names
from epochcast.describe.graph.op_kinds import Matmul
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput, UnknownName
from epochcast.predict.forecast.job import Job

LLAMA = zoo_model("llama3_2_3b", (64,))


def trace(**recipe: object) -> Trace:
    return LLAMA.trace(Recipe(2, optimizer="adamw", precision="bf16", **recipe))  # type: ignore[arg-type]


# huggingface/peft, method_comparison/MetaMathQA: num_trainable_params of its results for Llama 3.2 3B
PUBLISHED = {"lora": 9_175_040, "dora": 9_289_728, "ia3": 286_720}


@pytest.mark.parametrize("adapter", PUBLISHED)
def test_an_adapter_trains_as_much_as_pefts_own_results_say(adapter: str) -> None:
    assert trace(lora=32, adapter=adapter).parameter_counts[1] == PUBLISHED[adapter]


def test_dora_works_out_its_weight_in_every_pass_and_with_dropout_multiplies_once_more() -> None:
    plain, dora = trace(lora=32, lora_dropout=0.0), trace(lora=32, lora_dropout=0.0, adapter="dora")
    dropped = trace(lora=32, adapter="dora")
    # each pass: eye (in x in) by A and B, for queries (3072 to 3072) and values (3072 to 1024) of 28 layers
    more = 28 * sum(2 * 3072 * 32 * (3072 + out) for out in (3072, 1024))
    assert dora.flops["forward"] - plain.flops["forward"] == pytest.approx(more, rel=0.05)
    products = [sum(isinstance(op.kind, Matmul) for op in made.ops) for made in (dora, dropped)]
    assert products[1] > products[0]


_TINY = (
    "hf:LlamaConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, "
    "intermediate_size=128, vocab_size=512)"
)


@pytest.mark.parametrize(
    ("adapter", "rank", "trained"),
    [
        ("dora", 8, 2 * 2 * (8 * 128 + 64)),
        ("loha", 8, 2 * 2 * 4 * 8 * 64),
        ("lokr", 8, 2 * 2 * (8 * 8 + 8 * 8)),
        ("ia3", 1, 2 * (64 + 64 + 128)),
        ("prefix", 20, 2 * 2 * 20 * 64),
    ],
)
def test_peft_puts_every_adapter_into_a_captured_model(adapter: str, rank: int, trained: int) -> None:
    made = hf_model(_TINY, (16,)).trace(Recipe(2, optimizer="adamw", lora=rank, adapter=adapter))
    assert made.parameter_counts[1] == trained


@pytest.mark.parametrize("adapter", ["dora", "ia3"])
def test_a_built_graph_and_peft_run_the_same(adapter: str) -> None:
    built = zoo_model("tinyllama_1_1b", (64,)).trace(Recipe(2, lora=8, adapter=adapter, lora_dropout=0.0))
    sizes = "hidden_size=2048, num_hidden_layers=22, num_attention_heads=32, num_key_value_heads=4"
    captured = hf_model(f"hf:LlamaConfig({sizes}, intermediate_size=5632, vocab_size=32000)", (64,))
    by_peft = captured.trace(Recipe(2, lora=8, adapter=adapter, lora_dropout=0.0))
    assert built.parameter_counts[1] == by_peft.parameter_counts[1]
    assert built.flops["matrix"] == pytest.approx(by_peft.flops["matrix"], rel=0.01)


def test_what_only_peft_can_do_is_said_for_a_built_graph() -> None:
    with pytest.raises(BadInput, match=r"LoHa needs a captured model: give its configuration, hf:config\.json"):
        trace(lora=8, adapter="loha")
    with pytest.raises(UnknownName, match="no adapter called 'dorra'; known: dora"):
        Job("gpt2", adapter="dorra", batch=1)


def test_an_adapter_without_a_rank_has_the_default_of_peft() -> None:
    assert Job("gpt2", adapter="ia3", batch=1).recipe(1).lora == 1
    assert Job("gpt2", adapter="prefix", batch=1).recipe(1).lora == 20
    assert Job("gpt2", batch=1).recipe(1).lora == 0


def test_diffusion_networks_are_adapted_in_their_attention_like_the_scripts_of_diffusers() -> None:
    made = zoo_model("sd15_unet", None).trace(Recipe(2, lora=4))
    layers = adapted_layers(p.layer for p in made.parameters if p.trainable)
    assert set(layers) == {"to_q", "to_k", "to_v", "to_out.0"}


def test_a_target_may_be_the_end_of_a_path() -> None:
    made = zoo_model("sd15_unet", None).trace(Recipe(2, lora=4, lora_targets=("to_out.0",)))
    assert adapted_layers(p.layer for p in made.parameters if p.trainable) == ("to_out.0",)


PATHS = ("model.layers.0.self_attn.q_proj", "model.layers.0.mlp.up_proj", "model.layers.1.mlp.up_proj", "lm_head")


def test_a_pattern_matches_whole_paths_as_in_peft() -> None:
    pattern = r"model.layers.[\d]+.(mlp|cross_attn|self_attn).(up|down|gate|q|k|v|o)_proj"
    assert matched([pattern], PATHS, ()) == set(PATHS[:3])
    assert matched([r".*\.1\..*up_proj"], PATHS, ()) == {PATHS[2]}


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(a|b)+_proj", "repeats too much"),
        ("[a_proj", "is not a pattern of layers"),
        ("up_pro", "no linear layer is called up_pro"),
        (r".*(query|key)", "no linear layer is called"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_one_line(pattern: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        matched([pattern], PATHS, ())


def test_targets_of_a_file_keep_patterns_and_the_ends_of_paths() -> None:
    assert target_names("q_proj, model.layers.v_proj") == ("q_proj", "v_proj")
    assert target_names(r".*\.(q|v)_proj") == (r".*\.(q|v)_proj",)
