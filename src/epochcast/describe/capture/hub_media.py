"""Configurations of models on the Hub that see or hear, by id: as `hf:` takes them, with their published parameters.

The sizes are those of each `config.json`; what equals the default of its class in transformers is left out.
"""

from collections.abc import Mapping

_SIGLIP = (
    "'hidden_size': 1152, 'intermediate_size': 4304, 'num_hidden_layers': 27, 'num_attention_heads': 16, "
    "'patch_size': 14"
)
_QWEN_EYE = "{'hidden_size': 1280, 'intermediate_size': 3420, 'out_hidden_size': %d}"


def _text(vocabulary: int, width: int, ffn: int, layers: int, heads: int, kv_heads: int = 0, more: str = "") -> str:
    """The configuration of a decoder inside another."""
    return (
        f"{{'vocab_size': {vocabulary}, 'hidden_size': {width}, 'intermediate_size': {ffn}, "
        f"'num_hidden_layers': {layers}, 'num_attention_heads': {heads}, "
        f"'num_key_value_heads': {kv_heads or heads}{', ' + more if more else ''}}}"
    )


def _qwen(config: str, size: str, eye: str) -> str:
    vocabulary, width, ffn, layers, heads, kv_heads = _QWEN_TEXTS[size]
    tied = "'tie_word_embeddings': True" if vocabulary == 151936 else ""
    outer = ", tie_word_embeddings=True" if tied else ""
    text = _text(vocabulary, width, ffn, layers, heads, kv_heads, tied)
    return f"hf:{config}(text_config={text}, vision_config={eye}{outer})"


_QWEN_TEXTS = {
    "2b": (151936, 1536, 8960, 28, 12, 2),
    "3b": (151936, 2048, 11008, 36, 16, 2),
    "7b": (152064, 3584, 18944, 28, 28, 4),
    "72b": (152064, 8192, 29568, 80, 64, 8),
}


def _llava(width: int, ffn: int, layers: int, heads: int) -> str:
    text = _text(32064, width, ffn, layers, heads, more="'model_type': 'llama', 'max_position_embeddings': 4096")
    return f"hf:LlavaConfig(text_config={text})"


def _idefics(text: str, image_size: int, scale: int, image_token: int) -> str:
    eye = f"{{{_SIGLIP}, 'image_size': {image_size}}}"
    outer = f"scale_factor={scale}, image_token_id={image_token}"
    return f"hf:Idefics3Config({outer}, text_config={text}, vision_config={eye})"


def _wav2vec2(width: int, layers: int, more: str = "") -> str:
    sizes = f"hidden_size={width}, intermediate_size={4 * width}, num_hidden_layers={layers}"
    return f"hf:Wav2Vec2Config({sizes}, num_attention_heads={width // 64}{more})"


def _whisper(
    width: int, layers: int, heads: int, decoder_layers: int = 0, mels: int = 80, vocabulary: int = 51865
) -> str:
    sides = "".join(
        f", {side}_layers={count}, {side}_attention_heads={heads}, {side}_ffn_dim={4 * width}"
        for side, count in (("encoder", layers), ("decoder", decoder_layers or layers))
    )
    return f"hf:WhisperConfig(d_model={width}{sides}, num_mel_bins={mels}, vocab_size={vocabulary})"


def _qwen3(width: int, ffn: int, layers: int, heads: int, eye: str, is_tied: bool) -> str:
    tied = "'tie_word_embeddings': True" if is_tied else ""
    text = _text(151936, width, ffn, layers, heads, 8, "'head_dim': 128" + (f", {tied}" if tied else ""))
    outer = ", tie_word_embeddings=True" if is_tied else ""
    return f"hf:Qwen3VLConfig(text_config={text}, vision_config={{{eye}'out_hidden_size': {width}}}{outer})"


def _intern(width: int, ffn: int, layers: int, heads: int, kv_heads: int) -> str:
    text = _text(151674, width, ffn, layers, heads, kv_heads, _QWEN2)
    eye = "{'image_size': [448, 448], 'attention_bias': True}"
    return f"hf:InternVLConfig(text_config={text}, vision_config={eye}, tie_word_embeddings=False)"


