"""Names that people type, and the models of the Hugging Face Hub that are known without asking it.

    ResNet-50, gpt2-medium, ViT-B/16       the zoo's resnet50, gpt2_medium, vit_b_16
    meta-llama/Llama-3.1-8B                a Hub id; its part behind the slash will do: Llama-3.1-8B

Case and punctuation do not count, except that digits stay apart: Qwen2.5-7B is not Qwen2-57B. A Hub id means the
network of its `config.json` (https://huggingface.co/ID/blob/main/config.json), trained for what that names.
`parameters` are those published with it, a shared table counted once; tests hold what is built against them. Nothing
is downloaded.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from epochcast.base.caching import remembered
from epochcast.describe.capture.hub_ids import OTHER_IDS
from epochcast.describe.capture.hub_media import MEDIA
from epochcast.describe.capture.hub_names import UnknownHubId, originals, plain
from epochcast.describe.capture.hub_texts import TEXTS
from epochcast.describe.capture.model import BuiltModel, Model, Renamed
from epochcast.describe.capture.model_reference import CONFIG
from epochcast.describe.capture.sample_contents import PLAIN, SampleContents
from epochcast.describe.capture.zoo import ZOO, zoo_model
from epochcast.describe.capture.zoo.entry import ZooEntry
from epochcast.describe.capture.zoo.hub_sizes import SIZED
from epochcast.errors import AmbiguousName, UnknownModel, UnknownName

LEAST_LETTERS, MOST_CHOICES = 2, 8
"""The beginning of a name of so many letters could be any model that begins so; the message lists so many."""


@dataclass(frozen=True, slots=True)
class HubModel:
    """What a Hub id is here: a name of the zoo, an `hf:` reference, or an entry with sizes of its own.

    `aliases` are other ids of the same network, such as its tuned versions.
    """

    model: str | ZooEntry
    parameters: int
    aliases: tuple[str, ...] = ()
    note: str = ""

    @property
    def reference(self) -> str:
        """The zoo's name or the `hf:` reference; empty where the sizes are its own."""
        return self.model if isinstance(self.model, str) else ""

    @property
    def is_captured(self) -> bool:
        """Whether transformers builds it."""
        return self.reference.startswith(f"{CONFIG}:")


def typed_model(
    name: str,
    input_shape: tuple[int, ...] | None = None,
    *,
    aux: bool = True,
    contents: SampleContents = PLAIN,
) -> Model:
    """The model that a name means; raises with the near names, or with all that it could be."""
    meant = _meaning(name)
    hub_model = HUB.get(meant)
    if hub_model is None or meant in ZOO or not hub_model.is_captured:
        contents.check_taken((), meant)
    if hub_model is None or meant in ZOO:
        return zoo_model(meant, input_shape, aux=aux)
    if hub_model.reference in ZOO:
        model: Model = zoo_model(hub_model.reference, input_shape, aux=aux)
    elif isinstance(hub_model.model, ZooEntry):
        return BuiltModel(meant, partial(hub_model.model.build, meant, input_shape=input_shape))
    else:
        from epochcast.describe.capture.hf import load_hf

        model = load_hf(hub_model.reference, input_shape, contents)
    notes = (hub_model.note,) if hub_model.note else ()
    return Renamed(meant, model, (*notes, *_uploaded_again(name, meant)))


def _uploaded_again(name: str, meant: str) -> tuple[str, ...]:
    """What to tell of a name that is known only by a like one."""
    is_known = name in HUB or plain(name) in _index()
    return () if is_known else (f"{name} is taken as {meant}, by its name; hf:config.json is exact",)


def is_hub_id(name: str) -> bool:
    """Whether a name is a known id of the Hub (gpt2, meta-llama/Llama-3.1-8B), and nothing on this disk."""
    try:
        if Path(name).exists():
            return False
    except (OSError, ValueError):  # too long, or with a zero byte: no file is called that
        return False
    if any(candidate in HUB for candidate in _index().get(plain(name), ())) or plain(name) in _hub_spellings():
        return True
    return "/" in name and bool(_original(name))


def network_of(name: str) -> str:
    """The network of the zoo that a name or Hub id means; empty where it means none."""
    try:
        meant = _meaning(name)
    except (UnknownName, AmbiguousName):
        return ""
    return meant if meant in ZOO else HUB[meant].reference


