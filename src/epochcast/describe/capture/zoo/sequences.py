"""The transformers, recurrent networks and recommenders of the zoo, by name.

The input of a language model is a number of tokens (such as 128); throughput counts sequences.
"""

from collections.abc import Mapping

from epochcast.describe.capture.zoo.entry import ZooEntry


def _vit(title: str, patch: int, layers: int, width: int, heads: int) -> ZooEntry:
    options = {"patch": patch, "layers": layers, "width": width, "heads": heads}
    return ZooEntry("vision_transformer", "vision_transformer", f"{title}, Dosovitskiy et al. 2021", options)


def _swin(title: str, width: int, depths: tuple[int, ...], heads: tuple[int, ...]) -> ZooEntry:
    return ZooEntry("swin", "swin", f"{title}, Liu et al. 2021", {"width": width, "depths": depths, "heads": heads})


def _clip(title: str, patch: int, layers: int, width: int, text_width: int) -> ZooEntry:
    sizes = {"patch": patch, "layers": layers, "width": width, "text_width": text_width}
    return ZooEntry("clip", "clip", f"{title}, Radford et al. 2021", sizes)


def _bert(layers: int, width: int, heads: int, head: str, task: str) -> ZooEntry:
    title = f"BERT-{'base' if layers == 12 else 'large'} {task}, Devlin et al. 2019"
    options = {"layers": layers, "width": width, "heads": heads, "head": head}
    return ZooEntry("encoder", "bert", title, options)


def _gpt(title: str, layers: int, width: int, heads: int, **more: object) -> ZooEntry:
    sizes = {"layers": layers, "width": width, "heads": heads}
    return ZooEntry("gpt", "gpt2", title, {**sizes, **more})


def _opt(title: str, layers: int, width: int, heads: int) -> ZooEntry:
    sizes = {"layers": layers, "width": width, "heads": heads}
    return ZooEntry("gpt", "opt", f"{title}, Zhang et al. 2022", sizes)


def _llama(
    title: str,
    layers: int,
    width: int,
    heads: int,
    kv_heads: int,
    ffn: int,
    vocabulary: int,
    context: int,
    **more: object,
) -> ZooEntry:
    sizes = {"layers": layers, "width": width, "heads": heads, "kv_heads": kv_heads, "ffn": ffn}
    options = {**sizes, "vocabulary": vocabulary, "context": context, **more}
    return ZooEntry("decoder", "decoder", title, options)


def _t5(title: str, layers: int, width: int, heads: int, head_width: int, ffn: int, **more: object) -> ZooEntry:
    sizes = {"layers": layers, "width": width, "heads": heads, "head_width": head_width, "ffn": ffn}
    return ZooEntry("t5", "t5", title, {**sizes, **more})


_BASE, _LARGE = (12, 768, 12), (24, 1024, 16)
_BIG = {"width": 1024, "heads": 16, "ffn": 4096}
_WMT = {**_BIG, "ffn": 1024, "vocabulary": 32000, "length": 256}
_XL = {"layers": 18, **_BIG, "segment": 384, "narrowing": 4, "attention_dropout": True}
_GPT3 = {"positions": 2048}
_ML1M = {"users": 6040, "items": 3706, "factors": 32, "layers": (256, 128, 64, 32)}
_LSTM = ZooEntry("recurrent", "lstm_lm", "LSTM language model, large, Zaremba et al. 2014")
_WIDE_XL = "gpt3_xl is 3,072 wide (24 heads of 128), as measured under that name; gpt3_1_3b has the paper's 2,048"

