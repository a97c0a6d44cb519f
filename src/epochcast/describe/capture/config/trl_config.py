"""TRL's configs (SFTConfig, DPOConfig, …): the arguments that they have beside those of TrainingArguments.

Where they say nothing, TRL's own defaults count (trl/trainer/sft_config.py, base_config.py): texts are cut at 1,024
tokens, gradient checkpointing is on, and the precision is bf16 unless fp16 is asked for. A script that says
`max_seq_length` is of a TRL before these defaults.
"""

from collections.abc import Mapping

from epochcast.describe.capture.config.preference_settings import PREFERENCE_KEYS
from epochcast.describe.capture.config.setting import PACKING, Reader

CHECKPOINTING = ("gradient_checkpointing", "activation_checkpointing")
"""The second is its name since transformers 5."""

SFT = "SFTConfig"
LENGTH = 1024
"""TRL's default of max_length."""

TRL_CONFIGS: Mapping[str, str] = {
    SFT: "",
    "RewardConfig": "pairs of answers: a step sees two texts for each sample",
    "DPOConfig": "",
    "KTOConfig": "the pass of the reference model",
    "ORPOConfig": "pairs of answers: a step sees two texts for each sample",
    "CPOConfig": "pairs of answers: a step sees two texts for each sample",
    "GRPOConfig": "",
    "RLOOConfig": "",
    "PPOConfig": "",
}
"""What a step of each has that is not modelled; preference_settings reads those without."""
LENGTH_KEYS = _OLD, _NEW = "max_seq_length", "max_length"

# How transformers spells attention, and our words.
ATTENTIONS: Mapping[str, str] = {
    "eager": "eager",
    "sdpa": "auto",
    "flash_attention_2": "flash",
    "flash_attention_3": "flash",
    "kernels-community/flash-attn2": "flash",
    "kernels-community/flash-attn3": "flash",
    "kernels-community/vllm-flash-attn3": "flash",
}


def read_trl(reader: Reader, kind: str) -> None:
    """Length, packing and what else changes a step; `kind` is the class. A trainer that takes the same arguments, as
    older ones do, has no defaults of its own.
    """
    with_defaults = kind in TRL_CONFIGS
    key = _OLD if _OLD in reader.document else _NEW
    length = reader.integer(key)
    if length is not None:
        reader.set("input_shape", (length,), key)
    elif kind == SFT or (with_defaults and TRL_CONFIGS[kind]):
        reader.set("input_shape", (LENGTH,), "default", is_default=True)
    if reader.flag("packing"):
        reader.set(PACKING, True, "packing")
    if TRL_CONFIGS.get(kind):
        reader.not_modelled.append(f"{kind}: {TRL_CONFIGS[kind]}")
    if reader.text("loss_type") in ("chunked_nll", "dft") and kind == SFT:
        reader.leave(
            "loss_type", f"{reader.text('loss_type')}: the scores of all tokens are forecast in memory at once"
        )
    for name, why in _NOT_MODELLED.items():
        if reader.take(name):
            reader.leave(name, why)
    if with_defaults and key != _OLD:
        _set_defaults(reader)


def _set_defaults(reader: Reader) -> None:
    if not any(name in reader.document for name in CHECKPOINTING):
        reader.set("checkpointing", True, "default", is_default=True)
    if not reader.flag("fp16") and "bf16" not in reader.document:
        reader.set("precision", "amp_bf16", "default", is_default=True)


_NOT_MODELLED: Mapping[str, str] = {
    "padding_free": "texts are forecast padded to one length",
    "activation_offloading": "activations are forecast on the GPU",
    "pad_to_multiple_of": "",
}

TRL_KEYS: frozenset[str] = frozenset(
    (
        *(*LENGTH_KEYS, "packing", "loss_type", "model_init_kwargs", "peft_config", *_NOT_MODELLED, *PREFERENCE_KEYS),
        *("assistant_only_loss", "beta", "chat_template_path", "completion_only_loss", "dataset_kwargs"),
        *("dataset_num_proc", "dataset_text_field", "desirable_weight", "eos_token", "eval_packing", "label_smoothing"),
        *("packing_strategy", "pad_token", "shuffle_dataset", "temperature", "top_k", "top_p", "truncation_mode"),
        *("undesirable_weight", "formatting_func", "processing_class", "tokenizer", "train_dataset", "eval_dataset"),
    )
)
"""Arguments of TRL that are read here, or change neither time nor memory."""
