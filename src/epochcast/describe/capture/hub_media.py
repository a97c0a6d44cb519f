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
        f"hf:Gemma3Config(text_config={_GEMMA3_TEXT}, "
        f"vision_config={{{_SIGLIP}, 'image_size': 896, 'vision_use_head': False}})",
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
}  # fmt: skip
