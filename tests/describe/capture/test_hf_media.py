"""Images, films and sound as tokens; counts are those of the processors of transformers."""

import pytest

from epochcast.describe.capture.hf import hf_model
from epochcast.describe.capture.hub import HUB, typed_model
from epochcast.describe.capture.hub_media import MEDIA
from epochcast.describe.capture.resolve import find_model
from epochcast.describe.capture.sample_contents import SampleContents, parse_images
from epochcast.describe.graph.language_model import is_language_model
from epochcast.describe.graph.op_kinds import Loss
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput, UnknownModel

pytest.importorskip("transformers")

_SMALL = "'num_hidden_layers': 2, 'hidden_size': 64, 'intermediate_size': 128, 'num_attention_heads': 4"
_TEXT = f"{{'model_type': 'llama', {_SMALL}, 'num_key_value_heads': 4}}"
_EYE = "'num_hidden_layers': 2, 'hidden_size': 64, 'intermediate_size': 128, 'num_attention_heads': 4"
_SIGLIP = f"{{'model_type': 'siglip_vision_model', 'patch_size': 14, 'image_size': SIZE, {_EYE}}}"

_SOUND = "num_hidden_layers=2, hidden_size=64, intermediate_size=128, num_attention_heads=4"

_WIDE = (
    "'num_hidden_layers': 2, 'hidden_size': 128, 'intermediate_size': 128, 'num_attention_heads': 1, "
    "'num_key_value_heads': 1"
)

FAMILIES = {
    "llava": f"LlavaConfig(text_config={_TEXT})",
    "llava_next": f"LlavaNextConfig(text_config={_TEXT})",
    "onevision": f"LlavaOnevisionConfig(text_config={_TEXT.replace('llama', 'qwen2')})",
    "paligemma": f"PaliGemmaConfig(projection_dim=64, text_config={_TEXT.replace('llama', 'gemma')}, "
    f"vision_config={_SIGLIP.replace('SIZE', '224')})",
    "gemma3": f"Gemma3Config(text_config={{{_SMALL}, 'num_key_value_heads': 4, 'head_dim': 16}}, "
    f"vision_config={_SIGLIP.replace('SIZE', '896')})",
    "idefics2": f"Idefics2Config(text_config={_TEXT.replace('llama', 'mistral')}, "
    f"vision_config={{'image_size': 980, 'patch_size': 14, {_EYE}}})",
    "smolvlm": f"SmolVLMConfig(scale_factor=4, text_config={_TEXT}, "
    f"vision_config={{'image_size': 512, 'patch_size': 16, {_EYE}}})",
    "internvl": f"InternVLConfig(text_config={_TEXT.replace('llama', 'qwen2')}, vision_config={{{_EYE}}})",
    "qwen2_vl": f"Qwen2VLConfig(text_config={{{_WIDE}}}, "
    "vision_config={'depth': 2, 'embed_dim': 64, 'num_heads': 4, 'hidden_size': 128})",
    "qwen2_5_vl": f"Qwen2_5_VLConfig(text_config={{{_WIDE}}}, "
    "vision_config={'depth': 2, 'hidden_size': 64, 'num_heads': 4, 'intermediate_size': 128, 'out_hidden_size': 128})",
    "qwen3_vl": f"Qwen3VLConfig(text_config={{{_SMALL}, 'num_key_value_heads': 4, 'head_dim': 16}}, "
    "vision_config={'depth': 2, 'hidden_size': 64, 'num_heads': 4, 'intermediate_size': 128, 'out_hidden_size': 64, "
    "'deepstack_visual_indexes': [0]})",
}

