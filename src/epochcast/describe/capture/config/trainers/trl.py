"""TRL's command line and YAML (`trl sft --config`, examples of trl/scripts): ScriptArguments, ModelConfig and SFTConfig
in one table; also other scripts that take transformers' TrainingArguments beside the name of a model.
"""

from collections.abc import Mapping

from epochcast.describe.capture.config.adapter_config import RANK as PEFT_RANK
from epochcast.describe.capture.config.key_table import (
    MODEL,
    PROGRAM,
    SUBCOMMAND,
    Trainer,
    is_set,
    length,
    name,
    names,
    not_modelled,
    number,
    passed_over,
    positive,
    says,
    states,
    when,
    words,
)
from epochcast.describe.capture.config.preference_settings import ALGORITHM_OF_CONFIG, kind_of, set_preferences
from epochcast.describe.capture.config.setting import PACKING, STEPS, Reader
from epochcast.describe.capture.config.trainers.shared_rows import (
    DORA,
    FROZEN,
    LIGER,
    set_dataset,
)
from epochcast.describe.capture.config.training_arguments import HARMLESS, read_common
from epochcast.describe.capture.config.trl_config import ATTENTIONS, LENGTH, SFT, TRL_CONFIGS

_HALVES: Mapping[str, str] = {"bfloat16": "bf16", "float16": "fp16"}
_DROPOUT = 0.05
"""ModelConfig's `lora_dropout`."""
_SCRIPTS: Mapping[str, str] = {
    "sft": SFT,
    "dpo": "DPOConfig",
    "kto": "KTOConfig",
    "orpo": "ORPOConfig",
    "reward": "RewardConfig",
    "grpo": "GRPOConfig",
    "rloo": "RLOOConfig",
    "ppo": "PPOConfig",
}
# Keys that only TRL has: with them its defaults count.
_OWN = ("packing", "max_length", "max_seq_length", "use_peft", "lora_r", "dataset_text_field", "completion_only_loss")


def _finish(reader: Reader) -> None:
    program = str(reader.document.get(PROGRAM) or "").removesuffix(".py")
    kind = _SCRIPTS.get(str(reader.document.get(SUBCOMMAND)) if program == "trl" else program, "")
    kind = kind or kind_of(reader.document)
    if TRL_CONFIGS.get(kind):
        reader.not_modelled.append(f"{kind}: {TRL_CONFIGS[kind]}")
    is_trl = bool(kind) or any(key in reader.document for key in _OWN)
    if is_set(reader, "use_peft") or ("use_peft" not in reader.document and states(reader, "lora")):
        _read_adapter(reader)
    else:
        reader.entries[:] = [each for each in reader.entries if not each.option.startswith("lora")]
    read_common(reader)
    dtype = _HALVES.get(reader.text("torch_dtype") or reader.text("dtype"), "")
    has_precision = states(reader, "precision")
    if dtype:
        if has_precision or is_trl:
            reader.set("weights", dtype, "dtype")
        else:
            reader.set("precision", dtype, "dtype")
    if is_trl:
        _set_defaults(reader, kind)
        if kind in ALGORITHM_OF_CONFIG:
            set_preferences(reader, ALGORITHM_OF_CONFIG[kind])
    elif not states(reader, "precision"):
        reader.set("precision", "fp32", "default", is_default=True)
    set_dataset(reader, str(reader.take("dataset_name") or ""), "dataset_name")
    if not states(reader, STEPS) and not states(reader, "epochs"):
        reader.set("epochs", 3, "default", is_default=True)


def _set_defaults(reader: Reader, kind: str) -> None:
    """TRL's, of its configs: see trl_config."""
    is_old = "max_seq_length" in reader.document
    if not states(reader, "input_shape") and kind in ("", SFT):
        reader.set("input_shape", (LENGTH,), "default", is_default=True)
    if not is_old and "gradient_checkpointing" not in reader.document:
        reader.set("checkpointing", True, "default", is_default=True)
    if not states(reader, "precision"):
        reader.set("precision", "fp32" if is_old else "amp_bf16", "default", is_default=True)


def _read_adapter(reader: Reader) -> None:
    for option, value in (("lora", PEFT_RANK * 2), ("lora_dropout", _DROPOUT)):
        if not states(reader, option):
            reader.set(option, value, "default", is_default=True)
    if is_set(reader, "load_in_4bit"):
        is_double = is_set(reader, "use_bnb_nested_quant")
        reader.set("quantize", "nf4-dq" if is_double else "nf4", "load_in_4bit")
    elif is_set(reader, "load_in_8bit"):
        reader.set("quantize", "int8", "load_in_8bit")


TRL = Trainer(
    "TRL",
    marks=(
        frozenset({"model_name_or_path", "per_device_train_batch_size"}),
        frozenset({"model_name_or_path", "num_train_epochs"}),
        frozenset({"model_name_or_path", "use_peft"}),
        frozenset({"model_name_or_path", "dataset_name"}),
        frozenset({"model_name_or_path", "max_steps"}),
    ),
    keys={
        "model_name_or_path": says(MODEL, name),
        "max_seq_length": says("input_shape", length),
        "max_length": says("input_shape", length),
        "block_size": says("input_shape", length),
        "packing": when(PACKING, True),
        "lora_r": says("lora", positive),
        "lora_dropout": says("lora_dropout", number),
        "lora_target_modules": says("lora_targets", names),
        "lora_modules_to_save": not_modelled(FROZEN),
        "use_dora": DORA,
        "attn_implementation": words("attention", ATTENTIONS),
        "use_liger_kernel": LIGER,
        "padding_free": not_modelled("texts are forecast padded to one length"),
        "activation_offloading": not_modelled("activations are forecast on the GPU"),
        "max_train_samples": says("samples", positive),
        "use_peft": passed_over,
    },
    harmless=(
        *sorted(HARMLESS),
        *(
            "lora_alpha",
            "lora_task_type",
            "use_rslora",
            "dataset_*",
            "trust_remote_code",
            "tokenizer_*",
            "model_revision",
        ),
        *("config_name", "cache_dir", "eos_token", "pad_token", "chat_template*", "ignore_bias*", "streaming"),
        *("bnb_4bit_*", "use_bnb_nested_quant", "gradient_checkpointing_kwargs.*", "deepspeed*", "preprocessing_*"),
        *(
            "overwrite_*",
            "validation_*",
            "train_file",
            "text_column*",
            "task_name",
            "completion_only_loss",
            "assistant*",
        ),
        *("accelerator_config.*", "lr_scheduler_kwargs.*", "beta", "loss_type", "system_prompt", "dataset_mixture*"),
        *("low_cpu_mem_usage", "load_in_4bit", "load_in_8bit", "max_eval_samples", "packing_strategy", "eval_packing"),
        *("reward_funcs", "reward_weights", "missing_eos_penalty", "vllm_device"),
    ),
    defaults={"batch": 8, "optimizer": "adamw"},
    finish=_finish,
    programs=(
        "trl",
        "sft.py",
        "dpo.py",
        "kto.py",
        "orpo.py",
        "grpo.py",
        "rloo.py",
        "ppo.py",
        "run_clm.py",
        "run_mlm.py",
        "run_glue.py",
    ),
)
