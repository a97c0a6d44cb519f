"""Hugging Face configurations: parsed, never evaluated; built without weights; captured with their own loss."""

import json
from pathlib import Path

import pytest
from tests.every import every

from epochcast.describe.capture.hf import Reference, hf_model, load_hf, parse_reference
from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.op_kinds import Attention
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput, UnknownName

SMALL = {
    "BertConfig": dict(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, vocab_size=100
    ),
    "RobertaConfig": dict(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, vocab_size=100
    ),
    "GPT2Config": dict(n_embd=64, n_layer=2, n_head=4, vocab_size=100),
    "GPTNeoXConfig": dict(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, vocab_size=100
    ),
    "OPTConfig": dict(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, ffn_dim=128, vocab_size=100, word_embed_proj_dim=64
    ),
    "LlamaConfig": dict(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, vocab_size=100
    ),
    "MistralConfig": dict(
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=128,
        vocab_size=100,
    ),
    "Qwen2Config": dict(
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=128,
        vocab_size=100,
    ),
    "T5Config": dict(d_model=64, num_layers=2, num_heads=4, d_ff=128, d_kv=16, vocab_size=100),
    "BartConfig": dict(
        d_model=64,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        vocab_size=100,
    ),
}


def reference(name: str, **more: object) -> str:
    return f"hf:{name}({', '.join(f'{k}={v!r}' for k, v in {**SMALL[name], **more}.items())})"


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPOCHCAST_CACHE", "off")