_BERT = "{'num_hidden_layers': 2, 'hidden_size': 64, 'intermediate_size': 128, 'num_attention_heads': 4}"
_BLIP_EYE = f"{{'image_size': 224, 'patch_size': 14, {_EYE}}}"
_OPT = (
    "{'model_type': 'opt', 'num_hidden_layers': 2, 'hidden_size': 64, 'ffn_dim': 128, 'num_attention_heads': 4, "
    "'word_embed_proj_dim': 64}"
)
_T5 = "{'model_type': 't5', 'd_model': 64, 'd_kv': 16, 'd_ff': 128, 'num_layers': 2, 'num_heads': 4}"
FAMILIES |= {
    "blip2": f"Blip2Config(text_config={_OPT}, vision_config={_BLIP_EYE}, qformer_config={_BERT})",
    "instructblip": f"InstructBlipConfig(text_config={_OPT}, vision_config={_BLIP_EYE}, qformer_config={_BERT})",
    "florence2": "Florence2Config(text_config={'d_model': 64, 'encoder_layers': 1, 'decoder_layers': 1, "
    "'encoder_attention_heads': 4, 'decoder_attention_heads': 4, 'encoder_ffn_dim': 128, 'decoder_ffn_dim': 128, "
    "'vocab_size': 51328}, vision_config={'embed_dim': [16, 16, 32, 32], 'num_heads': [2, 2, 2, 2], "
    "'num_groups': [2, 2, 2, 2], 'depths': [1, 1, 1, 1], 'projection_dim': 64})",
    "cohere2_vision": f"Cohere2VisionConfig(text_config={{'model_type': 'cohere2', {_SMALL}, "
    f"'num_key_value_heads': 4}}, vision_config={{'image_size': 512, 'patch_size': 16, {_EYE}}})",
}
BESIDE = {
    "blip": f"BlipConfig(vision_config={{'image_size': 224, {_EYE}}}, text_config={{{_EYE}, "
    "'encoder_hidden_size': 64, 'projection_dim': 64})",
    "mllama": f"MllamaConfig(text_config={{{_SMALL}, 'num_key_value_heads': 4, 'cross_attention_layers': [1], "
    "'vocab_size': 128256}, vision_config={'image_size': 56, 'num_hidden_layers': 2, "
    "'num_global_layers': 1, 'hidden_size': 64, 'attention_heads': 4, 'intermediate_size': 128, "
    "'vision_output_dim': 128, 'intermediate_layers_indices': [1]})",
}

