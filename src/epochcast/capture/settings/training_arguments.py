"""Hugging Face's TrainingArguments, as JSON, as YAML or as called in a script; also those of TRL (SFTConfig).

Where they say nothing, the defaults of TrainingArguments count (transformers/training_args.py): eight samples per GPU,
three epochs, AdamW.
"""

from collections.abc import Mapping
from typing import Any

from epochcast.capture.settings.offloads import set_fsdp_offload
from epochcast.capture.settings.optimizers import found_optimizer
from epochcast.capture.settings.setting import STEPS, Reader, Settings

KIND = "TrainingArguments"
_OWN = (
    *("per_device_train_batch_size", "num_train_epochs", "gradient_checkpointing", "optim", "per_gpu_train_batch_size"),
    *("per_device_eval_batch_size", "lr_scheduler_type", "dataloader_num_workers", "torch_compile", "bf16_full_eval"),
)
_DEFAULTS: Mapping[str, Any] = {"batch": 8, "epochs": 3, "optimizer": "adamw"}
DEEPSPEED = "deepspeed"


def is_training_arguments(document: Mapping[str, Any]) -> bool:
    """Whether it has keys of TrainingArguments."""
    return any(key in document for key in _OWN)


def read_training_arguments(name: str, document: Mapping[str, Any]) -> Settings:
    """What the arguments say of a job."""
    reader = Reader(name, document)
    batch_key = "per_device_train_batch_size"
    batch = reader.whole(batch_key) or reader.whole("per_gpu_train_batch_size")
    if batch is not None:
        reader.set("batch", batch, batch_key)
    accumulate = reader.whole("gradient_accumulation_steps")
    if accumulate is not None:
        reader.set("accumulate", accumulate, "gradient_accumulation_steps")
    _read_length(reader)
    _read_precision(reader)
    _read_optimizer(reader)
    if reader.flag("gradient_checkpointing"):
        reader.set("checkpointing", True, "gradient_checkpointing")
    _read_compiler(reader)
    _read_fsdp(reader)
    workers, prefetch = reader.whole("dataloader_num_workers"), reader.whole("dataloader_prefetch_factor")
    if workers is not None:
        reader.set("workers", workers, "dataloader_num_workers")
    if prefetch is not None:
        reader.set("prefetch", prefetch, "dataloader_prefetch_factor")
    for key in ("neftune_noise_alpha", "galore", "auto_find_batch_size", "use_liger_kernel"):
        if reader.take(key):
            reader.leave(key)
    said = {setting.option for setting in reader.found}
    for option, value in _DEFAULTS.items():
        if option not in said and not (option == "epochs" and STEPS in said):
            reader.set(option, value, "default", is_default=True)
    return reader.settings(KIND, uses_deepspeed=bool(reader.take(DEEPSPEED)))


def _read_length(reader: Reader) -> None:
    steps, epochs = reader.whole("max_steps"), reader.take("num_train_epochs")
    if steps is not None and steps > 0:
        reader.set(STEPS, steps, "max_steps")
    elif isinstance(epochs, float) and not epochs.is_integer():
        reader.leave("num_train_epochs", f"{epochs:g} is no whole number; give `epochs`")
    elif epochs is not None:
        reader.set("epochs", reader.whole("num_train_epochs"), "num_train_epochs")


def _read_precision(reader: Reader) -> None:
    for key, precision in (("bf16", "amp_bf16"), ("fp16", "amp_fp16"), ("tf32", "tf32")):
        if reader.flag(key):
            reader.set("precision", precision, key)
            break
    for key in ("bf16", "fp16", "tf32", "fp16_full_eval", "bf16_full_eval", "fp16_backend", "fp16_opt_level"):
        reader.asked.add(key)


def _read_optimizer(reader: Reader) -> None:
    name = reader.text("optim")
    if reader.flag("adafactor"):
        name = "adafactor"
    if not name:
        return
    found = found_optimizer(name)
    reader.set("optimizer", found.name, "optim", problem=found.problem)
    if found.note:
        reader.notes.append(found.note)
    if found.style:
        reader.set("update_style", found.style, "optim")


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
    known = (("full_shard", "fsdp"), ("hybrid_shard", "fsdp"), ("shard_grad_op", "zero2"))
    strategy = next((strategy for word, strategy in known if word in words), "")
    if strategy:
        reader.set("strategy", strategy, "fsdp")
    if "offload" in words:
        set_fsdp_offload(reader, strategy, "fsdp")
    inner = reader.take("fsdp_config")
    if isinstance(inner, Mapping) and (
        inner.get("activation_checkpointing") or inner.get("fsdp_activation_checkpointing")
    ):
        reader.set("checkpointing", True, "fsdp_config.activation_checkpointing")