def _one_vision(text: str, more: str = "") -> str:
    return f"hf:LlavaOnevisionConfig(image_token_index=151646, text_config={text}{more})"


def _small_vlm(text: str) -> str:
    return (
        f"hf:Idefics3Config(scale_factor=4, image_token_id=49190, text_config={text}, vision_config="
        "{'hidden_size': 768, 'intermediate_size': 3072, 'num_hidden_layers': 12, 'num_attention_heads': 12, "
        "'patch_size': 16, 'image_size': 512})"
    )


def _paligemma2(text: str, width: int) -> str:
    return (
        f"hf:PaliGemmaConfig(projection_dim={width}, image_token_index=257152, text_config={text}, vision_config="
        f"{{'model_type': 'siglip_vision_model', {_SIGLIP}, 'projection_dim': {width}, 'vision_use_head': False}})"
    )


def _gemma3(text: str) -> str:
    return (
        f"hf:Gemma3Config(text_config={text}, vision_config={{{_SIGLIP}, 'image_size': 896, 'vision_use_head': False}})"
    )


def _florence(width: int, layers: int, heads: int, eye: str = "") -> str:
    sides = ", ".join(
        f"'{side}_layers': {layers}, '{side}_attention_heads': {heads}, '{side}_ffn_dim': {4 * width}"
        for side in ("encoder", "decoder")
    )
    positions = 1024 if width == 768 else 4096
    text = f"{{'d_model': {width}, {sides}, 'vocab_size': 51289, 'max_position_embeddings': {positions}}}"
    return f"hf:Florence2Config(text_config={text}, vision_config={{{eye}'projection_dim': {width}}})"


_QWEN2 = "'model_type': 'qwen2'"
_EYE_24 = "'depth': 24, 'hidden_size': 1024, 'intermediate_size': 4096, 'deepstack_visual_indexes': [5, 11, 17], "
_GEMMA2 = "'model_type': 'gemma2', 'head_dim': 256, 'num_image_tokens': 256"
_BLIP2_TEXT = (
    "{'model_type': 'opt', 'vocab_size': 50304, 'hidden_size': 2560, 'ffn_dim': 10240, 'num_hidden_layers': 32, "
    "'num_attention_heads': 32, 'word_embed_proj_dim': 2560}"
)
_LLAMA3_ROPE = (
    "{'rope_type': 'llama3', 'rope_theta': 500000.0, 'factor': 8.0, 'low_freq_factor': 1.0, "
    "'high_freq_factor': 4.0, 'original_max_position_embeddings': 8192}"
)
_WIDE_WAV = "hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16"
_XLS_R = ", conv_bias=True, do_stable_layer_norm=True, feat_extract_norm='layer'"
_GEMMA_TEXT = _text(257216, 2048, 16384, 18, 8, 1, "'model_type': 'gemma', 'num_image_tokens': 256")
_GEMMA3_TEXT = _text(262208, 2560, 10240, 34, 8, 4, "'head_dim': 256")

