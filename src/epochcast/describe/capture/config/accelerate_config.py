"""The YAML that `accelerate config` writes: processes, machines, precision, and the way they share the work."""

from collections.abc import Mapping
from typing import Any

from epochcast.describe.capture.config.offloads import read_offload, set_fsdp_offload
from epochcast.describe.capture.config.precisions import MIXED
from epochcast.describe.capture.config.setting import ConfigSettings, Reader
from epochcast.errors import UnknownName

KIND = "Accelerate"
_KEYS = ("distributed_type", "compute_environment", "num_processes", "fsdp_config", "deepspeed_config")
# FSDP's ways, by name and by the number that older files have.
_SHARDING: Mapping[str, str] = {
    "full_shard": "fsdp",
    "1": "fsdp",
    "shard_grad_op": "zero2",
    "2": "zero2",
    "no_shard": "ddp",
    "3": "ddp",
    "hybrid_shard": "fsdp",
    "4": "fsdp",
    "hybrid_shard_zero2": "zero2",
    "5": "zero2",
}
_COMPILERS: Mapping[str, str] = {"inductor": "inductor", "eager": "none", "no": "none"}
# What only says how processes are started.
_HARMLESS = (
    *("compute_environment", "debug", "main_training_function", "machine_rank", "rdzv_backend", "same_network"),
    *(
        "tpu_env",
        "tpu_use_cluster",
        "tpu_use_sudo",
        "main_process_ip",
        "main_process_port",
        "gpu_ids",
        "enable_cpu_affinity",
        "downcast_bf16",  # of TPUs
    ),
)
_HARMLESS_OF_FSDP = (
    *("fsdp_cpu_ram_efficient_loading", "fsdp_version", "fsdp_state_dict_type", "fsdp_sync_module_states"),
    *("fsdp_use_orig_params", "fsdp_auto_wrap_policy", "fsdp_transformer_layer_cls_to_wrap", "fsdp_min_num_params"),
)


def is_accelerate(document: Mapping[str, Any]) -> bool:
    """Whether it has keys that only such a file has."""
    return any(key in document for key in _KEYS)


def read_accelerate(name: str, document: Mapping[str, Any]) -> ConfigSettings:
    """What the file says of a job."""
    reader = Reader(name, document)
    reader.read_keys |= set(_HARMLESS)
    for key, option in (
        ("num_processes", "gpus"),
        ("num_machines", "nodes"),
        ("gradient_accumulation_steps", "accumulate"),
    ):
        value = reader.integer(key)
        if value is not None:
            reader.set(option, value, key)
    _read_precision(reader)
    kind = reader.text("distributed_type") or "no"
    _SHARED.get(kind, _read_other)(reader)
    mesh = reader.section("parallelism_config")
    prefix = "parallelism_config_"
    mesh.read_keys |= {f"{prefix}dp_replicate_size", f"{prefix}dp_shard_size"}
    for key in (f"{prefix}tp_size", f"{prefix}cp_size", f"{prefix}sp_size"):
        if (mesh.integer(key) or 1) > 1:
            mesh.leave(key, "give `strategy`, like dp4,tp2")
    if reader.flag("use_cpu"):
        reader.leave("use_cpu", "name a device that is a processor, such as local")
    dynamo = reader.section("dynamo_config")
    backend = dynamo.text("dynamo_backend") or reader.text("dynamo_backend")
    if backend:
        _read_compiler(dynamo, backend)
    return reader.settings(KIND, uses_deepspeed=kind == "deepspeed")


def _read_precision(reader: Reader) -> None:
    # Not `text`: in this place "no" is a value, and YAML 1.1 reads a bare no as false.
    value = reader.take("mixed_precision")
    written = "no" if value is False else str(value).casefold() if value is not None else ""
    if not written:
        return
    if written not in MIXED:
        raise UnknownName(f"mixed_precision in {reader.name}", written, MIXED)
    reader.set("precision", MIXED[written], "mixed_precision")