def test_overrides_are_literals() -> None:
    assert parse_reference("hf:BertConfig(num_hidden_layers=4, hidden_act='relu')") == Reference(
        config="BertConfig", overrides=(("num_hidden_layers", 4), ("hidden_act", "relu"))
    )
    assert parse_reference("hf:BertConfig") == Reference(config="BertConfig")
    assert parse_reference("hf:some/config.json") == Reference(path="some/config.json")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hf:BertConfig(n=__import__('os').system('true'))", "is not a plain value"),
        ("hf:BertConfig(4)", "write it like hf:BertConfig"),
        ("hf:open('x').read()", "write it like hf:BertConfig"),
        ("hf:BertConfig(**{'a': 1})", "is not a plain value"),
        ("hf:Bert Config", "neither a config.json nor a configuration"),
    ],
)
def test_anything_else_is_refused_unevaluated(text: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        parse_reference(text)


def test_an_unknown_configuration_is_offered_near_ones() -> None:
    with pytest.raises(UnknownName, match=r"no Hugging Face configuration called 'BertConf'; near: .*BertConfig"):
        hf_model("hf:BertConf")


@every("name", [*SMALL])
def test_every_family_trains_on_tokens_with_fused_attention(name: str) -> None:
    trace = hf_model(reference(name), (16,)).trace(Recipe(4, optimizer="adamw"))
    assert trace.opaque == ()
    assert trace.units_per_sample == 16
    assert trace.inputs[0].shape == (1, 16)
    assert {op.phase for op in trace.ops} == set(Phase)
    assert any(isinstance(op.kind, Attention) for op in trace.ops)
    assert trace.flops["backward"] == pytest.approx(2 * trace.flops["forward"], rel=0.15)


def test_bert_by_hand() -> None:
    """Two layers of width 64 over 16 tokens: 4·64² + 2·64·128 weights a layer and token, the head 64² + 64·100."""
    trace = hf_model(reference("BertConfig"), (16,)).trace(Recipe(1, mode="forward"))
    weights = 2 * (4 * 64 * 64 + 2 * 64 * 128) + 64 * 64 + 64 * 100
    scores = 2 * 2 * 2 * 16 * 16 * 64
    assert trace.flops["forward"] == 2 * 16 * weights + scores


def test_grouped_queries_read_fewer_keys() -> None:
    trace = hf_model(reference("MistralConfig"), (16,)).trace(Recipe(4, mode="forward"))
    q, k, _ = next(op for op in trace.ops if isinstance(op.kind, Attention)).inputs[:3]
    assert (q.shape, k.shape) == ((4, 4, 16, 16), (4, 2, 16, 16))


def test_an_image_model_takes_its_own_size() -> None:
    model = hf_model("hf:ViTConfig(hidden_size=64, num_hidden_layers=1, num_attention_heads=4, intermediate_size=128)")
    trace = model.trace(Recipe(4))
    assert [t.shape for t in trace.inputs] == [(1, 3, 224, 224), (1,)]
    assert trace.units_per_sample == 1


def test_whisper_takes_a_spectrogram_and_tokens() -> None:
    small = "d_model=64, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4"
    model = hf_model(f"hf:WhisperConfig({small}, encoder_ffn_dim=128, decoder_ffn_dim=128)", (20,))
    assert [t.shape for t in model.trace(Recipe(4)).inputs] == [(1, 80, 3000), (1, 20)]


def test_a_length_nobody_chose_is_noted() -> None:
    model = hf_model(reference("LlamaConfig", max_position_embeddings=4096))
    assert model.notes == ("4096 tokens per sample are assumed; give the input size to change that",)
    assert model.units_per_sample == 4096


@pytest.mark.parametrize(
    ("shape", "says"),
    [((600,), "bert takes at most 512 tokens, got 600"), ((3, 8, 8), "such as 128, got 3x8x8")],
)
def test_an_input_that_does_not_fit_is_refused(shape: tuple[int, ...], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        hf_model(reference("BertConfig"), shape)


# ---- files --------------------------------------------------------------------------------------


def test_a_config_file_names_its_task(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    values = {"model_type": "bert", "architectures": ["BertForSequenceClassification"], **SMALL["BertConfig"]}
    path.write_text(json.dumps(values), encoding="utf-8")
    trace = load_hf(str(path), (16,)).trace(Recipe(4))
    assert "classifier.weight" in [p.name for p in trace.parameters]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "is not JSON"),
        ("[]", "has no model_type"),
        ('{"model_type": "nonsense"}', "no model_type called 'nonsense'"),
    ],
)
def test_a_broken_config_file_is_said(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(BadInput, match=says):
        hf_model(f"hf:{path}")


def test_a_config_file_that_is_not_there_is_said() -> None:
    with pytest.raises(BadInput, match=r"there is no file 'nowhere\.json'"):
        hf_model("hf:nowhere.json")


# ---- LoRA ---------------------------------------------------------------------------------------


def test_lora_trains_two_thin_matrices_beside_each_target() -> None:
    """Query and value of two layers, rank 4: 2·2·(4·64 + 64·4) values."""
    model = hf_model(reference("LlamaConfig"), (16,), lora_rank=4, lora_targets=("q_proj", "v_proj"))
    trace = model.trace(Recipe(4, optimizer="adamw"))
    assert sum(p.elements for p in trace.parameters if p.trainable) == 2 * 2 * (4 * 64 + 64 * 4)
    frozen = {p.name for p in trace.parameters if not p.trainable}
    made = {t.name for op in trace.ops for t in op.outputs}
    assert not {f"grad:{name}" for name in frozen} & made


def test_lora_costs_no_weight_gradients_of_what_is_frozen() -> None:
    whole = hf_model(reference("LlamaConfig"), (16,)).trace(Recipe(4))
    adapted = hf_model(reference("LlamaConfig"), (16,), lora_rank=4).trace(Recipe(4))
    assert adapted.flops["backward"] < 0.75 * whole.flops["backward"]


def test_lora_knows_the_projections_of_gpt2() -> None:
    model = hf_model(reference("GPT2Config"), (16,), lora_rank=4)
    trained = [p.name for p in model.trace(Recipe(4)).parameters if p.trainable]
    assert trained[0] == "transformer.h.0.attn.c_attn.lora_a.weight"


def test_lora_beside_nothing_names_the_linear_layers() -> None:
    with pytest.raises(BadInput, match=r"no linear layer is called nope; the model has: .*q_proj"):
        hf_model(reference("LlamaConfig"), (16,), lora_rank=4, lora_targets=("nope",))


def test_a_target_that_is_no_layer_is_refused_beside_one_that_is() -> None:
    with pytest.raises(BadInput, match=r"no linear layer is called v_prj; the model has: .*q_proj"):
        hf_model(reference("LlamaConfig"), (16,), lora_rank=4, lora_targets=("q_proj", "v_prj"))


def test_experts_of_a_mixture_run_as_one_grouped_product_with_the_flops_of_the_chosen_ones() -> None:
    """Four experts, two chosen: per token and layer 3·2·64·128 weights, and as much again for each kind of gradient."""
    sizes = "hidden_size=64, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=4, intermediate_size=128"
    reference = f"hf:MixtralConfig({sizes}, vocab_size=100, num_local_experts=4, num_experts_per_tok=2)"
    trace = hf_model(reference, (16,)).trace(Recipe(4, mode="forward_backward"))
    grouped = [op for op in trace.ops if "_grouped_mm" in op.name]
    product = 2 * 4 * 16 * 2 * 3 * 64 * 128
    assert sum(op.kind.flops(op) for op in grouped if op.phase is Phase.FORWARD) == product
    assert sum(op.kind.flops(op) for op in grouped if op.phase is Phase.BACKWARD) == 2 * product


def test_the_rank_of_a_recipe_does_what_the_rank_at_loading_does() -> None:
    loaded = hf_model(reference("LlamaConfig"), (16,), lora_rank=4).trace(Recipe(4, optimizer="adamw"))
    model = hf_model(reference("LlamaConfig"), (16,))
    asked = model.trace(Recipe(4, optimizer="adamw", lora=4))
    assert [op.kind for op in asked.ops] == [op.kind for op in loaded.ops]
    assert asked.recipe.lora == 4
    assert all(p.trainable for p in model.trace(Recipe(4)).parameters)


def test_a_model_type_that_is_not_known_is_one_short_line(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"model_type": "lama", "auto_map": {"AutoConfig": "evil.Config"}}', encoding="utf-8")
    with pytest.raises(BadInput, match=r"no model_type called 'lama'; near: .*llama.*; code beside it .* is never run"):
        hf_model(f"hf:{file}")


def test_a_configuration_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"model_type": "bert", "image_size": ' + "[" * 5000 + "]" * 5000 + "}")
    with pytest.raises(BadInput, match="nested"):
        hf_model(f"hf:{file}")
