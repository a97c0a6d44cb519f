"""LLaMA-Factory's YAML and JSON (llamafactory/hparams): TrainingArguments, and keys of its own for model, data and
fine-tuning.

It trains LoRA on all linear layers unless told otherwise, checkpoints unless told not to, and loads the weights in the
format that it computes in; those that are trained become float32 (`model/adapter.py`), unless `pure_bf16` is set.
"""

from collections.abc import Mapping

from epochcast.describe.capture.config.key_table import (
    MODEL,
    Trainer,
    is_set,
    length,
    name,
    not_modelled,
    number,
    positive,
    says,
    stated,
    states,
    uses_deepspeed,
    when,
    words,
)
from epochcast.describe.capture.config.preference_settings import DPO, PPO, set_preferences
from epochcast.describe.capture.config.setting import PACKING, STEPS, Reader
from epochcast.describe.capture.config.trainers.shared_rows import (
    AS_THE_MODEL,
    DORA,
    FROZEN,
    LIGER,
    NOT_TIMED,
    SEQUENCES_WHOLE,
    UNSLOTH,
    set_dataset,
    set_halves,
)
from epochcast.describe.capture.config.training_arguments import HARMLESS, read_common
from epochcast.describe.graph.adapters import ALL_LINEAR

DEFAULT_LENGTH, DEFAULT_RANK = 2048, 8
"""`cutoff_len` and `lora_rank` where the file says nothing."""
_BITS: Mapping[int, str] = {4: "nf4", 8: "int8"}
_STAGES: Mapping[str, str] = {
    "rm": "pairs of answers: a step sees two texts for each sample",
    "kto": "the pass of the reference model",
}
_WITHOUT_REFERENCE = ("orpo", "simpo")


def _finish(reader: Reader) -> None:
    kind = reader.text("finetuning_type") or "lora"
    reader.read_keys.add("stage")
    if reader.text("stage") in _STAGES:
        reader.leave("stage", f"{reader.text('stage')}: {_STAGES[reader.text('stage')]}")
    if kind == "lora":
        _read_lora(reader)
    elif kind != "full":
        reader.leave("finetuning_type", f"{kind}: forecast as a full fine-tune")
    _read_precision(reader, kind)
    if not is_set(reader, "disable_gradient_checkpointing") and not states(reader, "checkpointing"):
        reader.set("checkpointing", True, "default", is_default=True)
    read_common(reader)
    if reader.text("stage") == "pt" and "packing" not in reader.document:
        reader.set(PACKING, True, "stage")
    _read_data(reader)
    if not states(reader, STEPS) and not states(reader, "epochs"):
        reader.set("epochs", 3, "default", is_default=True)
    if reader.text("stage") in (DPO, PPO):
        _read_preferences(reader, reader.text("stage"))


