"""Adapters and quantised weights as scripts configure them: PEFT's LoraConfig, and BitsAndBytesConfig of transformers.

Where LoraConfig says nothing, PEFT's defaults count (peft/tuners/lora/config.py): rank 8, and the projections that PEFT
picks for the family of the model, which are q_proj and v_proj for Llama and its kin.
"""

from collections.abc import Mapping
from typing import Any

from epochcast.describe.capture.config.setting import ConfigSetting, ConfigSettings, InvalidSetting, Reader
from epochcast.describe.graph.adapters import (
    ALL_LINEAR,
    IA3,
    LOHA,
    LOKR,
    PREFIX,
    USUAL_RANKS,
    target_names,
)
from epochcast.describe.graph.kernels import UNSLOTH

RANK, DROPOUT = 8, 0.0
"""PEFT's defaults."""
# Arguments that change which weights are trained, or the work of a step.
_LORA_NOT_MODELLED: Mapping[str, str] = {
    "modules_to_save": "these layers are trained whole, and forecast as frozen",
    "trainable_token_indices": "these rows are trained, and forecast as frozen",
    "layers_to_transform": "every layer is forecast with an adapter",
    "layers_pattern": "every layer is forecast with an adapter",
    "exclude_modules": "these layers are forecast with an adapter",
    "rank_pattern": "every adapter is forecast with one rank",
    "target_parameters": "these parameters are forecast without an adapter",
    "layer_replication": "the model is forecast with its own layers",
    "megatron_config": "",
    "eva_config": "",
    "loftq_config": "",
}
ADAPTERS: Mapping[str, tuple[str, str]] = {
    "IA3Config": (IA3, ""),
    "LoHaConfig": (LOHA, "r"),
    "LoKrConfig": (LOKR, "r"),
    "PrefixTuningConfig": (PREFIX, "num_virtual_tokens"),
}
"""PEFT's configs of adapters that are forecast, and the argument that is the rank, or the tokens of a prefix."""
_ADAPTERS_NOT_MODELLED: Mapping[str, str] = {
    "prefix_projection": "the network that makes the prefix is left out",
    "use_effective_conv2d": "",
    **_LORA_NOT_MODELLED,
}
OTHER_ADAPTERS = frozenset(
    (
        *("AdaLoraConfig", "AdaptionPromptConfig", "BOFTConfig", "BoneConfig", "C3AConfig", "FourierFTConfig"),
        *("HRAConfig", "LNTuningConfig", "MissConfig", "MultitaskPromptTuningConfig"),
        *("OFTConfig", "PolyConfig", "PromptEncoderConfig", "PromptTuningConfig", "RandLoraConfig"),
        *(
            "TrainableTokensConfig",
            "VBLoRAConfig",
            "VeraConfig",
            "XLoraConfig",
            "CPTConfig",
            "RoadConfig",
            "ShiraConfig",
        ),
    )
)
"""Adapters of PEFT that are no LoRA."""
OTHER_QUANTISERS = frozenset(
    (
        *("AqlmConfig", "AutoRoundConfig", "AwqConfig", "BitNetQuantConfig", "CompressedTensorsConfig", "EetqConfig"),
        *("FbgemmFp8Config", "FineGrainedFP8Config", "GPTQConfig", "HiggsConfig", "HqqConfig", "Mxfp4Config"),
        *("QuantoConfig", "QuarkConfig", "SpQRConfig", "TorchAoConfig", "VptqConfig"),
    )
)
"""Quantised weights of transformers that are not bitsandbytes'."""
_COMPUTED = {"bfloat16": "amp_bf16", "float16": "amp_fp16", "half": "amp_fp16"}


def read_lora(name: str, document: Mapping[str, Any], unread: frozenset[str] = frozenset()) -> ConfigSettings:
    """The rank and the layers of a LoraConfig; `unread` are arguments that are only known when the script runs."""
    reader = Reader(name, document)
    rank = reader.integer("r")
    if rank is not None and rank < 1:
        raise InvalidSetting(name, f"LoraConfig: r must be at least 1, got {rank}")
    reader.set("lora", RANK if rank is None else rank, "r", is_default=rank is None)
    if "r" in unread:
        reader.notes.append(f"r of LoraConfig is known only when the script runs: rank {RANK} is taken, give `lora`")
    dropout = reader.take("lora_dropout")
    is_said = isinstance(dropout, int | float)
    reader.set("lora_dropout", dropout if is_said else DROPOUT, "lora_dropout", is_default=not is_said)
    _read_targets(reader, unread)
    if reader.take("use_dora"):
        reader.set("adapter", "dora", "use_dora")
    if reader.text("bias") not in ("", "none"):
        reader.leave("bias", f"{document['bias']}: biases are forecast as frozen")
    for key, why in _LORA_NOT_MODELLED.items():
        if reader.take(key) or key in unread:
            reader.leave(key, why)
    return reader.settings("LoraConfig")


