"""Language models of the Hub beyond those of the zoo, by id: their sizes, published parameters (a shared table counted
once), and other ids of the same network.

Sizes are those of each `config.json` (https://huggingface.co/ID/blob/main/config.json).
"""

from collections.abc import Mapping

from epochcast.describe.capture.zoo.entry import ZooEntry
from epochcast.describe.capture.zoo.language_models import GEMMA3, decoder_entry, parallel_entry
from epochcast.describe.capture.zoo.moe import Mixture

Row = tuple[str | ZooEntry, int, tuple[str, ...]]


def _qwen15(
    size: str, layers: int, width: int, heads: int, ffn: int, *, kv_heads: int = 0, tied: bool = False
) -> ZooEntry:
    vocabulary = 151936 if size in ("0.5B", "1.8B", "4B", "7B") else 152064
    title = f"Qwen1.5 {size}, Bai et al. 2023"
    return decoder_entry(title, layers, width, heads, kv_heads or heads, ffn, vocabulary, qkv_bias=True, tied=tied)


def _falcon3(size: str, layers: int, width: int, heads: int, ffn: int) -> ZooEntry:
    return decoder_entry(f"Falcon 3 {size}, TII 2024", layers, width, heads, 4, ffn, 131072, head_width=256)


def _t5(title: str, layers: int, width: int, heads: int, ffn: int, **more: object) -> ZooEntry:
    sizes = {"layers": layers, "width": width, "heads": heads, "head_width": 64, "ffn": ffn}
    return ZooEntry("t5", "t5", title, {**sizes, **more})


def _bloom(width: int, layers: int, heads: int) -> str:
    return f"hf:BloomConfig(vocab_size=250880, hidden_size={width}, n_layer={layers}, n_head={heads})"


def _deberta(layers: int, width: int, heads: int) -> str:
    return (
        f"hf:DebertaV2Config(vocab_size=128100, hidden_size={width}, num_hidden_layers={layers}, "
        f"num_attention_heads={heads}, intermediate_size={4 * width}, relative_attention=True, position_buckets=256, "
        "norm_rel_ebd='layer_norm', share_att_key=True, pos_att_type=['p2c', 'c2p'], max_position_embeddings=512, "
        "type_vocab_size=0, position_biased_input=False, max_relative_positions=-1)"
    )


_MISTRAL = "Mistral AI"
_LLAMA = "Touvron et al. 2023"
_CODE = "Code Llama {}, Rozière et al. 2023"
_YI = "Yi {}, 01.AI 2024"
_DEEPSEEK = "DeepSeek {}, 2024"