def _read_preferences(reader: Reader, stage: str) -> None:
    """Pairs, or prompts with responses of `max_new_tokens` (1,024)."""
    if not states(reader, "input_shape"):
        reader.set("input_shape", (DEFAULT_LENGTH,), "default", is_default=True)
    longest = stated(reader, "input_shape")[0]
    document = {"max_prompt_length": longest, "response_length": positive(reader, "max_new_tokens") or 1024}
    document["num_ppo_epochs"] = positive(reader, "ppo_epochs") or 4
    if stage == DPO:
        is_free = reader.text("pref_loss") in _WITHOUT_REFERENCE
        document = {"max_prompt_length": longest // 2, "reference_free": is_free}
    reader.document = {**reader.document, **document}
    set_preferences(reader, stage)
    if stage == PPO and reader.text("reward_model"):
        reader.leave("reward_model", "its pass is not counted: give `reward_model`")


def _read_data(reader: Reader) -> None:
    """`max_samples` are those of each data set, at most."""
    written = reader.document.get("dataset")
    names = [str(each).strip() for each in (written if isinstance(written, list) else str(written or "").split(","))]
    most = positive(reader, "max_samples")
    if most is not None:
        reader.set("samples", most * len(names), "max_samples")
        return
    for each in filter(None, names):
        set_dataset(reader, each, "dataset")


def _read_lora(reader: Reader) -> None:
    rank = positive(reader, "lora_rank")
    reader.set("lora", rank or DEFAULT_RANK, "lora_rank" if rank else "default", is_default=rank is None)
    dropout = number(reader, "lora_dropout")
    reader.set("lora_dropout", dropout or 0.0, "lora_dropout", is_default=dropout is None)
    value = reader.take("lora_target")
    targets = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else ["all"]
    named = tuple(ALL_LINEAR if str(each).strip() == "all" else str(each).strip() for each in targets)
    reader.set("lora_targets", named, "lora_target", is_default=value is None)
    bits = reader.integer("quantization_bit")
    method = reader.text("quantization_method") or "bnb"
    if bits is None:
        return
    if method in ("eetq", "hqq") and bits == 8:
        reader.set("quantize", "w8", "quantization_bit")
        return
    if method not in ("bnb", "bitsandbytes") or bits not in _BITS:
        reader.leave("quantization_bit", f"{bits} bits by {method}: {AS_THE_MODEL}")
        return
    is_double = bits == 4 and is_set(reader, "double_quantization") | ("double_quantization" not in reader.document)
    reader.set("quantize", "nf4-dq" if is_double else _BITS[bits], "quantization_bit")


def _read_precision(reader: Reader, kind: str) -> None:
    """With DeepSpeed the copy in float32 is its own."""
    if is_set(reader, "pure_bf16"):
        reader.set("precision", "bf16", "pure_bf16")
        reader.read_keys |= {"bf16", "fp16"}
        return
    half = next((each for each in ("bf16", "fp16") if is_set(reader, each)), "")
    if half:
        is_loaded = kind != "full" and not uses_deepspeed(reader)
        set_halves(reader, half, half, is_loaded=is_loaded)


LLAMA_FACTORY = Trainer(
    "LLaMA-Factory",
    marks=(
        frozenset({"model_name_or_path", "finetuning_type"}),
        frozenset({"model_name_or_path", "stage"}),
        frozenset({"model_name_or_path", "cutoff_len"}),
    ),
    keys={
        "model_name_or_path": says(MODEL, name),
        "cutoff_len": says("input_shape", length),
        "packing": when(PACKING, True),
        "neat_packing": when(PACKING, True),
        "flash_attn": words(
            "attention", {"auto": None, "disabled": "eager", "sdpa": "auto", "fa2": "flash", "fa3": "flash"}
        ),
        "use_dora": DORA,
        "additional_target": not_modelled(FROZEN),
        "use_unsloth": UNSLOTH,
        "use_unsloth_gc": not_modelled("checkpoints are forecast on the GPU"),
        "enable_liger_kernel": LIGER,
        "use_v1_kernels": not_modelled(),
        "shift_attn": not_modelled("attention is forecast over all tokens"),
        "mixture_of_depths": not_modelled(),
        "use_galore": not_modelled(),
        "use_apollo": not_modelled(),
        "use_badam": not_modelled(),
        "use_adam_mini": not_modelled(),
        "use_muon": when("optimizer", "muon"),
        "use_llama_pro": not_modelled(FROZEN),
        "use_mca": not_modelled("Megatron's kernels"),
        "pissa_init": not_modelled("the first decomposition is not timed"),
        "fp8": not_modelled("products are forecast in half"),
        "upcast_layernorm": not_modelled(),
        "upcast_lmhead_output": not_modelled(),
        "resize_vocab": not_modelled("the model is forecast with its own vocabulary"),
        "sequence_parallel_size": not_modelled(SEQUENCES_WHOLE),
        "val_size": not_modelled(NOT_TIMED),
        "use_ray": not_modelled(),
        "streaming": not_modelled("give `samples`"),
    },
    harmless=(
        *sorted(HARMLESS),
        *("template", "dataset", "dataset_dir", "media_dir", "eval_dataset", "overwrite_cache", "preprocessing_*"),
        *("trust_remote_code", "lora_alpha", "loraplus_*", "use_rslora", "plot_loss", "report_to", "use_swanlab"),
        *("swanlab_*", "cache_dir", "use_fast_tokenizer", "model_revision", "mask_history", "train_on_prompt"),
        *("do_train", "tokenized_path", "ddp_*", "resume_*", "hf_hub_token", "ray_*", "pissa_iter", "pissa_convert"),
        *(
            "create_new_adapter",
            "adapter_*",
            "enable_thinking",
            "image_*",
            "video_*",
            "audio_*",
            "pref_*",
            "kto_*",
            "max_new_tokens",
        ),
        *("ppo_*", "reward_*", "ref_model*", "double_quantization", "quantization_type", "quantization_device_map"),
        *(
            "freeze_*",
            "include_*",
            "compute_accuracy",
            "mix_strategy",
            "interleave_probs",
            "buffer_size",
            "tool_format",
        ),
        *("new_special_tokens", "add_*tokens", "eval_*", "deepspeed*", "use_reentrant_gc", "low_cpu_mem_usage"),
    ),
    defaults={
        "batch": 8,
        "optimizer": "adamw",
        "precision": "fp32",
        "input_shape": (DEFAULT_LENGTH,),
    },
    finish=_finish,
    programs=("llamafactory-cli", "llamafactory.cli"),
)
