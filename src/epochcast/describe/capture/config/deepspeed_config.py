"""DeepSpeed's JSON config (deepspeed.ai/docs/config-json): batches, ZeRO stage, precision, optimizer, offloading."""

from collections.abc import Mapping
from typing import Any

from epochcast.describe.capture.config.offloads import OPTIMIZER, read_offload
from epochcast.describe.capture.config.optimizers import FUSED, match_optimizer
from epochcast.describe.capture.config.setting import GLOBAL_BATCH, ConfigSettings, Reader

KIND = "DeepSpeed"
_KEYS = (
    "zero_optimization",
    "train_micro_batch_size_per_gpu",
    "train_batch_size",
    "bf16",
    "fp16",
    "zero_allow_untested_optimizer",
)
# They change what a step does, and no option says so.
_OTHERS = (
    "sparse_attention",
    "compression_training",
    "progressive_layer_drop",
    "tensor_parallel",
    "pipeline",
    "hybrid_engine",
)
_ADAMS = ("adam", "adamw")


def is_deepspeed(document: Mapping[str, Any]) -> bool:
    """Whether it has keys of such a config, and none of a trainer's."""
    return any(key in document for key in _KEYS[:3]) or all(key in document for key in ("optimizer", "scheduler"))


def read_deepspeed(name: str, document: Mapping[str, Any]) -> ConfigSettings:
    """What the config says of a job."""
    reader = Reader(name, document)
    read_batches(reader)
    _read_precision(reader)
    read_zero(reader.section("zero_optimization"))
    _read_optimizer(reader.section("optimizer"))
    checkpointing = reader.section("activation_checkpointing")
    for key in ("cpu_checkpointing", "partition_activations"):
        if checkpointing.flag(key):
            checkpointing.leave(key)
    if reader.document.get("activation_checkpointing"):
        reader.notes.append("activation_checkpointing says how, not whether: give `checkpointing` if the model does it")
    if reader.section("compile").flag("enabled"):
        reader.set("compile", "inductor", "compile.enabled")
    for key in _OTHERS:
        if reader.take(key):
            reader.leave(key)
    return reader.settings(KIND, uses_deepspeed=True)


def read_batches(reader: Reader) -> None:
    """Samples per GPU and pass, passes per update, samples of an update over all GPUs."""
    for key, option in (
        ("train_micro_batch_size_per_gpu", "batch"),
        ("gradient_accumulation_steps", "accumulate"),
        ("train_batch_size", GLOBAL_BATCH),
    ):
        value = reader.integer(key)
        if value is not None:
            reader.set(option, value, key)


def _read_precision(reader: Reader) -> None:
    for key, precision in (("bf16", "bf16_deepspeed"), ("bfloat16", "bf16_deepspeed"), ("fp16", "fp16_deepspeed")):
        if reader.section(key).flag("enabled"):
            reader.set("precision", precision, key)
            return
    autocast = reader.section("torch_autocast")
    if autocast.flag("enabled"):
        is_half = autocast.text("dtype") in ("float16", "fp16", "torch.float16")
        reader.set("precision", "amp_fp16" if is_half else "amp_bf16", "torch_autocast")
    elif reader.section("amp").flag("enabled"):
        reader.set("precision", "amp_fp16", "amp")
    elif "bf16" not in reader.document and "fp16" not in reader.document:
        reader.set("precision", "fp32", "precision", is_default=True)


def read_zero(zero: Reader) -> None:
    """The stage, and what is kept outside the GPU."""
    stage = zero.integer("stage")
    if stage is not None:
        if stage not in range(4):
            raise zero.wrong("stage", "0, 1, 2 or 3", stage)
        zero.set("strategy", f"zero{stage}" if stage else "ddp", "stage")
    read_offload(zero, {key: zero.section(key).text("device") for key in ("offload_optimizer", "offload_param")})
    if zero.flag("cpu_offload"):
        zero.set("offload", OPTIMIZER, "cpu_offload")
    for key in ("zero_quantized_weights", "zero_quantized_gradients", "zero_hpz_partition_size", "mics_shard_size"):
        value = zero.take(key)
        if value is True or value not in (None, False, 0, 1, -1):
            zero.leave(key)


def _read_optimizer(reader: Reader) -> None:
    kind = reader.text("type")
    if not kind:
        return
    parameters = reader.section("params")
    is_torch = parameters.flag("torch_adam")
    # "Adam" decays weights as AdamW does unless `adam_w_mode` is false (runtime/engine.py, _configure_basic_optimizer).
    is_adam = kind == "adam" and parameters.take("adam_w_mode") is False
    name = "adam" if is_adam else "adamw" if kind in _ADAMS else kind
    optimizer = match_optimizer(name, momentum=parameters.take("momentum"), nesterov=parameters.take("nesterov"))
    parameters.read_keys |= {"lr", "betas", "eps", "weight_decay"}
    reader.set("optimizer", optimizer.name, "type", problem=optimizer.problem)
    if optimizer.note:
        reader.notes.append(optimizer.note)
    if kind in _ADAMS and not is_torch:
        reader.set("update_style", FUSED, "type")