def _read_compiler(dynamo: Reader, backend: str) -> None:
    mode = dynamo.text("dynamo_mode")
    compiler = "reduce-overhead" if mode == "reduce-overhead" else _COMPILERS.get(backend)
    if compiler is None:
        dynamo.leave("dynamo_backend", backend)
    elif compiler != "none":
        dynamo.set("compile", compiler, "dynamo_backend")


def _read_several(reader: Reader) -> None:
    reader.set("strategy", "ddp", "distributed_type")


def _read_single(reader: Reader) -> None:
    """One process is started, whatever `num_processes` is (accelerate/commands/launch.py: simple_launcher)."""
    if "distributed_type" in reader.document:
        reader.entries[:] = [each for each in reader.entries if each.option not in ("gpus", "nodes")]


def _read_other(reader: Reader) -> None:
    reader.leave("distributed_type", str(reader.document.get("distributed_type")))


def _read_fsdp(reader: Reader) -> None:
    fsdp = reader.section("fsdp_config")
    fsdp.read_keys |= set(_HARMLESS_OF_FSDP)
    sharding = fsdp.text("fsdp_sharding_strategy")
    resharded = fsdp.take("fsdp_reshard_after_forward")
    if sharding and sharding not in _SHARDING:
        raise UnknownName(f"fsdp_sharding_strategy in {reader.name}", sharding, _SHARDING)
    if sharding.startswith("hybrid") or sharding in ("4", "5"):
        fsdp.leave("fsdp_sharding_strategy", "copies between nodes; taken as sharded over all GPUs")
    strategy = _SHARDING[sharding] if sharding else "zero2" if _is_false(resharded) else "fsdp"
    reader.set("strategy", strategy, "fsdp_config")
    if fsdp.flag("fsdp_activation_checkpointing"):
        fsdp.set("checkpointing", True, "fsdp_activation_checkpointing")
    if fsdp.flag("fsdp_offload_params"):
        set_fsdp_offload(fsdp, strategy, "fsdp_offload_params")


def _is_false(value: Any) -> bool:
    return value is False or (isinstance(value, str) and value.casefold() in ("false", "no_shard", "shard_grad_op"))


def _read_deepspeed(reader: Reader) -> None:
    inner = reader.section("deepspeed_config")
    inner.read_keys |= {"deepspeed_multinode_launcher", "zero3_init_flag", "zero3_save_16bit_model"}
    stage = inner.integer("zero_stage")
    if stage is not None:
        if stage not in range(4):
            raise inner.wrong("zero_stage", "0, 1, 2 or 3", stage)
        inner.set("strategy", f"zero{stage}" if stage else "ddp", "zero_stage")
    accumulate = inner.integer("gradient_accumulation_steps")
    if accumulate is not None:
        inner.set("accumulate", accumulate, "gradient_accumulation_steps")
    read_offload(inner, {key: inner.text(key) for key in ("offload_optimizer_device", "offload_param_device")})
    inner.read_keys.add("deepspeed_config_file")  # read beside this file


def _read_megatron(reader: Reader) -> None:
    inner = reader.section("megatron_lm_config")
    degrees = {short: inner.integer(f"megatron_lm_{short}_degree") or 1 for short in ("tp", "pp")}
    product = ",".join(f"{short}{degree}" for short, degree in degrees.items() if degree > 1)
    if product:
        reader.set("strategy", product, "megatron_lm_config")
    if inner.flag("megatron_lm_sequence_parallelism"):
        inner.set("sequence_parallel", True, "megatron_lm_sequence_parallelism")
    if inner.flag("megatron_lm_recompute_activations"):
        inner.set("checkpointing", "selective", "megatron_lm_recompute_activations")
    micro_batches = inner.integer("megatron_lm_num_micro_batches")
    if micro_batches is not None:
        inner.set("accumulate", micro_batches, "megatron_lm_num_micro_batches")


_SHARED = {
    "no": _read_single,
    "false": _read_single,
    "multi_gpu": _read_several,
    "fsdp": _read_fsdp,
    "deepspeed": _read_deepspeed,
    "megatron_lm": _read_megatron,
}
"""Ways to share the work, by `distributed_type`."""