SEQUENCES: Mapping[str, ZooEntry] = {
    "vit_ti_16": _vit("ViT-Ti/16", 16, 12, 192, 3),
    "vit_s_16": _vit("ViT-S/16", 16, 12, 384, 6),
    "vit_b_16": _vit("ViT-B/16", 16, 12, 768, 12),
    "vit_b_32": _vit("ViT-B/32", 32, 12, 768, 12),
    "vit_l_16": _vit("ViT-L/16", 16, 24, 1024, 16),
    "vit_l_32": _vit("ViT-L/32", 32, 24, 1024, 16),
    "swin_t": _swin("Swin-T", 96, (2, 2, 6, 2), (3, 6, 12, 24)),
    "swin_s": _swin("Swin-S", 96, (2, 2, 18, 2), (3, 6, 12, 24)),
    "swin_b": _swin("Swin-B", 128, (2, 2, 18, 2), (4, 8, 16, 32)),
    "clip_vit_b_32": _clip("CLIP ViT-B/32", 32, 12, 768, 512),
    "clip_vit_b_16": _clip("CLIP ViT-B/16", 16, 12, 768, 512),
    "clip_vit_l_14": _clip("CLIP ViT-L/14", 14, 24, 1024, 768),
    "bert_base": _bert(*_BASE, "pooler", "body"),
    "bert_base_mlm": _bert(*_BASE, "mlm", "for masked words"),
    "bert_base_pretraining": _bert(*_BASE, "pretraining", "for pre-training"),
    "bert_base_masked": _bert(*_BASE, "masked", "for pre-training by masked tokens"),
    "bert_base_classification": _bert(*_BASE, "classification", "for classification"),
    "bert_base_squad": _bert(*_BASE, "squad", "for question answering"),
    "bert_large": _bert(*_LARGE, "pooler", "body"),
    "bert_large_mlm": _bert(*_LARGE, "mlm", "for masked words"),
    "bert_large_pretraining": _bert(*_LARGE, "pretraining", "for pre-training"),
    "bert_large_masked": _bert(*_LARGE, "masked", "for pre-training by masked tokens"),
    "bert_large_classification": _bert(*_LARGE, "classification", "for classification"),
    "bert_large_squad": _bert(*_LARGE, "squad", "for question answering"),
    "gpt2": _gpt("GPT-2, Radford et al. 2019", 12, 768, 12),
    "gpt2_medium": _gpt("GPT-2 medium, Radford et al. 2019", 24, 1024, 16),
    "gpt2_large": _gpt("GPT-2 large, Radford et al. 2019", 36, 1280, 20),
    "gpt2_xl": _gpt("GPT-2 XL, Radford et al. 2019", 48, 1600, 25),
    "gpt3_xl": _gpt("GPT-3 XL with 24 heads of 128, Brown et al. 2020", 24, 3072, 24, **_GPT3, notes=(_WIDE_XL,)),
    "gpt3_1_3b": _gpt("GPT-3 1.3B with 16 heads of 128, Brown et al. 2020", 24, 2048, 16, **_GPT3),
    "gpt3_2_7b": _gpt("GPT-3 2.7B, Brown et al. 2020", 32, 2560, 32, **_GPT3),
    "opt_125m": _opt("OPT-125M", 12, 768, 12),
    "opt_1_3b": _opt("OPT-1.3B", 24, 2048, 32),
    "opt_2_7b": _opt("OPT-2.7B", 32, 2560, 32),
    "llama2_7b": _llama("Llama 2 7B, Touvron et al. 2023", 32, 4096, 32, 32, 11008, 32000, 4096),
    "llama2_13b": _llama("Llama 2 13B, Touvron et al. 2023", 40, 5120, 40, 40, 13824, 32000, 4096),
    "llama2_70b": _llama("Llama 2 70B, Touvron et al. 2023", 80, 8192, 64, 8, 28672, 32000, 4096),
    "llama3_8b": _llama("Llama 3 8B, Grattafiori et al. 2024", 32, 4096, 32, 8, 14336, 128256, 8192),
    "llama3_70b": _llama("Llama 3 70B, Grattafiori et al. 2024", 80, 8192, 64, 8, 28672, 128256, 8192),
    "llama3_2_1b": _llama("Llama 3.2 1B", 16, 2048, 32, 8, 8192, 128256, 8192, tied=True),
    "llama3_2_3b": _llama("Llama 3.2 3B", 28, 3072, 24, 8, 8192, 128256, 8192, tied=True),
    "tinyllama_1_1b": _llama("TinyLlama 1.1B, Zhang et al. 2024", 22, 2048, 32, 4, 5632, 32000, 2048),
    "mistral_7b": _llama("Mistral 7B, Jiang et al. 2023", 32, 4096, 32, 8, 14336, 32000, 4096, window=4096),
    "t5_small": _t5("T5 small, Raffel et al. 2020", 6, 512, 8, 64, 2048),
    "t5_base": _t5("T5 base, Raffel et al. 2020", 12, 768, 12, 64, 3072),
    "switch_xl_4": _t5("Switch transformer XL with 4 experts, Fedus et al. 2022", 24, 1024, 32, 128, 16384, experts=4),
    "transformer": ZooEntry("transformer", "transformer", "Translation transformer, base, Vaswani et al. 2017"),
    "transformer_big": ZooEntry(
        "transformer", "transformer", "Translation transformer, big, Vaswani et al. 2017", _BIG
    ),
    "transformer_multi30k": ZooEntry(
        "transformer", "transformer", "Translation transformer, base, on Multi30k", {"vocabulary": 3149}
    ),
    "transformer_xl_base": ZooEntry(
        "transformer_xl", "transformer_xl", "Transformer-XL base in NVIDIA's sizes, Dai et al. 2019"
    ),
    "transformer_xl_large": ZooEntry("transformer_xl", "transformer_xl", "Transformer-XL large, Dai et al. 2019", _XL),
    "transformer_algoperf": ZooEntry(
        "transformer", "transformer", "Translation transformer of AlgoPerf, WMT'17, Dahl et al. 2023", _WMT
    ),
    "conformer_algoperf": ZooEntry("speech", "conformer", "Conformer of AlgoPerf, Gulati et al. 2020"),
    "conformer_algoperf_layernorm": ZooEntry(
        "speech", "conformer", "Conformer of AlgoPerf with layer norms, Gulati et al. 2020", {"norm": "layer"}
    ),
    "deepspeech_algoperf": ZooEntry("speech", "deepspeech", "Deep Speech of AlgoPerf, Dahl et al. 2023"),
    "dit_xl_2": ZooEntry(
        "diffusion_transformer",
        "diffusion_transformer",
        "DiT-XL/2, Peebles & Xie 2023",
        {"layers": 28, "width": 1152, "heads": 16},
    ),
    "deepspeech2": ZooEntry("recurrent", "deepspeech2", "Deep Speech 2, Amodei et al. 2016"),
    "gnmt": ZooEntry("recurrent", "gnmt", "GNMT v2, Wu et al. 2016"),
    "lstm_lm": _LSTM,
    "lstm": _LSTM,
    "lstm_wikitext2": ZooEntry(
        "recurrent",
        "lstm_lm",
        "PyTorch's word-language-model example on WikiText-2",
        {"width": 200, "vocabulary": 33278},
    ),
    "dlrm": ZooEntry("dlrm", "dlrm", "DLRM on Criteo Kaggle, Naumov et al. 2019"),
    "dlrm_mlperf": ZooEntry("dlrm", "dlrm_terabyte", "DLRM on Criteo Terabyte as in MLPerf, Naumov et al. 2019"),
    "dlrm_algoperf": ZooEntry("dlrm", "dlrm_one_table", "DLRM of AlgoPerf, small, on Criteo 1TB, Dahl et al. 2023"),
    "ncf": ZooEntry("dlrm", "ncf", "Neural collaborative filtering on MovieLens-20M, He et al. 2017"),
    "ncf_ml1m": ZooEntry("dlrm", "ncf", "Neural collaborative filtering on MovieLens-1M, He et al. 2017", _ML1M),
}