TEXTS: Mapping[str, Row] = {
    "openai/gpt-oss-20b": ("gpt_oss_20b", 20_914_757_184, ()),
    "openai/gpt-oss-120b": ("gpt_oss_120b", 116_829_156_672, ()),
    "deepseek-ai/DeepSeek-V3": (
        "deepseek_v3",
        671_026_404_352,
        ("deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-V3-Base", "deepseek-ai/DeepSeek-V3.1"),
    ),
    # Llama and its kin
    "huggyllama/llama-30b": (
        decoder_entry(f"Llama 30B, {_LLAMA}", 60, 6656, 52, 52, 17920, 32000, context=2048),
        32_528_943_616,
        (),
    ),
    "huggyllama/llama-65b": (
        decoder_entry(f"Llama 65B, {_LLAMA}", 80, 8192, 64, 64, 22016, 32000, context=2048),
        65_285_660_672,
        (),
    ),
    "openlm-research/open_llama_3b": (
        decoder_entry("OpenLLaMA 3B, Geng & Liu 2023", 26, 3200, 32, 32, 8640, 32000, context=2048),
        3_426_473_600,
        ("openlm-research/open_llama_3b_v2",),
    ),
    "codellama/CodeLlama-7b-hf": (
        decoder_entry(_CODE.format("7B"), 32, 4096, 32, 32, 11008, 32016),
        6_738_546_688,
        ("codellama/CodeLlama-7b-Instruct-hf", "meta-llama/CodeLlama-7b-hf", "meta-llama/CodeLlama-7b-Instruct-hf"),
    ),
    "codellama/CodeLlama-13b-hf": (
        decoder_entry(_CODE.format("13B"), 40, 5120, 40, 40, 13824, 32016),
        13_016_028_160,
        ("codellama/CodeLlama-13b-Instruct-hf", "meta-llama/CodeLlama-13b-hf", "meta-llama/CodeLlama-13b-Instruct-hf"),
    ),
    "codellama/CodeLlama-34b-hf": (
        decoder_entry(_CODE.format("34B"), 48, 8192, 64, 8, 22016, 32000),
        33_743_970_304,
        ("codellama/CodeLlama-34b-Instruct-hf", "codellama/CodeLlama-34b-Python-hf", "meta-llama/CodeLlama-34b-hf"),
    ),
    "codellama/CodeLlama-70b-hf": (
        decoder_entry(_CODE.format("70B"), 80, 8192, 64, 8, 28672, 32016),
        68_976_910_336,
        ("codellama/CodeLlama-70b-Instruct-hf", "meta-llama/CodeLlama-70b-hf"),
    ),
    "01-ai/Yi-6B": (
        decoder_entry(_YI.format("6B"), 32, 4096, 32, 4, 11008, 64000),
        6_061_035_520,
        ("01-ai/Yi-6B-Chat", "01-ai/Yi-1.5-6B", "01-ai/Yi-1.5-6B-Chat"),
    ),
    "01-ai/Yi-9B": (
        decoder_entry(_YI.format("9B"), 48, 4096, 32, 4, 11008, 64000),
        8_829_407_232,
        ("01-ai/Yi-1.5-9B", "01-ai/Yi-1.5-9B-Chat", "01-ai/Yi-Coder-9B", "01-ai/Yi-Coder-9B-Chat"),
    ),
    "01-ai/Yi-34B": (
        decoder_entry(_YI.format("34B"), 60, 7168, 56, 8, 20480, 64000),
        34_388_917_248,
        ("01-ai/Yi-34B-Chat", "01-ai/Yi-1.5-34B", "01-ai/Yi-1.5-34B-Chat", "01-ai/Yi-34B-200K"),
    ),
    "deepseek-ai/deepseek-llm-7b-base": (
        decoder_entry(_DEEPSEEK.format("LLM 7B"), 30, 4096, 32, 32, 11008, 102400),
        6_910_365_696,
        (
            "deepseek-ai/deepseek-llm-7b-chat",
            "deepseek-ai/deepseek-math-7b-base",
            "deepseek-ai/deepseek-math-7b-instruct",
        ),
    ),
    "deepseek-ai/deepseek-coder-1.3b-base": (
        decoder_entry(_DEEPSEEK.format("Coder 1.3B"), 24, 2048, 16, 16, 5504, 32256),
        1_346_471_936,
        ("deepseek-ai/deepseek-coder-1.3b-instruct",),
    ),
    "deepseek-ai/deepseek-coder-6.7b-base": (
        decoder_entry(_DEEPSEEK.format("Coder 6.7B"), 32, 4096, 32, 32, 11008, 32256),
        6_740_512_768,
        ("deepseek-ai/deepseek-coder-6.7b-instruct",),
    ),
    "deepseek-ai/deepseek-coder-33b-base": (
        decoder_entry(_DEEPSEEK.format("Coder 33B"), 62, 7168, 56, 8, 19200, 32256),
        33_342_991_360,
        ("deepseek-ai/deepseek-coder-33b-instruct",),
    ),
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B": (
        decoder_entry("DeepSeek-R1 into Qwen2.5 1.5B, 2025", 28, 1536, 12, 2, 8960, 151936, qkv_bias=True),
        1_777_088_000,
        (),
    ),
    "baichuan-inc/Baichuan-7B": (decoder_entry("Baichuan 7B, 2023", 32, 4096, 32, 32, 11008, 64000), 7_000_559_616, ()),
    "baichuan-inc/Baichuan2-7B-Base": (
        decoder_entry("Baichuan 2 7B, Yang et al. 2023", 32, 4096, 32, 32, 11008, 125696),
        7_505_973_248,
        ("baichuan-inc/Baichuan2-7B-Chat",),
    ),
    "internlm/internlm2-1_8b": (
        decoder_entry("InternLM2 1.8B, Cai et al. 2024", 24, 2048, 16, 8, 8192, 92544),
        1_889_110_016,
        ("internlm/internlm2-chat-1_8b", "internlm/internlm2_5-1_8b", "internlm/internlm2_5-1_8b-chat"),
    ),
    "internlm/internlm2-7b": (
        decoder_entry("InternLM2 7B, Cai et al. 2024", 32, 4096, 32, 8, 14336, 92544),
        7_737_708_544,
        ("internlm/internlm2-chat-7b", "internlm/internlm2_5-7b", "internlm/internlm2_5-7b-chat"),
    ),
    "internlm/internlm2-20b": (
        decoder_entry("InternLM2 20B, Cai et al. 2024", 48, 6144, 48, 8, 16384, 92544),
        19_861_149_696,
        ("internlm/internlm2-chat-20b", "internlm/internlm2_5-20b", "internlm/internlm2_5-20b-chat"),
    ),
    "upstage/SOLAR-10.7B-v1.0": (
        decoder_entry("SOLAR 10.7B, Kim et al. 2023", 48, 4096, 32, 8, 14336, 32000),
        10_731_524_096,
        ("upstage/SOLAR-10.7B-Instruct-v1.0",),
    ),
    "THUDM/glm-4-9b-hf": (
        decoder_entry("GLM-4 9B, GLM Team 2024", 40, 4096, 32, 2, 13696, 151552, qkv_bias=True),
        9_399_951_360,
        (
            "THUDM/glm-4-9b-chat-hf",
            "zai-org/glm-4-9b-hf",
            "zai-org/glm-4-9b-chat-hf",
            "THUDM/glm-4-9b",
            "THUDM/glm-4-9b-chat",
        ),
    ),
    "HuggingFaceTB/SmolLM3-3B": (
        decoder_entry("SmolLM3 3B, Hugging Face 2025", 36, 2048, 16, 4, 11008, 128256, tied=True),
        3_075_098_624,
        ("HuggingFaceTB/SmolLM3-3B-Base",),
    ),
    "ibm-granite/granite-3.0-2b-base": (
        decoder_entry("Granite 3 2B, IBM 2024", 40, 2048, 32, 8, 8192, 49155, tied=True),
        2_533_531_648,
        (
            "ibm-granite/granite-3.0-2b-instruct",
            "ibm-granite/granite-3.1-2b-base",
            "ibm-granite/granite-3.1-2b-instruct",
        ),
    ),
    "ibm-granite/granite-3.0-8b-base": (
        decoder_entry("Granite 3 8B, IBM 2024", 40, 4096, 32, 8, 12800, 49155, tied=True),
        8_170_848_256,
        (
            "ibm-granite/granite-3.0-8b-instruct",
            "ibm-granite/granite-3.1-8b-base",
            "ibm-granite/granite-3.1-8b-instruct",
        ),
    ),
    "tiiuae/Falcon3-1B-Base": (_falcon3("1B", 18, 2048, 8, 8192), 1_669_408_768, ("tiiuae/Falcon3-1B-Instruct",)),
    "tiiuae/Falcon3-3B-Base": (_falcon3("3B", 22, 3072, 12, 9216), 3_227_655_168, ("tiiuae/Falcon3-3B-Instruct",)),
    "tiiuae/Falcon3-7B-Base": (_falcon3("7B", 28, 3072, 12, 23040), 7_455_550_464, ("tiiuae/Falcon3-7B-Instruct",)),
    "tiiuae/Falcon3-10B-Base": (_falcon3("10B", 40, 3072, 12, 23040), 10_305_653_760, ("tiiuae/Falcon3-10B-Instruct",)),
    # Mistral
    "mistralai/Mistral-Small-24B-Base-2501": (
        decoder_entry(f"Mistral Small 24B, {_MISTRAL} 2025", 40, 5120, 32, 8, 32768, 131072, head_width=128),
        23_572_403_200,
        ("mistralai/Mistral-Small-24B-Instruct-2501",),
    ),
    "mistralai/Mistral-Small-Instruct-2409": (
        decoder_entry(f"Mistral Small 22B, {_MISTRAL} 2024", 56, 6144, 48, 8, 16384, 32768),
        22_247_282_688,
        ("mistralai/Codestral-22B-v0.1",),
    ),
    "mistralai/Mistral-Large-Instruct-2407": (
        decoder_entry(f"Mistral Large, {_MISTRAL} 2024", 88, 12288, 96, 8, 28672, 32768),
        122_610_069_504,
        ("mistralai/Mistral-Large-Instruct-2411",),
    ),
    "mistralai/Mixtral-8x22B-v0.1": (
        decoder_entry(f"Mixtral 8x22B, {_MISTRAL} 2024", 56, 6144, 48, 8, 16384, 32000, mixture=Mixture(8, 2, 16384)),
        140_620_634_112,
        ("mistral-community/Mixtral-8x22B-v0.1", "mixtral-8x22b"),
    ),
    "teknium/OpenHermes-2.5-Mistral-7B": (
        decoder_entry("Mistral 7B with two more tokens", 32, 4096, 32, 8, 14336, 32002),
        7_241_748_480,
        ("NousResearch/Nous-Hermes-2-Mistral-7B-DPO", "teknium/OpenHermes-2-Mistral-7B"),
    ),
    # Phi
    "microsoft/Phi-3-medium-4k-instruct": (
        decoder_entry("Phi-3 medium, Abdin et al. 2024", 40, 5120, 40, 10, 17920, 32064, packed=True),
        13_960_238_080,
        ("microsoft/Phi-3-medium-128k-instruct",),
    ),
    "microsoft/Phi-4-mini-instruct": (
        decoder_entry("Phi-4 mini, Abouelenin et al. 2025", 32, 3072, 24, 8, 8192, 200064, tied=True, packed=True),
        3_836_021_760,
        ("microsoft/Phi-4-mini-reasoning",),
    ),
    # Qwen1.5, Gemma
    "Qwen/Qwen1.5-0.5B": (_qwen15("0.5B", 24, 1024, 16, 2816, tied=True), 463_987_712, ("Qwen/Qwen1.5-0.5B-Chat",)),
    "Qwen/Qwen1.5-1.8B": (_qwen15("1.8B", 24, 2048, 16, 5504), 1_836_828_672, ("Qwen/Qwen1.5-1.8B-Chat",)),
    "Qwen/Qwen1.5-4B": (_qwen15("4B", 40, 2560, 20, 6912), 3_950_369_280, ("Qwen/Qwen1.5-4B-Chat",)),
    "Qwen/Qwen1.5-7B": (_qwen15("7B", 32, 4096, 32, 11008), 7_721_324_544, ("Qwen/Qwen1.5-7B-Chat",)),
    "Qwen/Qwen1.5-14B": (_qwen15("14B", 40, 5120, 40, 13696), 14_167_290_880, ("Qwen/Qwen1.5-14B-Chat",)),
    "Qwen/Qwen1.5-32B": (_qwen15("32B", 64, 5120, 40, 27392, kv_heads=8), 32_512_218_112, ("Qwen/Qwen1.5-32B-Chat",)),
    "Qwen/Qwen1.5-72B": (_qwen15("72B", 80, 8192, 64, 24576), 72_287_920_128, ("Qwen/Qwen1.5-72B-Chat",)),
    "google/gemma-3-270m": (
        decoder_entry("Gemma 3 270M, Gemma Team 2025", 18, 640, 4, 1, 2048, 262144, **GEMMA3),
        268_098_176,
        ("google/gemma-3-270m-it",),
    ),
    # GPT-NeoX, BLOOM, T5
    "EleutherAI/pythia-14m": (
        parallel_entry("Pythia 14M, Biderman et al. 2023", 6, 128, 4, 50304, rotary_width=8),
        14_067_712,
        ("EleutherAI/pythia-14m-deduped",),
    ),
    "EleutherAI/pythia-31m": (
        parallel_entry("Pythia 31M, Biderman et al. 2023", 6, 256, 8, 50304, rotary_width=8),
        30_494_720,
        ("EleutherAI/pythia-31m-deduped",),
    ),
    "bigscience/bloom-1b1": (_bloom(1536, 24, 16), 1_065_314_304, ("bigscience/bloomz-1b1",)),
    "bigscience/bloom-1b7": (_bloom(2048, 24, 16), 1_722_408_960, ("bigscience/bloomz-1b7",)),
    "bigscience/bloom-3b": (_bloom(2560, 30, 32), 3_002_557_440, ("bigscience/bloomz-3b",)),
    "google-t5/t5-11b": (_t5("T5 11B, Raffel et al. 2020", 24, 1024, 128, 65536, head_width=128), 11_307_321_344, ()),
    "google/flan-t5-small": (
        _t5("Flan-T5 small (T5 1.1), Chung et al. 2022", 8, 512, 6, 1024, gated=True),
        76_961_152,
        ("google/t5-v1_1-small",),
    ),
    "google/flan-t5-xxl": (
        _t5("Flan-T5 XXL (T5 1.1), Chung et al. 2022", 24, 4096, 64, 10240, gated=True),
        11_135_332_352,
        ("google/t5-v1_1-xxl",),
    ),
    "google/mt5-small": (
        _t5("mT5 small, Xue et al. 2021", 8, 512, 6, 1024, gated=True, vocabulary=250112),
        300_176_768,
        (),
    ),
    "google/mt5-base": (
        _t5("mT5 base, Xue et al. 2021", 12, 768, 12, 2048, gated=True, vocabulary=250112),
        582_401_280,
        (),
    ),
    "google/mt5-large": (
        _t5("mT5 large, Xue et al. 2021", 24, 1024, 16, 2816, gated=True, vocabulary=250112),
        1_229_581_312,
        (),
    ),
    # encoders, trained for masked words
    "google-bert/bert-base-chinese": ("hf:BertConfig(vocab_size=21128)", 102_290_312, ("hfl/chinese-bert-wwm-ext",)),
    "google-bert/bert-base-german-cased": ("hf:BertConfig(vocab_size=30000)", 109_112_880, ()),
    "google-bert/bert-base-multilingual-uncased": ("hf:BertConfig(vocab_size=105879)", 167_463_831, ()),
    "allenai/scibert_scivocab_uncased": ("hf:BertConfig(vocab_size=31090)", 109_951_090, ()),
    "distilbert/distilbert-base-cased": ("hf:DistilBertConfig(vocab_size=28996)", 65_812_036, ()),
    "distilbert/distilbert-base-multilingual-cased": ("hf:DistilBertConfig(vocab_size=119547)", 135_445_755, ()),
    "almanach/camembert-base": (
        "hf:RobertaConfig(max_position_embeddings=514, type_vocab_size=1, vocab_size=32005)",
        110_655_493,
        ("camembert-base",),
    ),
    "microsoft/deberta-v3-xsmall": (_deberta(12, 384, 6), 70_958_820, ()),
    "microsoft/deberta-v3-small": (_deberta(6, 768, 12), 142_024_548, ()),
    "answerdotai/ModernBERT-base": ("hf:ModernBertConfig", 149_655_232, ()),
}
