"""Large language models against their published configurations: parameters to the unit, flops by hand."""

from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import pytest
from tests.every import every

from epochcast.describe.capture.hub import typed_model
from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.capture.zoo import ZOO, zoo_model
from epochcast.describe.capture.zoo.decoder import decoder
from epochcast.describe.capture.zoo.language_models import LANGUAGE
from epochcast.describe.capture.zoo.latent import Latent
from epochcast.describe.capture.zoo.moe import Mixture
from epochcast.describe.graph.op import Gradient, Graph, Phase
from epochcast.describe.graph.op_kinds import Attention, Elementwise, Gather, Matmul, Scatter
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import grad
from epochcast.errors import BadInput

# Configurations as they are published, in the words of the reference implementation.
QWEN3 = {"head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151936, "num_key_value_heads": 4}
GEMMA = {"head_dim": 256, "vocab_size": 256000}
CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama3_1_8b": (
        "LlamaConfig",
        {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32}
        | {"num_key_value_heads": 8, "vocab_size": 128256},
    ),
    "llama3_1_405b": (
        "LlamaConfig",
        {"hidden_size": 16384, "intermediate_size": 53248, "num_hidden_layers": 126, "num_attention_heads": 128}
        | {"num_key_value_heads": 8, "vocab_size": 128256},
    ),
    "gemma_2b": (
        "GemmaConfig",
        {"hidden_size": 2048, "intermediate_size": 16384, "num_hidden_layers": 18, "num_attention_heads": 8}
        | {"num_key_value_heads": 1, **GEMMA},
    ),
    "gemma_7b": (
        "GemmaConfig",
        {"hidden_size": 3072, "intermediate_size": 24576, "num_hidden_layers": 28, "num_attention_heads": 16}
        | {"num_key_value_heads": 16, **GEMMA},
    ),
    "gemma2_2b": (
        "Gemma2Config",
        {"hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8}
        | {"num_key_value_heads": 4, **GEMMA},
    ),
    "gemma2_9b": (
        "Gemma2Config",
        {"hidden_size": 3584, "intermediate_size": 14336, "num_hidden_layers": 42, "num_attention_heads": 16}
        | {"num_key_value_heads": 8, **GEMMA},
    ),
    "phi3_mini": (
        "Phi3Config",
        {"hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32, "num_attention_heads": 32}
        | {"num_key_value_heads": 32, "vocab_size": 32064},
    ),
    "qwen3_30b_a3b": (
        "Qwen3MoeConfig",
        {"hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 32, "moe_intermediate_size": 768} | QWEN3,
    ),
    "qwen3_235b_a22b": (
        "Qwen3MoeConfig",
        {"hidden_size": 4096, "num_hidden_layers": 94, "num_attention_heads": 64, "moe_intermediate_size": 1536}
        | QWEN3,
    ),
    "gpt_oss_20b": ("GptOssConfig", {"num_hidden_layers": 24, "num_local_experts": 32}),
    "gpt_oss_120b": ("GptOssConfig", {"num_hidden_layers": 36, "num_local_experts": 128}),
    "deepseek_v3": ("DeepseekV3Config", {}),
    "kimi_k2": (
        "DeepseekV3Config",
        {"num_attention_heads": 64, "num_key_value_heads": 64, "n_routed_experts": 384, "first_k_dense_replace": 1}
        | {"vocab_size": 163840, "n_group": 1, "topk_group": 1},
    ),
    "pythia_1b": (
        "GPTNeoXConfig",
        {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 8}
        | {"vocab_size": 50304},
    ),
    "pythia_2_8b": (
        "GPTNeoXConfig",
        {"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 32, "num_attention_heads": 32}
        | {"vocab_size": 50304},
    ),
    "stablelm_base_alpha_3b": (
        "GPTNeoXConfig",
        {"hidden_size": 4096, "intermediate_size": 16384, "num_hidden_layers": 16, "num_attention_heads": 32}
        | {"vocab_size": 50688},
    ),
    "phi_1_5": (
        "PhiConfig",
        {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 24, "num_attention_heads": 32}
        | {"vocab_size": 51200},
    ),
    "phi_2": (
        "PhiConfig",
        {"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 32, "num_attention_heads": 32}
        | {"vocab_size": 51200},
    ),
    "falcon_7b": (
        "FalconConfig",
        {"hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71, "vocab_size": 65024}
        | {"multi_query": True, "parallel_attn": True, "bias": False, "new_decoder_architecture": False},
    ),
}
COUNTS = {
    "llama3_1_8b": 8_030_261_248,
    "llama3_1_405b": 405_853_388_800,
    "gemma_2b": 2_506_172_416,
    "gemma_7b": 8_537_680_896,
    "gemma2_2b": 2_614_341_888,
    "gemma2_9b": 9_241_705_984,
    "phi3_mini": 3_821_079_552,
    "qwen3_30b_a3b": 30_532_122_624,
    "qwen3_235b_a22b": 235_093_634_560,
    "gpt_oss_20b": 20_914_757_184,
    "gpt_oss_120b": 116_829_156_672,
    "deepseek_v3": 671_026_404_352,
    "kimi_k2": 1_026_408_209_408,
    "pythia_1b": 1_011_781_632,
    "pythia_2_8b": 2_775_208_960,
    "stablelm_base_alpha_3b": 3_637_321_728,
    "phi_1_5": 1_418_270_720,
    "phi_2": 2_779_683_840,
    "falcon_7b": 6_921_720_704,
}

every_network = every("name", LANGUAGE)


def shallow(name: str, tokens: int = 64) -> BuiltModel:
    """The network with its first two layers, of which the second has the mixture."""
    entry = ZOO[name]
    options = dict(entry.options, layers=2)
    if "dense_layers" in options:
        options["dense_layers"] = 1
    return BuiltModel(name, partial(replace(entry, options=options).build, name, input_shape=(tokens,)))


def matrix_flops(made: Graph) -> int:
    return sum(op.work.flops for op in made.ops if op.op_class.is_matrix)


def test_the_tables_hold_every_network() -> None:
    assert set(COUNTS) == set(CONFIGS) == set(LANGUAGE)


@every_network
def test_parameters_are_the_published_ones(name: str) -> None:
    assert zoo_model(name).graph(1).parameter_count == COUNTS[name]


@pytest.mark.skipif(find_spec("transformers") is None, reason="needs transformers")
@every_network
def test_parameters_equal_those_of_the_reference_implementation(name: str) -> None:
    import torch

    from epochcast.describe.capture.torch.torchvision_shim import import_torchvision

    import_torchvision()
    import transformers

    kind, options = CONFIGS[name]
    config = getattr(transformers, kind)(**options)
    with torch.device("meta"):
        auto: Any = transformers.AutoModelForCausalLM
        model = auto.from_config(config)
    assert sum(p.numel() for p in model.parameters()) == COUNTS[name]


@every_network
def test_every_parameter_gets_a_gradient(name: str) -> None:
    trace = shallow(name).trace(Recipe(4, mode="forward_backward"))
    made = {tensor.name for op in trace.ops for tensor in op.outputs}
    assert [p.name for p in trace.parameters if grad(p.tensor).name not in made] == []
    assert trace.opaque == ()


@every_network
def test_training_is_about_three_forward_passes(name: str) -> None:
    flops = shallow(name).trace(Recipe(4, mode="forward_backward")).flops
    assert 2.95 <= flops["matrix"] / flops["forward"] <= 3.25


@pytest.mark.parametrize(
    ("name", "billions"), [("qwen3_30b_a3b", 3.3), ("qwen3_235b_a22b", 22), ("gpt_oss_120b", 5.1), ("deepseek_v3", 37)]
)
def test_a_token_costs_two_flops_per_active_parameter(name: str, billions: float) -> None:
    """As many as the models' names and papers say are active; embeddings are looked up, attention is left out."""
    made = zoo_model(name, (4096,)).graph(1)
    weights = sum(op.work.flops for op in made.ops if isinstance(op.kind, Matmul)) / 4096 / 2
    table = next(p.elements for p in made.parameters if p.name == "model.embed_tokens.weight")
    assert weights + table == pytest.approx(billions * 1e9, rel=0.15)


# ---- mixtures -----------------------------------------------------------------------------------


def mixed(batch: int = 2, **more: Any) -> Graph:
    sizes = {"layers": 2, "width": 32, "heads": 4, "ffn": 64, "vocabulary": 100}
    return decoder(batch, (16,), name="tiny", **sizes, mixture=Mixture(8, 2, 24, **more))  # type: ignore[arg-type]


def test_every_expert_gets_its_share_of_the_tokens() -> None:
    """Two sequences of 16 tokens that take two of eight experts each: 4 a sequence, 8 in all."""
    sent = [op for op in mixed().ops if op.kind == Gather("dispatch")]
    assert [op.output.shape for op in sent] == [(8, 8, 32)] * 2


def test_what_does_not_share_out_evenly_is_rounded_up() -> None:
    """384 experts, 8 chosen, 100 tokens: 2.08 each."""
    made = decoder(1, (100,), name="t", layers=1, width=8, heads=1, ffn=8, vocabulary=9, mixture=Mixture(384, 8, 4))
    assert next(op for op in made.ops if op.kind == Gather("dispatch")).output.shape == (384, 3, 8)


def test_experts_cost_their_tokens_and_no_more() -> None:
    """Per layer: attention 4·d², router 8·d, and for two experts a token 3·d·24 weights."""
    weights = 2 * (4 * 32 * 32 + 8 * 32 + 2 * 3 * 32 * 24) + 32 * 100
    scores = 2 * 4 * 2 * 16**2 * 32
    assert matrix_flops(mixed()) == 2 * 32 * weights + scores


def test_experts_are_one_product_with_a_weight_of_three_dimensions() -> None:
    ops = BuiltModel("tiny", mixed).trace(Recipe(4, mode="forward_backward")).ops
    products = [op for op in ops if isinstance(op.kind, Matmul) and ".experts." in op.layer]
    assert [op.gradient for op in products[:4]] == [Gradient.NONE] * 4
    assert {op.weights[0].shape for op in products[:4]} == {(8, 48, 32), (8, 32, 24)}
    assert {op.gradient for op in products[4:]} == {Gradient.DATA, Gradient.WEIGHTS}
    assert {op.work.repeats for op in products} == {8}


def test_gradients_travel_back_the_way_the_tokens_came() -> None:
    ops = BuiltModel("tiny", mixed).trace(Recipe(4, mode="forward_backward")).ops
    moves = [op.kind for op in ops if op.phase is Phase.BACKWARD and isinstance(op.kind, Gather | Scatter)]
    assert moves.index(Gather("combine")) < moves.index(Scatter("dispatch"))


def test_a_shared_expert_is_one_more_layer_for_all_tokens() -> None:
    assert matrix_flops(mixed(shared=24)) - matrix_flops(mixed()) == 2 * 2 * 32 * 3 * 32 * 24


def test_more_experts_than_there_are_cannot_be_chosen() -> None:
    with pytest.raises(BadInput, match="a token takes between 1 and 4 experts, not 5"):
        Mixture(4, 5, 8)


# ---- attention ----------------------------------------------------------------------------------


def test_latent_attention_multiplies_its_heads_out() -> None:
    """Queries and keys of 8 + 4, values of 6."""
    latent = Latent(query_rank=12, key_rank=10, plain=8, rotary=4, value=6)
    made = decoder(2, (16,), name="t", layers=1, width=32, heads=4, ffn=8, vocabulary=9, latent=latent)
    attention = next(op for op in made.ops if isinstance(op.kind, Attention))
    assert [t.shape for t in attention.inputs] == [(2, 4, 16, 12), (2, 4, 16, 12), (2, 4, 16, 6)]
    weights = 32 * 12 + 12 * 4 * 12 + 32 * 14 + 10 * 4 * 14 + 4 * 6 * 32
    assert made.parameter_count == 2 * 9 * 32 + weights + 12 + 10 + 3 * 32 * 8 + 3 * 32


def test_a_window_bounds_what_a_query_looks_at() -> None:
    """Every second layer of gpt-oss looks at 128 of 256 tokens; heads are 64 wide, queries have 64 of them."""
    made = zoo_model("gpt_oss_20b", (256,)).graph(1)
    kinds = [op for op in made.ops if isinstance(op.kind, Attention)][:2]
    assert [op.work.flops for op in kinds] == [2 * 64 * 256 * keys * 2 * 64 for keys in (128, 256)]


def test_sinks_are_trained_with_fused_and_with_written_attention() -> None:
    for attention in ("flash", "eager"):
        trace = shallow("gpt_oss_20b").trace(Recipe(4, mode="forward_backward", attention=attention))
        made = {t.name for op in trace.ops for t in op.outputs}
        assert "grad:model.layers.0.self_attn.sinks" in made


def test_positions_turn_a_part_of_a_head() -> None:
    """Phi-2 turns 32 of 80; a copy joins the two parts again."""
    made = shallow("phi_2").graph(2)
    q = next(op for op in made.ops if isinstance(op.kind, Attention)).inputs[0]
    assert q.shape == (2, 32, 64, 80)
    joins = [op for op in made.ops if op.output.name == q.name]
    assert [t.shape[-1] for t in joins[0].inputs] == [32, 48]


def test_gemma_2_caps_its_logits_and_scores_and_gemma_3_neither() -> None:
    """Gemma Team 2025: the caps of Gemma 2 gave way to norms of queries and keys."""
    second, third = (typed_model(name, (8,)).graph(1) for name in ("google/gemma-2-2b", "google/gemma-3-1b-pt"))
    assert [sum(op.kind == Elementwise("tanh") for op in graph.ops) for graph in (second, third)] == [1, 0]
    assert any("scores are capped" in note for note in second.notes)
    assert not third.notes
