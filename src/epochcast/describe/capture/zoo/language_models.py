"""The large language models of the zoo, by name: dense decoders and mixtures of experts.

Sizes are those of the published configurations. The input is a number of tokens (such as 4096); throughput counts
sequences. `sequences` has Llama 2 and 3, TinyLlama and Mistral.
"""

from collections.abc import Mapping
from typing import Any

from epochcast.describe.capture.zoo.entry import ZooEntry
from epochcast.describe.capture.zoo.latent import Latent
from epochcast.describe.capture.zoo.moe import Mixture

Options = Mapping[str, Any]


def decoder_entry(
    title: str,
    layers: int,
    width: int,
    heads: int,
    kv_heads: int,
    ffn: int,
    vocabulary: int,
    *,
    window: int = 0,
    global_every: int = 0,
    dense_layers: int = 0,
    **more: object,
) -> ZooEntry:
    """A decoder of Llama's kind (`decoder`)."""
    sizes = {"layers": layers, "width": width, "heads": heads, "kv_heads": kv_heads, "ffn": ffn}
    kinds = {"window": window, "global_every": global_every, "dense_layers": dense_layers, **more}
    return ZooEntry("decoder", "decoder", title, {**sizes, "vocabulary": vocabulary, **kinds})


def parallel_entry(title: str, layers: int, width: int, heads: int, vocabulary: int, **more: object) -> ZooEntry:
    """A decoder of GPT-NeoX' kind (`parallel`)."""
    sizes = {"layers": layers, "width": width, "heads": heads, "vocabulary": vocabulary}
    return ZooEntry("parallel_blocks", "parallel_decoder", title, {**sizes, **more})


GEMMA: Options = {
    "head_width": 256, "activation": "gelu", "scaled_tokens": True, "tied": True, "wide_norms": True, "context": 8192,
}  # fmt: skip
GEMMA2: Options = {**GEMMA, "norms_behind": True, "capped_logits": True, "window": 4096, "global_every": 2}
GEMMA3: Options = {**GEMMA, "norms_behind": True, "head_norms": True, "window": 512, "global_every": 6}
QWEN3: Options = {"head_width": 128, "head_norms": True, "context": 4096}
_OSS: Options = {
    **{"head_width": 64, "qkv_bias": True, "o_bias": True, "sinks": True, "window": 128, "global_every": 2},
    "context": 4096,
}
_LATENT = Latent(query_rank=1536, key_rank=512, plain=128, rotary=64, value=128)
_LLAMA31 = "Grattafiori et al. 2024"
_GEMMA_PAPER, _GEMMA2_PAPER = "Gemma Team 2024", "Gemma Team 2024 (Gemma 2)"
_PHI = {"rotary_width": 32, "shared_norm": True, "output_bias": True, "is_phi": True}
_PYTHIA = "Biderman et al. 2023"

LANGUAGE: Mapping[str, ZooEntry] = {
    "llama3_1_8b": decoder_entry(f"Llama 3.1 8B, {_LLAMA31}", 32, 4096, 32, 8, 14336, 128256, context=8192),
    "llama3_1_405b": decoder_entry(f"Llama 3.1 405B, {_LLAMA31}", 126, 16384, 128, 8, 53248, 128256, context=8192),
    "gemma_2b": decoder_entry(f"Gemma 2B, {_GEMMA_PAPER}", 18, 2048, 8, 1, 16384, 256000, **GEMMA),
    "gemma_7b": decoder_entry(f"Gemma 7B, {_GEMMA_PAPER}", 28, 3072, 16, 16, 24576, 256000, **GEMMA),
    "gemma2_2b": decoder_entry(f"Gemma 2 2B, {_GEMMA2_PAPER}", 26, 2304, 8, 4, 9216, 256000, **GEMMA2),
    "gemma2_9b": decoder_entry(f"Gemma 2 9B, {_GEMMA2_PAPER}", 42, 3584, 16, 8, 14336, 256000, **GEMMA2),
    "phi3_mini": decoder_entry(
        "Phi-3 mini 4k, Abdin et al. 2024", 32, 3072, 32, 32, 8192, 32064, packed=True, window=2047
    ),
    "qwen3_30b_a3b": decoder_entry(
        "Qwen3 30B, 128 experts of which 8, Yang et al. 2025",
        48, 2048, 32, 4, 6144, 151936, mixture=Mixture(128, 8, 768), **QWEN3,
    ),
    "qwen3_235b_a22b": decoder_entry(
        "Qwen3 235B, 128 experts of which 8, Yang et al. 2025",
        94, 4096, 64, 4, 12288, 151936, mixture=Mixture(128, 8, 1536), **QWEN3,
    ),
    "gpt_oss_20b": decoder_entry(
        "gpt-oss 20B, 32 experts of which 4, OpenAI 2025",
        24, 2880, 64, 8, 2880, 201088, mixture=Mixture(32, 4, 2880, is_clamped=True), **_OSS,
    ),
    "gpt_oss_120b": decoder_entry(
        "gpt-oss 120B, 128 experts of which 4, OpenAI 2025",
        36, 2880, 64, 8, 2880, 201088, mixture=Mixture(128, 4, 2880, is_clamped=True), **_OSS,
    ),
    "deepseek_v3": decoder_entry(
        "DeepSeek-V3, 256 experts of which 8 and a shared one, DeepSeek-AI 2024",
        61, 7168, 128, 128, 18432, 129280, latent=_LATENT, dense_layers=3,
        mixture=Mixture(256, 8, 2048, shared=2048, scores="sigmoid"),
    ),
    "kimi_k2": decoder_entry(
        "Kimi K2, 384 experts of which 8 and a shared one, Kimi Team 2025",
        61, 7168, 64, 64, 18432, 163840, latent=_LATENT, dense_layers=1,
        mixture=Mixture(384, 8, 2048, shared=2048, scores="sigmoid"),
    ),
    "pythia_1b": parallel_entry(f"Pythia 1B, {_PYTHIA}", 16, 2048, 8, 50304, rotary_width=64),
    "pythia_2_8b": parallel_entry(f"Pythia 2.8B, {_PYTHIA}", 32, 2560, 32, 50304, rotary_width=20),
    "stablelm_base_alpha_3b": parallel_entry(
        "StableLM base alpha 3B, Stability AI 2023", 16, 4096, 32, 50688, rotary_width=32, context=4096
    ),
    "phi_1_5": parallel_entry("Phi-1.5, Li et al. 2023", 24, 2048, 32, 51200, **_PHI),
    "phi_2": parallel_entry("Phi-2, Microsoft 2023", 32, 2560, 32, 51200, **_PHI),
    "falcon_7b": parallel_entry(
        "Falcon 7B, Almazrouei et al. 2023", 32, 4544, 71, 65024, kv_heads=1, shared_norm=True, bias=False, tied=True
    ),
}  # fmt: skip
