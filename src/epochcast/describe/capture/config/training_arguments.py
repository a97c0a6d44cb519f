"""Hugging Face's TrainingArguments, as JSON, as YAML or as called in a script; also those of TRL (SFTConfig).

Where they say nothing, the defaults of TrainingArguments count (transformers/training_args.py): eight samples per GPU,
three epochs, AdamW, fp32, and data that are loaded in the training's own process.
"""

from collections.abc import Mapping
from typing import Any

from epochcast.describe.capture.config.offloads import set_fsdp_offload
from epochcast.describe.capture.config.optimizers import match_optimizer
from epochcast.describe.capture.config.setting import STEPS, ConfigSettings, Reader
from epochcast.describe.capture.config.trl_config import CHECKPOINTING

KIND = "TrainingArguments"
_KEYS = (
    *("per_device_train_batch_size", "num_train_epochs", "gradient_checkpointing", "optim", "per_gpu_train_batch_size"),
    *("per_device_eval_batch_size", "lr_scheduler_type", "dataloader_num_workers", "torch_compile", "bf16_full_eval"),
)
_DEFAULTS: Mapping[str, Any] = {"batch": 8, "epochs": 3, "optimizer": "adamw", "precision": "fp32", "workers": 0}
DEEPSPEED = "deepspeed"
_NOT_MODELLED: Mapping[str, str] = {
    "neftune_noise_alpha": "",
    "galore": "",
    "optim_target_modules": "",
    "auto_find_batch_size": "",
    "liger_kernel_config": "",
    "eval_strategy": "evaluations are not timed",
    "evaluation_strategy": "evaluations are not timed",
    "group_by_length": "give `lengths`",
    "torch_empty_cache_steps": "",
    "parallelism_config": "",
    "use_cpu": "",
    "no_cuda": "",
}
# What logs, saves, names, seeds or steers the optimizer, and changes neither time nor memory by much.
HARMLESS = frozenset(
    (
        *("accelerator_config", "adam_beta1", "adam_beta2", "adam_epsilon", "batch_eval_metrics", "data_seed"),
        *("dataloader_drop_last", "dataloader_persistent_workers", "dataloader_pin_memory", "ddp_backend"),
        *("ddp_broadcast_buffers", "ddp_bucket_cap_mb", "ddp_find_unused_parameters", "ddp_timeout", "debug"),
        *(
            "disable_tqdm",
            "do_eval",
            "do_predict",
            "do_train",
            "eval_accumulation_steps",
            "eval_delay",
            "eval_on_start",
        ),
        *("eval_do_concat_batches", "eval_steps", "eval_use_gather_object", "full_determinism", "greater_is_better"),
        "activation_checkpointing_kwargs",
        *("gradient_checkpointing_kwargs", "half_precision_backend", "hub_always_push", "hub_model_id"),
        *("hub_private_repo", "hub_revision", "hub_strategy", "hub_token", "ignore_data_skip"),
        *(
            "include_for_metrics",
            "include_inputs_for_metrics",
            "include_num_input_tokens_seen",
            "include_tokens_per_second",
        ),
        *("jit_mode_eval", "label_names", "label_smoothing_factor", "learning_rate", "length_column_name"),
        *("load_best_model_at_end", "local_rank", "log_level", "log_level_replica", "log_on_each_node", "logging_dir"),
        *("logging_first_step", "logging_nan_inf_filter", "logging_steps", "logging_strategy", "lr_scheduler_kwargs"),
        *("lr_scheduler_type", "max_grad_norm", "metric_for_best_model", "optim_args", "output_dir"),
        *("overwrite_output_dir", "past_index", "per_device_eval_batch_size", "per_gpu_eval_batch_size"),
        *("prediction_loss_only", "project", "push_to_hub", "ray_scope", "remove_unused_columns", "report_to"),
        *("restore_callback_states_from_checkpoint", "resume_from_checkpoint", "run_name", "save_on_each_node"),
        *("save_only_model", "save_safetensors", "save_steps", "save_strategy", "save_total_limit", "seed"),
        *("skip_memory_metrics", "split_batches", "torchdynamo", "trackio_space_id", "use_legacy_prediction_loop"),
        *("use_mps_device", "warmup_ratio", "warmup_steps", "weight_decay", "average_tokens_across_devices"),
    )
)


def is_training_arguments(document: Mapping[str, Any]) -> bool:
    """Whether it has keys of TrainingArguments."""
    return any(key in document for key in _KEYS)