def is_built(name: str) -> bool:
    """Whether the network that a name means is built here, and not captured."""
    if name in ZOO:
        return True
    try:
        hub_model = HUB.get(_meaning(name))
    except (UnknownName, AmbiguousName):
        return False
    return hub_model is None or not hub_model.is_captured


def is_known(name: str) -> bool:
    """Whether it means a network of the zoo or of the Hub."""
    return name in ZOO or plain(name) in _index()


@remembered(1)
def _hub_spellings() -> frozenset[str]:
    """Plain ids of the Hub that are names of the zoo, too."""
    return frozenset(spelling for hub_id in HUB for spelling in _spellings(ids_of(hub_id)))


def ids_of(hub_id: str) -> tuple[str, ...]:
    """An id and the others of the same network."""
    return (hub_id, *HUB[hub_id].aliases, *OTHER_IDS.get(hub_id, ()))


def _meaning(name: str) -> str:
    """A name of the zoo or a Hub id."""
    if name in ZOO or name in HUB:
        return name
    key = plain(name)
    meanings = _index().get(key, ())
    if len(meanings) == 1:
        return meanings[0]
    original = _original(name)
    if original:
        return original
    meanings = meanings or _beginning(key)
    if meanings:
        raise AmbiguousName("model", name, meanings)
    names = {*ZOO, *(hub_id.rpartition("/")[2] for hub_id in HUB)}
    raise UnknownHubId(name, names) if "/" in name else UnknownModel(name, names)


def _original(name: str) -> str:
    """The model that another has uploaded again, or quantised, under a like name; empty where none is known."""
    for candidate in originals(name):
        meanings = _index().get(plain(candidate), ())
        if len(meanings) == 1:
            return meanings[0]
    return ""


def _beginning(key: str) -> tuple[str, ...]:
    """The shortest names of a family: those that begin so, where no number is cut off. An id that is a model of the zoo
    has that one's name already.
    """
    if len(key) < LEAST_LETTERS:
        return ()
    begins = re.compile(re.escape(key) + (r"(?!\d)" if key[-1].isdigit() else ""))
    names = {name for spelling, spelled in _index().items() if begins.match(spelling) for name in spelled}
    distinct = {name for name in names if name in ZOO or HUB[name].reference not in names}
    return tuple(sorted(distinct, key=lambda name: (len(name), name))[:MOST_CHOICES])


@remembered(1)
def _index() -> Mapping[str, tuple[str, ...]]:
    """What plain names mean. A name of the zoo comes before a Hub id of the same name."""
    meanings: dict[str, dict[str, None]] = {}
    for name in ZOO:
        meanings.setdefault(plain(name), {})[name] = None
    of_zoo = frozenset(meanings)
    for hub_id in HUB:
        for spelling in _spellings(ids_of(hub_id)):
            if spelling not in of_zoo:
                meanings.setdefault(spelling, {})[hub_id] = None
    return {name: tuple(those) for name, those in meanings.items()}


def _spellings(ids: Iterable[str]) -> set[str]:
    """Plain ids, with and without who publishes them."""
    return {plain(part) for hub_id in ids for part in (hub_id, hub_id.rpartition("/")[2])}


def _bert(head: str) -> str:
    return f"trained for masked words, as its configuration says; to classify texts, {head}_classification"


def _roberta(**sizes: int) -> str:
    arguments = ", ".join(f"{name}={value}" for name, value in sizes.items())
    return f"hf:RobertaConfig(max_position_embeddings=514, type_vocab_size=1, {arguments})"


def _bloom(width: int, layers: int, heads: int) -> str:
    return f"hf:BloomConfig(vocab_size=250880, hidden_size={width}, n_layer={layers}, n_head={heads})"


def _neo(width: int, layers: int, heads: int) -> str:
    kinds = f"attention_types=[[['global', 'local'], {layers // 2}]]"
    return f"hf:GPTNeoConfig(hidden_size={width}, num_layers={layers}, num_heads={heads}, {kinds})"


_DEBERTA = (
    "hf:DebertaV2Config(vocab_size=128100, hidden_size={width}, num_hidden_layers={layers}, "
    "num_attention_heads={heads}, intermediate_size={ffn}, relative_attention=True, position_buckets=256, "
    "norm_rel_ebd='layer_norm', share_att_key=True, pos_att_type=['p2c', 'c2p'], max_position_embeddings=512, "
    "type_vocab_size=0, position_biased_input=False, max_relative_positions=-1)"
)
_BART = "hf:BartConfig(d_model=768, encoder_layers=6, decoder_layers=6, encoder_attention_heads=12, "
_PAIRS = "both towers; the loss between all pairs of a batch is left out"
UNET_NOTE = "the U-Net alone: text encoder and autoencoder are frozen, their results taken as computed beforehand"
_SENTENCES = "the body alone: what is trained on its output is yours to add"