# Tokens of one image of 768x768, by hand from each processor (`_get_num_multimodal_tokens`).
TOKENS = {
    "llava": 576, "llava_next": 2928, "onevision": 729 + 54 * 55,
    "paligemma": 256, "gemma3": 256, "idefics2": 64, "smolvlm": 17 * 64, "internvl": 0, "qwen2_vl": 27 * 27,
    "qwen2_5_vl": 27 * 27, "qwen3_vl": 24 * 24,
    "blip2": 32, "instructblip": 32,  # the queries of the Q-Former
    "florence2": 24 * 24 + 1,  # 768 pixels by strides of 4, 2, 2 and 2, and their mean
    "cohere2_vision": 16 * 16,  # 32 patches a side, two by two
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_trains_on_images_whose_tokens_its_sequence_counts(family: str) -> None:
    model = hf_model(f"hf:{FAMILIES[family]}", contents=SampleContents(images=(1, 768, 768)))
    trace = model.trace(Recipe(2, precision="amp_bf16", optimizer="adamw"))
    tokens = int(model.contents.rpartition("(")[2].split()[0].replace(",", ""))
    assert trace.inputs[0].name == "input_ids" and trace.inputs[0].shape[1] == tokens + 512 == model.units_per_sample
    assert tokens == TOKENS[family] or not TOKENS[family]
    assert not trace.opaque
    assert any("freeze it" in note for note in trace.notes)


@pytest.mark.parametrize("family", BESIDE)
def test_images_beside_the_text_take_no_tokens_of_it(family: str) -> None:
    model = hf_model(f"hf:{BESIDE[family]}")
    assert (model.units_per_sample, model.contents.endswith("beside the text")) == (512, True)
    trace = model.trace(Recipe(2))
    pixels = next(tensor for tensor in trace.inputs if tensor.name == "pixel_values")
    assert pixels.shape[1:] == {"blip": (1, 3, 224, 224), "mllama": (1, 4, 3, 56, 56)}[family]
    assert not trace.opaque and trace.flops["matrix"] > 0
    assert is_language_model(model.graph(1))


@pytest.mark.parametrize(("family", "reference"), [
    ("florence2", FAMILIES["florence2"]),
    ("blip2", f"Blip2Config(text_config={_T5}, vision_config={_BLIP_EYE}, qformer_config={_BERT})"),
])  # fmt: skip
def test_an_answering_decoder_has_labels_of_their_own_length(family: str, reference: str) -> None:
    for said, length in ((None, 128), (32, 32)):
        model = hf_model(f"hf:{reference}", contents=SampleContents(label_tokens=said))
        assert model.contents.endswith(f", {length} label tokens")
        labels = next(tensor for tensor in model.trace(Recipe(2)).inputs if tensor.name == "labels")
        assert labels.shape == (1, length)


@pytest.mark.parametrize(("reference", "shape"), [
    # 5 s in frames of 20 ms, two of 80 mels together; frames of 10 ms
    (f"Wav2Vec2BertConfig({_SOUND})", (250, 160)),
    (f"ParakeetCTCConfig(encoder_config={{{_EYE}, 'subsampling_conv_channels': 8}})", (500, 80)),
])  # fmt: skip
def test_speech_in_frames_follows_its_seconds(reference: str, shape: tuple[int, int]) -> None:
    model = hf_model(f"hf:{reference}", contents=SampleContents(audio_seconds=5, label_tokens=20))
    trace = model.trace(Recipe(2))
    assert model.contents == "5 s of audio, 20 label tokens"
    assert next(tensor for tensor in trace.inputs if tensor.name == "input_features").shape[1:] == shape
    assert any(op.kind == Loss("ctc") for op in trace.ops)


def test_a_frozen_tower_has_no_gradients() -> None:
    model = hf_model(f"hf:{FAMILIES['llava']}")
    whole, frozen = (model.trace(Recipe(2, freeze=freeze)) for freeze in ((), ("*vision_tower*",)))
    tower = sum(p.tensor.elements for p in model.parameters() if "vision_tower" in p.name)
    assert whole.parameter_counts[1] - frozen.parameter_counts[1] == tower
    assert frozen.flops["matrix"] < whole.flops["matrix"]
    assert not any("freeze it" in note for note in frozen.notes)


def test_frames_come_in_pairs_to_qwen_and_one_by_one_to_llava() -> None:
    film = SampleContents(images=(1, 336, 336), frames=8)
    assert "(576 tokens)" in hf_model(f"hf:{FAMILIES['qwen2_vl']}", contents=film).contents
    assert "(4,608 tokens)" in hf_model(f"hf:{FAMILIES['llava']}", contents=film).contents


def test_a_length_counts_the_tokens_of_images() -> None:
    model = hf_model(f"hf:{FAMILIES['llava']}", (1024,))
    assert model.units_per_sample == 1024
    with pytest.raises(BadInput, match=r"576 image tokens leave no room for text in 500"):
        hf_model(f"hf:{FAMILIES['llava']}", (500,))
    assert hf_model(f"hf:{FAMILIES['llava']}", (500,), contents=SampleContents(images=(0, 1, 1))).contents == ""


def test_images_are_written_by_count_and_size() -> None:
    assert parse_images("4x768x1024") == (4, 768, 1024)
    with pytest.raises(BadInput, match="write count x height x width"):
        parse_images("768")


_WHISPER = (
    "WhisperConfig(d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, "
    "decoder_attention_heads=2, encoder_ffn_dim=128, decoder_ffn_dim=128)"
)


def test_the_own_shape_of_whisper_changes_nothing() -> None:
    plain, said = (hf_model(f"hf:{_WHISPER}", shape) for shape in (None, (80, 3000)))
    assert plain.trace(Recipe(2)).flops == said.trace(Recipe(2)).flops
    assert plain.contents == said.contents == "30 s of audio, 128 label tokens"


def test_labels_of_speech_have_a_length_of_their_own() -> None:
    short, long = (hf_model(f"hf:{_WHISPER}", contents=SampleContents(label_tokens=n)) for n in (64, 448))
    assert short.trace(Recipe(2)).flops["matrix"] < long.trace(Recipe(2)).flops["matrix"]
    with pytest.raises(BadInput, match="at most 448 tokens"):
        hf_model(f"hf:{_WHISPER}", contents=SampleContents(label_tokens=449))
    with pytest.raises(BadInput, match="takes 80x3000, got 3x224x224"):
        hf_model(f"hf:{_WHISPER}", (3, 224, 224))


def test_wav2vec2_is_trained_by_ctc_on_seconds_of_sound() -> None:
    small = "Wav2Vec2Config(hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128)"
    model = hf_model(f"hf:{small}", contents=SampleContents(audio_seconds=4.0))
    trace = model.trace(Recipe(2))
    assert model.contents == "4 s of audio, 60 label tokens"
    assert next(t.shape for t in trace.inputs if t.name == "input_values") == (1, 64_000)
    assert any(op.kind == Loss("ctc") for op in trace.ops)
    assert trace.inputs[0].name == "input_values"  # what it is fed with is sound, not text


def test_what_a_model_does_not_take_is_refused_with_what_it_takes() -> None:
    with pytest.raises(BadInput, match=r"--images: resnet50 takes no images beside text$"):
        find_model("resnet50", contents=SampleContents(images=(1, 4, 4)))
    with pytest.raises(BadInput, match="--frames: whisper takes no frames of a film; it takes --label-tokens"):
        hf_model(f"hf:{_WHISPER}", contents=SampleContents(frames=4))


def test_an_unknown_id_is_answered_with_what_to_type() -> None:
    with pytest.raises(UnknownModel, match=r"hf:config\.json.* decoder:layers=32"):
        typed_model("nobody/unknown-8b")


def test_a_network_has_the_same_default_length_by_every_name() -> None:
    sizes = {"llama": "meta-llama/Llama-2-7b-hf", "mistral": "mistralai/Mistral-7B-v0.1", "qwen3": "Qwen/Qwen3-8B"}
    longest = {"llama": 4096, "mistral": 32768, "qwen3": 40960}
    for kind, hub_id in sizes.items():
        class_name = {"llama": "LlamaConfig", "mistral": "MistralConfig", "qwen3": "Qwen3Config"}[kind]
        config = f"hf:{class_name}(num_hidden_layers=1, max_position_embeddings={longest[kind]})"
        assert hf_model(config).units_per_sample == typed_model(hub_id).graph(1).inputs[0].shape[1], kind
    llama31 = (
        "hf:LlamaConfig(num_hidden_layers=1, max_position_embeddings=131072, rope_scaling={'rope_type': 'llama3', "
        "'factor': 8.0, 'low_freq_factor': 1.0, 'high_freq_factor': 4.0, 'original_max_position_embeddings': 8192})"
    )
    assert hf_model(llama31).units_per_sample == typed_model("meta-llama/Llama-3.1-8B").graph(1).inputs[0].shape[1]
    assert hf_model("hf:RobertaConfig(max_position_embeddings=514, num_hidden_layers=1)").units_per_sample == 512


@pytest.mark.parametrize("hub_id", sorted(MEDIA))
def test_models_of_the_hub_that_see_or_hear_have_their_published_parameters(hub_id: str) -> None:
    model = hf_model(HUB[hub_id].reference)
    assert sum(p.tensor.elements for p in model.parameters()) == HUB[hub_id].parameters