def read_training_arguments(name: str, document: Mapping[str, Any]) -> ConfigSettings:
    """What the arguments say of a job."""
    reader = Reader(name, document)
    read_common(reader)
    for option, value in _DEFAULTS.items():
        if not _states(reader, option) and not (option == "epochs" and _states(reader, STEPS)):
            reader.set(option, value, "default", is_default=True)
    return reader.settings(KIND, uses_deepspeed=bool(reader.take(DEEPSPEED)), harmless=HARMLESS)


def _states(reader: Reader, option: str) -> bool:
    return any(setting.option == option for setting in reader.entries)


def read_common(reader: Reader) -> None:
    """What trainers built on transformers' Trainer share; without its defaults, as each has its own."""
    batch_key = "per_device_train_batch_size"
    batch = reader.integer(batch_key) or reader.integer("per_gpu_train_batch_size")
    if batch is not None:
        reader.set("batch", batch, batch_key)
    accumulate = reader.integer("gradient_accumulation_steps")
    if accumulate is not None:
        reader.set("accumulate", accumulate, "gradient_accumulation_steps")
    _read_length(reader)
    _read_precision(reader)
    _read_optimizer(reader)
    for checkpointing in CHECKPOINTING:
        if reader.flag(checkpointing):
            reader.set("checkpointing", True, checkpointing)
    _read_compiler(reader)
    _read_fsdp(reader)
    workers, prefetch = reader.integer("dataloader_num_workers"), reader.integer("dataloader_prefetch_factor")
    if workers is not None:
        reader.set("workers", workers, "dataloader_num_workers")
    if prefetch is not None:
        reader.set("prefetch", prefetch, "dataloader_prefetch_factor")
    if reader.flag("use_liger_kernel") and not _states(reader, "kernels"):
        reader.set("kernels", "liger", "use_liger_kernel")
    for key, why in _NOT_MODELLED.items():
        if reader.take(key) and str(reader.document[key]).casefold() != "no":
            reader.leave(key, why)


def _read_length(reader: Reader) -> None:
    steps, epochs = reader.integer("max_steps"), reader.take("num_train_epochs")
    if steps is not None and steps > 0:
        reader.set(STEPS, steps, "max_steps")
    elif isinstance(epochs, float) and not epochs.is_integer():
        reader.leave("num_train_epochs", f"{epochs:g} is no whole number; give `epochs`")
    elif epochs is not None:
        reader.set("epochs", reader.integer("num_train_epochs"), "num_train_epochs")


def _read_precision(reader: Reader) -> None:
    for key, precision in (("bf16", "amp_bf16"), ("fp16", "amp_fp16"), ("tf32", "tf32")):
        if reader.flag(key):
            reader.set("precision", precision, key)
            break
    for key in ("bf16", "fp16", "tf32", "fp16_full_eval", "bf16_full_eval", "fp16_backend", "fp16_opt_level"):
        reader.read_keys.add(key)


def _read_optimizer(reader: Reader) -> None:
    name = reader.text("optim")
    if reader.flag("adafactor"):
        name = "adafactor"
    if not name:
        return
    optimizer = match_optimizer(name)
    reader.set("optimizer", optimizer.name, "optim", problem=optimizer.problem)
    if optimizer.note:
        reader.notes.append(optimizer.note)
    if optimizer.style:
        reader.set("update_style", optimizer.style, "optim")


def _read_compiler(reader: Reader) -> None:
    mode, backend = reader.text("torch_compile_mode"), reader.text("torch_compile_backend")
    if not (reader.flag("torch_compile") or mode or backend):
        return
    if backend not in ("", "inductor"):
        reader.leave("torch_compile_backend", backend)
        return
    reader.set("compile", "reduce-overhead" if mode == "reduce-overhead" else "inductor", "torch_compile")


def _read_fsdp(reader: Reader) -> None:
    value = reader.take("fsdp")
    words = value if isinstance(value, list) else str(value or "").split()
    if value is True:
        words = ["full_shard"]
    strategies = (("full_shard", "fsdp"), ("hybrid_shard", "fsdp"), ("shard_grad_op", "zero2"))
    strategy = next((strategy for word, strategy in strategies if word in words), "")
    if strategy:
        reader.set("strategy", strategy, "fsdp")
    if "offload" in words:
        set_fsdp_offload(reader, strategy, "fsdp")
    inner = reader.take("fsdp_config")
    if isinstance(inner, Mapping) and (
        inner.get("activation_checkpointing") or inner.get("fsdp_activation_checkpointing")
    ):
        reader.set("checkpointing", True, "fsdp_config.activation_checkpointing")