HUB: Mapping[str, HubModel] = {
    **{hub_id: HubModel(reference, count, aliases) for hub_id, (reference, count, aliases) in MEDIA.items()},
    # encoders
    "google-bert/bert-base-uncased": HubModel("bert_base_mlm", 109_514_298, note=_bert("bert_base")),
    "google-bert/bert-large-uncased": HubModel("bert_large_mlm", 335_174_458, note=_bert("bert_large")),
    "google-bert/bert-base-cased": HubModel("hf:BertConfig(vocab_size=28996)", 108_340_804),
    "google-bert/bert-large-cased": HubModel(
        "hf:BertConfig(vocab_size=28996, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, "
        "intermediate_size=4096)",
        333_610_308,
    ),
    "google-bert/bert-base-multilingual-cased": HubModel("hf:BertConfig(vocab_size=119547)", 177_974_523),
    "FacebookAI/roberta-base": HubModel(_roberta(vocab_size=50265), 124_697_433),
    "FacebookAI/roberta-large": HubModel(
        _roberta(
            vocab_size=50265, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096
        ),
        355_412_057,
    ),
    "FacebookAI/xlm-roberta-base": HubModel(_roberta(vocab_size=250002), 278_295_186),
    "FacebookAI/xlm-roberta-large": HubModel(
        _roberta(
            vocab_size=250002, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096
        ),
        560_142_482,
    ),
    "distilbert/distilbert-base-uncased": HubModel("hf:DistilBertConfig", 66_985_530),
    "distilbert/distilroberta-base": HubModel(_roberta(vocab_size=50265, num_hidden_layers=6), 82_170_201),
    "albert/albert-base-v2": HubModel(
        "hf:AlbertConfig(hidden_size=768, num_attention_heads=12, intermediate_size=3072)", 11_221_680
    ),
    "google/electra-base-discriminator": HubModel(
        "hf:ElectraConfig(embedding_size=768, hidden_size=768, num_attention_heads=12, intermediate_size=3072)",
        109_514_298,
        note="trained for masked words here; its own loss tells replaced words from true ones",
    ),
    "microsoft/deberta-v3-base": HubModel(_DEBERTA.format(width=768, layers=12, heads=12, ffn=3072), 184_551_780),
    "microsoft/deberta-v3-large": HubModel(_DEBERTA.format(width=1024, layers=24, heads=16, ffn=4096), 435_191_908),
    "sentence-transformers/all-MiniLM-L6-v2": HubModel(SIZED["minilm_l6"], 22_713_216, note=_SENTENCES),
    "BAAI/bge-small-en-v1.5": HubModel(SIZED["minilm_l12"], 33_360_000, note=_SENTENCES),
    "BAAI/bge-base-en-v1.5": HubModel("bert_base", 109_482_240, note=_SENTENCES),
    "BAAI/bge-large-en-v1.5": HubModel("bert_large", 335_141_888, note=_SENTENCES),
    # encoders with decoders
    "google-t5/t5-small": HubModel("t5_small", 60_506_624),
    "google-t5/t5-base": HubModel("t5_base", 222_903_552),
    "google-t5/t5-large": HubModel(SIZED["t5_large"], 737_668_096),
    "google-t5/t5-3b": HubModel(SIZED["t5_3b"], 2_851_598_336),
    "google/flan-t5-base": HubModel(SIZED["flan_t5_base"], 247_577_856, ("google/t5-v1_1-base",)),
    "google/flan-t5-large": HubModel(SIZED["flan_t5_large"], 783_150_080, ("google/t5-v1_1-large",)),
    "google/flan-t5-xl": HubModel(SIZED["flan_t5_xl"], 2_849_757_184, ("google/t5-v1_1-xl",)),
    "facebook/bart-base": HubModel(
        f"{_BART}decoder_attention_heads=12, encoder_ffn_dim=3072, decoder_ffn_dim=3072)", 139_420_416
    ),
    "facebook/bart-large": HubModel(
        "hf:BartConfig", 406_291_456, ("facebook/bart-large-cnn", "facebook/bart-large-mnli")
    ),
    # decoders
    "openai-community/gpt2": HubModel("gpt2", 124_439_808),
    "openai-community/gpt2-medium": HubModel("gpt2_medium", 354_823_168),
    "openai-community/gpt2-large": HubModel("gpt2_large", 774_030_080),
    "openai-community/gpt2-xl": HubModel("gpt2_xl", 1_557_611_200),
    "distilbert/distilgpt2": HubModel(SIZED["distilgpt2"], 81_912_576),
    "facebook/opt-125m": HubModel("opt_125m", 125_239_296),
    "facebook/opt-350m": HubModel(
        "hf:OPTConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, ffn_dim=4096, "
        "word_embed_proj_dim=512, do_layer_norm_before=False)",
        331_196_416,
    ),
    "facebook/opt-1.3b": HubModel("opt_1_3b", 1_315_758_080),
    "facebook/opt-2.7b": HubModel("opt_2_7b", 2_651_596_800),
    "facebook/opt-6.7b": HubModel(SIZED["opt_6_7b"], 6_658_473_984),
    "facebook/opt-13b": HubModel(SIZED["opt_13b"], 12_853_473_280),
    "EleutherAI/pythia-70m": HubModel(SIZED["pythia_70m"], 70_426_624, ("EleutherAI/pythia-70m-deduped",)),
    "EleutherAI/pythia-160m": HubModel(SIZED["pythia_160m"], 162_322_944, ("EleutherAI/pythia-160m-deduped",)),
    "EleutherAI/pythia-410m": HubModel(SIZED["pythia_410m"], 405_334_016, ("EleutherAI/pythia-410m-deduped",)),
    "EleutherAI/pythia-1b": HubModel("pythia_1b", 1_011_781_632, ("EleutherAI/pythia-1b-deduped",)),
    "EleutherAI/pythia-1.4b": HubModel(SIZED["pythia_1_4b"], 1_414_647_808, ("EleutherAI/pythia-1.4b-deduped",)),
    "EleutherAI/pythia-2.8b": HubModel("pythia_2_8b", 2_775_208_960, ("EleutherAI/pythia-2.8b-deduped",)),
    "EleutherAI/pythia-6.9b": HubModel(SIZED["pythia_6_9b"], 6_857_302_016, ("EleutherAI/pythia-6.9b-deduped",)),
    "EleutherAI/pythia-12b": HubModel(SIZED["pythia_12b"], 11_846_072_320, ("EleutherAI/pythia-12b-deduped",)),
    "EleutherAI/gpt-neox-20b": HubModel(SIZED["gpt_neox_20b"], 20_554_567_680),
    "EleutherAI/gpt-neo-125m": HubModel(_neo(768, 12, 12), 125_198_592),
    "EleutherAI/gpt-neo-1.3B": HubModel(_neo(2048, 24, 16), 1_315_575_808),
    "EleutherAI/gpt-neo-2.7B": HubModel(_neo(2560, 32, 20), 2_651_307_520),
    "EleutherAI/gpt-j-6b": HubModel("hf:GPTJConfig", 6_050_882_784),
    "bigscience/bloom-560m": HubModel(_bloom(1024, 24, 16), 559_214_592),
    "bigscience/bloom-7b1": HubModel(_bloom(4096, 30, 32), 7_069_016_064),
    "tiiuae/falcon-7b": HubModel("falcon_7b", 6_921_720_704, ("tiiuae/falcon-7b-instruct",)),
    "microsoft/phi-1_5": HubModel("phi_1_5", 1_418_270_720),
    "microsoft/phi-2": HubModel("phi_2", 2_779_683_840),
    "microsoft/Phi-3-mini-4k-instruct": HubModel(
        "phi3_mini", 3_821_079_552, ("microsoft/Phi-3-mini-128k-instruct", "microsoft/Phi-3.5-mini-instruct")
    ),
    "microsoft/phi-4": HubModel(SIZED["phi_4"], 14_659_507_200),
    "huggyllama/llama-7b": HubModel(SIZED["llama_7b"], 6_738_415_616, ("lmsys/vicuna-7b-v1.3",)),
    "meta-llama/Llama-2-7b-hf": HubModel(
        "llama2_7b",
        6_738_415_616,
        (
            "meta-llama/Llama-2-7b",
            "meta-llama/Llama-2-7b-chat-hf",
            "lmsys/vicuna-7b-v1.5",
            "NousResearch/Llama-2-7b-hf",
        ),
    ),
    "meta-llama/Llama-2-13b-hf": HubModel(
        "llama2_13b", 13_015_864_320, ("meta-llama/Llama-2-13b", "meta-llama/Llama-2-13b-chat-hf")
    ),
    "meta-llama/Llama-2-70b-hf": HubModel(
        "llama2_70b", 68_976_648_192, ("meta-llama/Llama-2-70b", "meta-llama/Llama-2-70b-chat-hf")
    ),
    "meta-llama/Meta-Llama-3-8B": HubModel(
        "llama3_8b", 8_030_261_248, ("meta-llama/Llama-3-8B", "meta-llama/Meta-Llama-3-8B-Instruct")
    ),
    "meta-llama/Meta-Llama-3-70B": HubModel(
        "llama3_70b", 70_553_706_496, ("meta-llama/Llama-3-70B", "meta-llama/Meta-Llama-3-70B-Instruct")
    ),
    "meta-llama/Llama-3.1-8B": HubModel(
        "llama3_1_8b",
        8_030_261_248,
        (
            "meta-llama/Llama-3.1-8B-Instruct",
            "meta-llama/Meta-Llama-3.1-8B",
            "meta-llama/Meta-Llama-3.1-8B-Instruct",
            "deepseek-ai/DeepSeek-R1-Distill-Llama-8B",
        ),
    ),
    "meta-llama/Llama-3.1-70B": HubModel(
        "llama3_70b",
        70_553_706_496,
        (
            "meta-llama/Llama-3.1-70B-Instruct",
            "meta-llama/Meta-Llama-3.1-70B",
            "meta-llama/Llama-3.3-70B-Instruct",
            "deepseek-ai/DeepSeek-R1-Distill-Llama-70B",
        ),
    ),
    "meta-llama/Llama-3.1-405B": HubModel("llama3_1_405b", 405_853_388_800, ("meta-llama/Llama-3.1-405B-Instruct",)),
    "meta-llama/Llama-3.2-1B": HubModel("llama3_2_1b", 1_235_814_400, ("meta-llama/Llama-3.2-1B-Instruct",)),
    "meta-llama/Llama-3.2-3B": HubModel("llama3_2_3b", 3_212_749_824, ("meta-llama/Llama-3.2-3B-Instruct",)),
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0": HubModel("tinyllama_1_1b", 1_100_048_384, ("TinyLlama/TinyLlama-1.1B",)),
    "HuggingFaceTB/SmolLM2-135M": HubModel(
        SIZED["smollm2_135m"], 134_515_008, ("HuggingFaceTB/SmolLM2-135M-Instruct",)
    ),
    "HuggingFaceTB/SmolLM2-360M": HubModel(
        SIZED["smollm2_360m"], 361_821_120, ("HuggingFaceTB/SmolLM2-360M-Instruct",)
    ),
    "HuggingFaceTB/SmolLM2-1.7B": HubModel(
        SIZED["smollm2_1_7b"], 1_711_376_384, ("HuggingFaceTB/SmolLM2-1.7B-Instruct",)
    ),
    "mistralai/Mistral-7B-v0.1": HubModel(
        "mistral_7b", 7_241_732_096, ("mistralai/Mistral-7B-Instruct-v0.1", "mistralai/Mistral-7B-Instruct-v0.2")
    ),
    "mistralai/Mistral-7B-v0.3": HubModel(
        SIZED["mistral_7b_v3"], 7_248_023_552, ("mistralai/Mistral-7B-Instruct-v0.3",)
    ),
    "mistralai/Mistral-Nemo-Base-2407": HubModel(
        SIZED["mistral_nemo"], 12_247_782_400, ("mistralai/Mistral-Nemo-Instruct-2407",)
    ),
    "mistralai/Mixtral-8x7B-v0.1": HubModel(
        SIZED["mixtral_8x7b"], 46_702_792_704, ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b")
    ),
    **{
        f"Qwen/Qwen2.5-{size}": HubModel(SIZED[f"qwen2_5_{key}"], parameters, (f"Qwen/Qwen2.5-{size}-Instruct", *more))
        for size, key, parameters, more in (
            ("0.5B", "0_5b", 494_032_768, ("Qwen/Qwen2-0.5B",)),
            ("1.5B", "1_5b", 1_543_714_304, ("Qwen/Qwen2-1.5B",)),
            ("3B", "3b", 3_085_938_688, ()),
            ("7B", "7b", 7_615_616_512, ("Qwen/Qwen2-7B", "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B")),
            ("14B", "14b", 14_770_033_664, ("deepseek-ai/DeepSeek-R1-Distill-Qwen-14B",)),
            ("32B", "32b", 32_763_876_352, ("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "Qwen/QwQ-32B")),
            ("72B", "72b", 72_706_203_648, ()),
        )
    },
    **{
        f"Qwen/Qwen3-{size}": HubModel(SIZED[f"qwen3_{key}"], parameters, (f"Qwen/Qwen3-{size}-Base",))
        for size, key, parameters in (
            ("0.6B", "0_6b", 596_049_920),
            ("1.7B", "1_7b", 1_720_574_976),
            ("4B", "4b", 4_022_468_096),
            ("8B", "8b", 8_190_735_360),
            ("14B", "14b", 14_768_307_200),
            ("32B", "32b", 32_762_123_264),
        )
    },
    "Qwen/Qwen3-30B-A3B": HubModel("qwen3_30b_a3b", 30_532_122_624, ("Qwen/Qwen3-30B-A3B-Instruct-2507",)),
    "Qwen/Qwen3-235B-A22B": HubModel("qwen3_235b_a22b", 235_093_634_560, ("Qwen/Qwen3-235B-A22B-Instruct-2507",)),
    "google/gemma-2b": HubModel("gemma_2b", 2_506_172_416, ("google/gemma-2b-it",)),
    "google/gemma-7b": HubModel("gemma_7b", 8_537_680_896, ("google/gemma-7b-it",)),
    "google/gemma-2-2b": HubModel("gemma2_2b", 2_614_341_888, ("google/gemma-2-2b-it",)),
    "google/gemma-2-9b": HubModel("gemma2_9b", 9_241_705_984, ("google/gemma-2-9b-it",)),
    "google/gemma-2-27b": HubModel(SIZED["gemma2_27b"], 27_227_128_320, ("google/gemma-2-27b-it",)),
    "google/gemma-3-1b-pt": HubModel(SIZED["gemma3_1b"], 999_885_952, ("google/gemma-3-1b-it", "google/gemma-3-1b")),
    # images
    "google/vit-base-patch16-224": HubModel(
        "vit_b_16", 86_567_656, ("google/vit-base-patch16-224-in21k", "facebook/deit-base-patch16-224")
    ),
    "google/vit-large-patch16-224": HubModel("vit_l_16", 304_326_632, ("google/vit-large-patch16-224-in21k",)),
    "microsoft/resnet-50": HubModel("resnet50", 25_557_032, ("timm/resnet50.a1_in1k",)),
    "microsoft/swin-tiny-patch4-window7-224": HubModel("swin_t", 28_288_354),
    "openai/clip-vit-base-patch32": HubModel("clip_vit_b_32", 151_277_313, note=_PAIRS),
    "openai/clip-vit-base-patch16": HubModel("clip_vit_b_16", 149_620_737, note=_PAIRS),
    "openai/clip-vit-large-patch14": HubModel("clip_vit_l_14", 427_616_513, note=_PAIRS),
    "stable-diffusion-v1-5/stable-diffusion-v1-5": HubModel(
        "sd15_unet",
        859_520_964,
        ("runwayml/stable-diffusion-v1-5", "CompVis/stable-diffusion-v1-4", "sd1.5"),
        UNET_NOTE,
    ),
    "stabilityai/stable-diffusion-2-1": HubModel(
        "sd21_unet", 865_910_724, ("stabilityai/stable-diffusion-2",), UNET_NOTE
    ),
    "stabilityai/stable-diffusion-xl-base-1.0": HubModel(
        "sdxl_unet", 2_567_463_684, ("sdxl", "stable-diffusion-xl"), UNET_NOTE
    ),
    "facebook/convnext-tiny-224": HubModel("hf:ConvNextConfig(num_labels=1000)", 28_589_128),
    "facebook/dinov2-base": HubModel(
        "hf:Dinov2Config(hidden_size=768, image_size=518, patch_size=14, num_labels=1000)",
        88_117_480,
        note="with a linear classifier on it; its own training has a teacher besides",
    ),
    **{hub_id: HubModel(*row) for hub_id, row in TEXTS.items()},
}