def read_adapter(kind: str, name: str, document: Mapping[str, Any], unread: frozenset[str]) -> ConfigSettings:
    """The kind, rank and layers of another config of PEFT, by the name of its class."""
    adapter, rank_key = ADAPTERS[kind]
    reader = Reader(name, document)
    reader.set("adapter", adapter, kind)
    rank = reader.integer(rank_key) if rank_key else None
    reader.set("lora", rank or USUAL_RANKS[adapter], rank_key or kind, is_default=rank is None)
    if rank_key in unread:
        reader.notes.append(
            f"{rank_key} of {kind} is known only when the script runs: {USUAL_RANKS[adapter]} is taken, give `lora`"
        )
    if adapter != PREFIX:
        _read_targets(reader, unread)
    for key, why in _ADAPTERS_NOT_MODELLED.items():
        if reader.take(key) or key in unread:
            reader.leave(key, why)
    return reader.settings(kind)


def read_unsloth(name: str, document: Mapping[str, Any], unread: frozenset[str]) -> ConfigSettings:
    """`FastLanguageModel.get_peft_model(…)` of unsloth: LoRA of rank 16 on all linear layers, and its kernels, which
    keep checkpoints in host memory unless `use_gradient_checkpointing` says otherwise.
    """
    said = {"r": 16, "target_modules": ALL_LINEAR, **{key: value for key, value in document.items() if key != "model"}}
    settings = read_lora(name, said, unread)
    reader = Reader(name, said, entries=list(settings.settings), not_modelled=list(settings.not_modelled))
    reader.notes += settings.notes
    reader.set("kernels", UNSLOTH, "get_peft_model")
    key = "use_gradient_checkpointing"
    written = said.get(key, UNSLOTH)
    if key not in unread and written != UNSLOTH:
        reader.leave(key, "checkpoints are forecast in host memory")
    return reader.settings("unsloth")


def _read_targets(reader: Reader, unread: frozenset[str]) -> None:
    key = "target_modules"
    targets = reader.take(key)
    if key in unread or (isinstance(targets, list) and not all(isinstance(target, str) for target in targets)):
        reader.notes.append(
            f"{key} are known only when the script runs: the usual layers are taken, give `lora_targets`"
        )
    elif isinstance(targets, list | str) and targets:
        reader.set("lora_targets", target_names(targets), key)


def read_bits_and_bytes(name: str, document: Mapping[str, Any], unread: frozenset[str] = frozenset()) -> ConfigSettings:
    """Whether weights are kept in four or eight bits, and whether their scales are quantised, too."""
    reader = Reader(name, document)
    is_double = reader.flag("bnb_4bit_use_double_quant")
    if reader.flag("load_in_4bit"):
        reader.set("four_bit", True, "load_in_4bit")
        if is_double:
            reader.set("quantize", "nf4-dq", "bnb_4bit_use_double_quant")
    if reader.flag("load_in_8bit"):
        reader.set("eight_bit", True, "load_in_8bit")
    for key in ("load_in_4bit", "load_in_8bit"):
        if key in unread:
            reader.notes.append(
                f"{key} is known only when the script runs: weights are forecast as they are without it"
            )
    if reader.flag("llm_int8_enable_fp32_cpu_offload"):
        reader.leave("llm_int8_enable_fp32_cpu_offload")
    return reader.settings("BitsAndBytesConfig")


def computed_precision(document: Mapping[str, Any]) -> ConfigSetting | None:
    """What four-bit weights are multiplied in: the precision of a script that says no other."""
    dtype = str(document.get("bnb_4bit_compute_dtype", "")).rpartition(".")[2]
    return ConfigSetting("precision", _COMPUTED[dtype], "bnb_4bit_compute_dtype") if dtype in _COMPUTED else None