MEDIA: Mapping[str, tuple[str, int, tuple[str, ...]]] = {
    "Qwen/Qwen2-VL-2B-Instruct": (
        _qwen("Qwen2VLConfig", "2b", "{'hidden_size': 1536}"), 2_208_985_600, ("Qwen/Qwen2-VL-2B",)
    ),
    "Qwen/Qwen2-VL-7B-Instruct": (
        _qwen("Qwen2VLConfig", "7b", "{'hidden_size': 3584}"), 8_291_375_616, ("Qwen/Qwen2-VL-7B",)
    ),
    "Qwen/Qwen2.5-VL-3B-Instruct": (
        _qwen("Qwen2_5_VLConfig", "3b", _QWEN_EYE % 2048), 3_754_622_976, ("unsloth/Qwen2.5-VL-3B-Instruct",)
    ),
    "Qwen/Qwen2.5-VL-7B-Instruct": (
        _qwen("Qwen2_5_VLConfig", "7b", _QWEN_EYE % 3584), 8_292_166_656, ("unsloth/Qwen2.5-VL-7B-Instruct",)
    ),
    "llava-hf/llava-1.5-7b-hf": (
        _llava(4096, 11008, 32, 32), 7_063_427_072, ("liuhaotian/llava-v1.5-7b", "LLaVA-1.5-7B")
    ),
    "llava-hf/llava-1.5-13b-hf": (
        _llava(5120, 13824, 40, 40), 13_351_494_656, ("liuhaotian/llava-v1.5-13b", "LLaVA-1.5-13B")
    ),
    "llava-hf/llava-v1.6-mistral-7b-hf": (
        "hf:LlavaNextConfig(image_token_index=32000, text_config="
        + _text(32064, 4096, 14336, 32, 32, 8, "'model_type': 'mistral'") + ")",
        7_566_747_648,
        ("liuhaotian/llava-v1.6-mistral-7b",),
    ),
    "google/paligemma-3b-pt-224": (
        f"hf:PaliGemmaConfig(projection_dim=2048, image_token_index=257152, text_config={_GEMMA_TEXT}, vision_config="
        f"{{'model_type': 'siglip_vision_model', {_SIGLIP}, 'projection_dim': 2048, 'vision_use_head': False}})",
        2_923_466_480,
        ("google/paligemma-3b-mix-224",),
    ),
    "HuggingFaceTB/SmolVLM-Instruct": (
        _idefics(
            _text(49155, 2048, 8192, 24, 32, 0, "'model_type': 'llama', 'max_position_embeddings': 16384"),
            384, 3, 49153,
        ),
        2_246_272_880,
        ("HuggingFaceTB/SmolVLM-Base",),
    ),
    "HuggingFaceM4/Idefics3-8B-Llama3": (
        _idefics(
            _text(128259, 4096, 14336, 32, 32, 8, "'model_type': 'llama', 'max_position_embeddings': 131072"),
            364, 2, 128257,
        ),
        8_462_086_384,
        (),
    ),
    "google/gemma-3-4b-it": (
        _gemma3(_GEMMA3_TEXT),
        4_300_079_472,
        ("google/gemma-3-4b-pt", "unsloth/gemma-3-4b-it"),
    ),
    "openai/whisper-tiny": (_whisper(384, 4, 6), 37_760_640, ()),
    "openai/whisper-base": (_whisper(512, 6, 8), 72_593_920, ()),
    "openai/whisper-small": (_whisper(768, 12, 12), 241_734_912, ()),
    "openai/whisper-medium": (_whisper(1024, 24, 16), 763_857_920, ()),
    "openai/whisper-large-v2": (_whisper(1280, 32, 20), 1_543_304_960, ("openai/whisper-large",)),
    "openai/whisper-large-v3": (_whisper(1280, 32, 20, mels=128, vocabulary=51866), 1_543_490_560, ()),
    "openai/whisper-large-v3-turbo": (
        _whisper(1280, 32, 20, decoder_layers=4, mels=128, vocabulary=51866), 808_878_080, ()
    ),
    "facebook/wav2vec2-base-960h": ("hf:Wav2Vec2Config", 94_396_320, ("facebook/wav2vec2-base",)),
    "facebook/wav2vec2-large-960h": (_wav2vec2(1024, 24), 315_461_792, ("facebook/wav2vec2-large",)),
    "facebook/wav2vec2-xls-r-300m": (
        _wav2vec2(1024, 24, _XLS_R), 315_471_520, ("facebook/wav2vec2-large-xlsr-53",)
    ),
    "facebook/hubert-base-ls960": ("hf:HubertConfig", 94_396_320, ()),
    "Qwen/Qwen2.5-VL-32B-Instruct": (
        "hf:Qwen2_5_VLConfig(text_config=" + _text(152064, 5120, 27648, 64, 40, 8) + ", vision_config={'hidden_size': "
        "1280, 'intermediate_size': 3456, 'out_hidden_size': 5120})", 33_452_718_336, ()
    ),
    "Qwen/Qwen2.5-VL-72B-Instruct": (
        "hf:Qwen2_5_VLConfig(text_config=" + _text(152064, 8192, 29568, 80, 64, 8) + ", vision_config={'hidden_size': "
        "1280, 'intermediate_size': 3456, 'out_hidden_size': 8192})", 73_410_777_344, ()
    ),
    "Qwen/Qwen3-VL-2B-Instruct": (
        _qwen3(2048, 6144, 28, 16, _EYE_24, True), 2_127_532_032,
        ("Qwen/Qwen3-VL-2B-Thinking", "unsloth/Qwen3-VL-2B-Instruct"),
    ),
    "Qwen/Qwen3-VL-4B-Instruct": (
        _qwen3(2560, 9728, 36, 32, _EYE_24, True), 4_437_815_808,
        ("Qwen/Qwen3-VL-4B-Thinking", "unsloth/Qwen3-VL-4B-Instruct"),
    ),
    "Qwen/Qwen3-VL-8B-Instruct": (
        _qwen3(4096, 12288, 36, 32, "", False), 8_767_123_696,
        ("Qwen/Qwen3-VL-8B-Thinking", "unsloth/Qwen3-VL-8B-Instruct"),
    ),
    "OpenGVLab/InternVL3-1B-hf": (_intern(896, 4864, 24, 14, 2), 938_193_024, ("OpenGVLab/InternVL3-1B",)),
    "OpenGVLab/InternVL3-2B-hf": (_intern(1536, 8960, 28, 12, 2), 2_088_957_440, ("OpenGVLab/InternVL3-2B",)),
    "OpenGVLab/InternVL3-8B-hf": (_intern(3584, 18944, 28, 28, 4), 7_944_373_760, ("OpenGVLab/InternVL3-8B",)),
    "llava-hf/llava-onevision-qwen2-7b-ov-hf": (
        _one_vision(_text(152064, 3584, 18944, 28, 28, 4, _QWEN2)), 8_030_348_832,
        ("llava-hf/llava-onevision-qwen2-7b-si-hf", "lmms-lab/llava-onevision-qwen2-7b-ov"),
    ),
    "llava-hf/llava-onevision-qwen2-0.5b-ov-hf": (
        _one_vision(
            _text(151936, 896, 4864, 24, 14, 2, f"{_QWEN2}, 'tie_word_embeddings': True"), ", tie_word_embeddings=True"
        ),
        893_618_208,
        ("llava-hf/llava-onevision-qwen2-0.5b-si-hf", "lmms-lab/llava-onevision-qwen2-0.5b-ov"),
    ),
    "HuggingFaceM4/idefics2-8b": (
        "hf:Idefics2Config(image_token_id=32001, text_config="
        + _text(32003, 4096, 14336, 32, 32, 8, "'model_type': 'mistral'")
        + f", vision_config={{{_SIGLIP}, 'image_size': 980}}, perceiver_config={{'hidden_size': 4096}})",
        8_402_768_112,
        ("HuggingFaceM4/idefics2-8b-base", "HuggingFaceM4/idefics2-8b-chatty"),
    ),
    "HuggingFaceTB/SmolVLM-256M-Instruct": (
        _small_vlm(_text(49280, 576, 1536, 30, 9, 3, "'model_type': 'llama', 'max_position_embeddings': 8192")),
        256_484_928,
        ("HuggingFaceTB/SmolVLM-256M-Base", "HuggingFaceTB/SmolVLM2-256M-Video-Instruct"),
    ),
    "HuggingFaceTB/SmolVLM-500M-Instruct": (
        _small_vlm(_text(49280, 960, 2560, 32, 15, 5, "'model_type': 'llama', 'max_position_embeddings': 8192")),
        507_482_304,
        ("HuggingFaceTB/SmolVLM-500M-Base", "HuggingFaceTB/SmolVLM2-500M-Video-Instruct"),
    ),
    "HuggingFaceTB/SmolVLM2-2.2B-Instruct": (
        _idefics(
            _text(49280, 2048, 8192, 24, 32, 0, "'model_type': 'llama', 'max_position_embeddings': 8192"),
            384, 3, 49190,
        ),
        2_246_784_880,
        ("HuggingFaceTB/SmolVLM2-2.2B-Base",),
    ),
    "google/paligemma2-3b-pt-224": (
        _paligemma2(_text(257216, 2304, 9216, 26, 8, 4, _GEMMA2), 2304), 3_032_242_416,
        ("google/paligemma2-3b-mix-224",),
    ),
    "google/gemma-3-12b-it": (
        _gemma3(_text(262208, 3840, 15360, 48, 16, 8, "'head_dim': 256")), 12_187_325_040,
        ("google/gemma-3-12b-pt", "unsloth/gemma-3-12b-it"),
    ),
    "google/gemma-3-27b-it": (
        _gemma3(_text(262208, 5376, 21504, 62, 32, 16, "'head_dim': 128")), 27_432_406_640,
        ("google/gemma-3-27b-pt", "unsloth/gemma-3-27b-it"),
    ),
    "Salesforce/blip2-opt-2.7b": (f"hf:Blip2Config(text_config={_BLIP2_TEXT})", 3_744_761_856, ()),
    # 0.23 and 0.77 billion in the paper (Xiao et al. 2024, table 1)
    "florence-community/Florence-2-base": (_florence(768, 6, 12), 231_414_016, ("microsoft/Florence-2-base",)),
    "florence-community/Florence-2-large": (
        _florence(1024, 12, 16, "'embed_dim': [256, 512, 1024, 2048], 'num_heads': [8, 16, 32, 64], 'num_groups': "
        "[8, 16, 32, 64], "), 776_465_408, ("microsoft/Florence-2-large",)
    ),
    "Salesforce/blip-image-captioning-base": (
        "hf:BlipConfig(vision_config={'image_size': 384})", 223_971_644, ("Salesforce/blip-vqa-base",)
    ),
    "meta-llama/Llama-3.2-11B-Vision-Instruct": (
        f"hf:MllamaConfig(text_config={{'vocab_size': 128256, 'rope_parameters': {_LLAMA3_ROPE}}}, "
        "vision_config={'image_size': 560})",
        10_670_220_835,
        ("meta-llama/Llama-3.2-11B-Vision", "unsloth/Llama-3.2-11B-Vision-Instruct"),
    ),
    "microsoft/git-base": ("hf:GitConfig", 176_619_066, ()),
    "openai/whisper-tiny.en": (_whisper(384, 4, 6, vocabulary=51864), 37_760_256, ()),
    "openai/whisper-base.en": (_whisper(512, 6, 8, vocabulary=51864), 72_593_408, ()),
    "openai/whisper-small.en": (_whisper(768, 12, 12, vocabulary=51864), 241_734_144, ()),
    "openai/whisper-medium.en": (_whisper(1024, 24, 16, vocabulary=51864), 763_856_896, ()),
    "distil-whisper/distil-large-v3": (
        _whisper(1280, 32, 20, decoder_layers=2, mels=128, vocabulary=51866), 756_405_760, ()
    ),
    "distil-whisper/distil-medium.en": (_whisper(1024, 24, 16, decoder_layers=2, vocabulary=51864), 394_375_168, ()),
    "facebook/hubert-large-ls960-ft": (
        f"hf:HubertConfig({_WIDE_WAV}{_XLS_R})", 315_471_520, ("facebook/hubert-large-ll60k",)
    ),
    "facebook/wav2vec2-xls-r-1b": (
        f"hf:Wav2Vec2Config(hidden_size=1280, intermediate_size=5120, num_hidden_layers=48, num_attention_heads=16"
        f"{_XLS_R})", 962_538_400, ()
    ),
    "facebook/mms-1b-all": (
        f"hf:Wav2Vec2Config(hidden_size=1280, intermediate_size=5120, num_hidden_layers=48, num_attention_heads=16"
        f"{_XLS_R}, vocab_size=154, adapter_attn_dim=16)", 964_845_850, ()
    ),
    "microsoft/wavlm-base": ("hf:WavLMConfig", 94_406_544, ("microsoft/wavlm-base-plus",)),
    "microsoft/wavlm-large": (
        f"hf:WavLMConfig({_WIDE_WAV}, do_stable_layer_norm=True, feat_extract_norm='layer')", 315_485_920, ()
    ),
    "facebook/w2v-bert-2.0": ("hf:Wav2Vec2BertConfig(vocab_size=32)", 580_525_920, ()),
    "nvidia/parakeet-ctc-0.6b": ("hf:ParakeetCTCConfig", 608_799_745, ()),
    "nvidia/parakeet-ctc-1.1b": (
        "hf:ParakeetCTCConfig(encoder_config={'num_hidden_layers': 42})", 1_062_540_289, ()
    ),
    "facebook/s2t-small-librispeech-asr": ("hf:Speech2TextConfig", 29_536_256, ()),
}  # fmt: skip
