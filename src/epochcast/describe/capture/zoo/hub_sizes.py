"""Sizes of published language models that are known by their Hub id alone; `describe.capture.hub` has the ids.

The builders are the zoo's, the sizes those of each model's `config.json`.
"""

from collections.abc import Mapping

from epochcast.describe.capture.zoo.entry import ZooEntry
from epochcast.describe.capture.zoo.language_models import GEMMA2, GEMMA3, QWEN3, decoder_entry, parallel_entry
from epochcast.describe.capture.zoo.moe import Mixture


def _qwen25(size: str, layers: int, width: int, heads: int, kv_heads: int, ffn: int, *, tied: bool = False) -> ZooEntry:
    vocabulary = 151936 if width < 3584 else 152064
    title = f"Qwen2.5 {size}, Yang et al. 2024"
    return decoder_entry(title, layers, width, heads, kv_heads, ffn, vocabulary, qkv_bias=True, tied=tied, context=4096)


def _qwen3(size: str, layers: int, width: int, heads: int, ffn: int, *, tied: bool = False) -> ZooEntry:
    return decoder_entry(f"Qwen3 {size}, Yang et al. 2025", layers, width, heads, 8, ffn, 151936, tied=tied, **QWEN3)


def _pythia(size: str, layers: int, width: int, heads: int, vocabulary: int = 50304) -> ZooEntry:
    title = f"Pythia {size}, Biderman et al. 2023"
    return parallel_entry(title, layers, width, heads, vocabulary, rotary_width=width // heads // 4)


def _smol(size: str, layers: int, width: int, heads: int, kv_heads: int, ffn: int) -> ZooEntry:
    title = f"SmolLM2 {size}, Ben Allal et al. 2025"
    return decoder_entry(title, layers, width, heads, kv_heads, ffn, 49152, tied=True, context=8192)


def _body(title: str, layers: int) -> ZooEntry:
    return ZooEntry("encoder", "bert", title, {"layers": layers, "width": 384, "heads": 12, "head": "pooler"})


def _t5(title: str, heads: int, head_width: int, ffn: int) -> ZooEntry:
    sizes = {"layers": 24, "width": 1024, "heads": heads, "head_width": head_width, "ffn": ffn}
    return ZooEntry("t5", "t5", f"{title}, Raffel et al. 2020", sizes)


def _flan(size: str, layers: int, width: int, heads: int, ffn: int) -> ZooEntry:
    sizes = {"layers": layers, "width": width, "heads": heads, "head_width": 64, "ffn": ffn, "gated": True}
    return ZooEntry("t5", "t5", f"Flan-T5 {size} (T5 1.1), Chung et al. 2022", sizes)


def _opt(title: str, layers: int, width: int, heads: int) -> ZooEntry:
    return ZooEntry("gpt", "opt", f"{title}, Zhang et al. 2022", {"layers": layers, "width": width, "heads": heads})


SIZED: Mapping[str, ZooEntry] = {
    "minilm_l6": _body("MiniLM, 6 layers, Wang et al. 2020", 6),
    "minilm_l12": _body("BERT of 12 layers, 384 wide", 12),
    "t5_large": _t5("T5 large", 16, 64, 4096),
    "t5_3b": _t5("T5 3B", 32, 128, 16384),
    "flan_t5_base": _flan("base", 12, 768, 12, 2048),
    "flan_t5_large": _flan("large", 24, 1024, 16, 2816),
    "flan_t5_xl": _flan("XL", 24, 2048, 32, 5120),
    "distilgpt2": ZooEntry("gpt", "gpt2", "DistilGPT2, Sanh et al. 2019", {"layers": 6, "width": 768, "heads": 12}),
    "opt_6_7b": _opt("OPT-6.7B", 32, 4096, 32),
    "opt_13b": _opt("OPT-13B", 40, 5120, 40),
    "pythia_70m": _pythia("70M", 6, 512, 8),
    "pythia_160m": _pythia("160M", 12, 768, 12),
    "pythia_410m": _pythia("410M", 24, 1024, 16),
    "pythia_1_4b": _pythia("1.4B", 24, 2048, 16),
    "pythia_6_9b": _pythia("6.9B", 32, 4096, 32, 50432),
    "pythia_12b": _pythia("12B", 36, 5120, 40, 50688),
    "gpt_neox_20b": parallel_entry("GPT-NeoX 20B, Black et al. 2022", 44, 6144, 64, 50432, rotary_width=24),
    "phi_4": decoder_entry("Phi-4, Abdin et al. 2024", 40, 5120, 40, 10, 17920, 100352, context=4096, packed=True),
    "llama_7b": decoder_entry("Llama 7B, Touvron et al. 2023", 32, 4096, 32, 32, 11008, 32000, context=2048),
    "smollm2_135m": _smol("135M", 30, 576, 9, 3, 1536),
    "smollm2_360m": _smol("360M", 32, 960, 15, 5, 2560),
    "smollm2_1_7b": _smol("1.7B", 24, 2048, 32, 32, 8192),
    "mistral_7b_v3": decoder_entry("Mistral 7B v0.3", 32, 4096, 32, 8, 14336, 32768, context=4096),
    "mistral_nemo": decoder_entry("Mistral Nemo 12B", 40, 5120, 32, 8, 14336, 131072, head_width=128, context=4096),
    "mixtral_8x7b": decoder_entry(
        "Mixtral 8x7B, Jiang et al. 2024", 32, 4096, 32, 8, 14336, 32000, mixture=Mixture(8, 2, 14336), context=4096
    ),
    "qwen2_5_0_5b": _qwen25("0.5B", 24, 896, 14, 2, 4864, tied=True),
    "qwen2_5_1_5b": _qwen25("1.5B", 28, 1536, 12, 2, 8960, tied=True),
    "qwen2_5_3b": _qwen25("3B", 36, 2048, 16, 2, 11008, tied=True),
    "qwen2_5_7b": _qwen25("7B", 28, 3584, 28, 4, 18944),
    "qwen2_5_14b": _qwen25("14B", 48, 5120, 40, 8, 13824),
    "qwen2_5_32b": _qwen25("32B", 64, 5120, 40, 8, 27648),
    "qwen2_5_72b": _qwen25("72B", 80, 8192, 64, 8, 29568),
    "qwen3_0_6b": _qwen3("0.6B", 28, 1024, 16, 3072, tied=True),
    "qwen3_1_7b": _qwen3("1.7B", 28, 2048, 16, 6144, tied=True),
    "qwen3_4b": _qwen3("4B", 36, 2560, 32, 9728, tied=True),
    "qwen3_8b": _qwen3("8B", 36, 4096, 32, 12288),
    "qwen3_14b": _qwen3("14B", 40, 5120, 40, 17408),
    "qwen3_32b": _qwen3("32B", 64, 5120, 64, 25600),
    "gemma2_27b": decoder_entry(
        "Gemma 2 27B, Gemma Team 2024", 46, 4608, 32, 16, 36864, 256000, **{**GEMMA2, "head_width": 128}
    ),
    "gemma3_1b": decoder_entry("Gemma 3 1B, Gemma Team 2025", 26, 1152, 4, 1, 6912, 262144, **GEMMA3),
}
