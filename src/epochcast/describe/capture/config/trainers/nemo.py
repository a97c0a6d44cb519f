"""NeMo's YAML (megatron_gpt_config.yaml: `trainer` and `model`) and NeMo AutoModel's recipes (`_target_`).

NeMo's model has Megatron's names; AutoModel loads a model of the Hub, shards it (FSDP2Manager) and may add LoRA.
"""

from collections.abc import Mapping

from epochcast.describe.capture.config.key_table import (
    MODEL,
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
    set_optimizer,
    stated,
    states,
    when,
)
from epochcast.describe.capture.config.precisions import LIGHTNING
from epochcast.describe.capture.config.setting import GLOBAL_BATCH, STEPS, Reader
from epochcast.describe.capture.config.trainers.megatron import read_decoder, read_layout, read_recomputing
from epochcast.describe.capture.config.trainers.shared_rows import AS_THE_MODEL, SEQUENCES_WHOLE, set_dataset
from epochcast.describe.graph.adapters import ALL_LINEAR

DEFAULT_RANK = 8
RANK_OF_SCHEME = 32
"""Of AutoModel's `PeftConfig`, and of `model.peft.lora_tuning` (megatron_gpt_finetuning_config.yaml)."""
# Layers of Megatron's decoder by the words of `target_modules`.
_LAYERS: Mapping[str, tuple[str, ...]] = {
    "attention_qkv": ("qkv",),
    "attention_dense": ("out",),
    "mlp_fc1": ("up",),
    "mlp_fc2": ("down",),
    "attention": ("qkv", "out"),
    "mlp": ("up", "down"),
    "all": ("qkv", "out", "up", "down"),
}


def _finish(reader: Reader) -> None:
    devices, nodes = positive(reader, "trainer.devices"), positive(reader, "trainer.num_nodes")
    if devices:
        reader.set("gpus", devices * (nodes or 1), "trainer.devices")
    read_decoder(reader, "model.")
    is_sharded = "distributed" in reader.text("model.optim.name")
    reader.document = {**reader.document, "model.optim.is_sharded": is_sharded}
    read_layout(reader, "model.", is_sharded="optim.is_sharded")
    read_recomputing(reader, "model.activations_checkpoint_granularity", "model.activations_checkpoint_method")
    reader.read_keys |= {"model.activations_checkpoint_num_layers", "model.optim.is_sharded"}
    word = reader.text("trainer.precision")
    precision = LIGHTNING.get(word, "")
    if is_set(reader, "model.fp8"):
        reader.set("precision", "fp8", "model.fp8")
    elif precision.startswith("amp_") or precision in ("bf16", "fp16"):
        reader.set("precision", f"{precision.removeprefix('amp_')}_master", "trainer.precision")
    elif precision:
        reader.set("precision", precision, "trainer.precision")
    written = reader.text("model.optim.name")
    if written:
        set_optimizer(reader, "adamw" if written.endswith("fused_adam") else written, "model.optim.name")
    _read_scheme(reader)
    if states(reader, STEPS):
        reader.entries[:] = [each for each in reader.entries if each.option != "epochs"]


def _read_scheme(reader: Reader) -> None:
    """LoRA beside layers of Megatron's names; what others add is small and not modelled."""
    scheme, prefix = reader.text("model.peft.peft_scheme"), "model.peft.lora_tuning."
    if scheme not in ("lora", "qlora"):
        if scheme not in ("", "none"):
            reader.leave("model.peft.peft_scheme", f"{scheme}: {AS_THE_MODEL}")
        return
    rank = positive(reader, f"{prefix}adapter_dim")
    reader.set("lora", rank or RANK_OF_SCHEME, f"{prefix}adapter_dim", is_default=rank is None)
    targets = names(reader, f"{prefix}target_modules")
    layers = [layer for target in targets or ("attention_qkv",) for layer in _LAYERS.get(target, (target,))]
    is_gated = ",style=" not in str(stated(reader, MODEL))
    layers = ["gate_up" if layer == "up" and is_gated else layer for layer in layers]
    reader.set("lora_targets", tuple(layers), f"{prefix}target_modules", is_default=targets is None)
    dropout = number(reader, f"{prefix}adapter_dropout")
    if dropout is not None:
        reader.set("lora_dropout", dropout, f"{prefix}adapter_dropout")
    if scheme == "qlora":
        reader.set("quantize", "nf4", "model.peft.peft_scheme")


NEMO = Trainer(
    "NeMo",
    marks=(frozenset({"model.micro_batch_size", "model.global_batch_size"}),),
    keys={
        "model.micro_batch_size": says("batch", positive),
        "model.global_batch_size": says(GLOBAL_BATCH, positive),
        "model.data.train_ds.max_seq_length": says("input_shape", length),
        "model.encoder_seq_length": says("input_shape", length),
        "model.data.seq_length": says("input_shape", length),
        "model.max_position_embeddings": says("input_shape", length),
        "model.data.num_workers": says("workers"),
        "model.data.train_ds.num_workers": says("workers"),
        "model.sequence_parallel": when("sequence_parallel", True),
        "trainer.max_steps": says(STEPS, positive),
        "trainer.max_epochs": lambda reader, key: (
            None if states(reader, STEPS) else says("epochs", positive)(reader, key)
        ),
        "trainer.num_nodes": says("nodes", positive),
        "model.rampup_batch_size": not_modelled("the full batch is forecast from the first step"),
        "model.ub_tp_comm_overlap": not_modelled("exchanges of tensor parallelism are forecast as waited for"),
        "trainer.val_check_interval": passed_over,
        "model.cpu_offloading": not_modelled("activations are forecast on the GPU"),
        "model.fsdp": not_modelled("give `strategy` fsdp"),
        "model.group_query_attention": passed_over,
    },
    harmless=("name", "restore_from_path", "trainer.*", "exp_manager*", "model.*", "run.*", "inference*", "hydra*"),
    defaults={"optimizer": "adamw", "host_class": "large_trainer"},
    finish=_finish,
    programs=("megatron_gpt_pretraining.py", "megatron_gpt_finetuning.py"),
)


def _finish_automodel(reader: Reader) -> None:
    prefix = "distributed."
    ways = {short: positive(reader, f"{prefix}{short}_size") or 1 for short in ("tp", "cp", "pp")}
    if ways["cp"] > 1:
        reader.leave(f"{prefix}cp_size", SEQUENCES_WHOLE)
    if ways["tp"] > 1 or ways["pp"] > 1:
        reader.leave(f"{prefix}tp_size", "tensor and pipeline parallelism: give `strategy`")
    kind = str(reader.take(f"{prefix}_target_") or "")
    if kind:
        reader.set("strategy", "ddp" if "DDP" in kind else "fsdp", f"{prefix}_target_")
    if any(key.startswith("peft.") for key in reader.document):
        _read_adapter(reader)
    written = str(reader.take("optimizer._target_") or "")
    if written:
        set_optimizer(reader, written.rpartition(".")[2], "optimizer._target_")
    packed = positive(reader, "packed_sequence.packed_sequence_size")
    if packed:
        reader.set("input_shape", (packed,), "packed_sequence.packed_sequence_size")
        reader.set("packing", True, "packed_sequence.packed_sequence_size")
    set_dataset(reader, str(reader.take("dataset.dataset_name") or ""), "dataset")
    if stated(reader, STEPS) and states(reader, "epochs"):
        reader.entries[:] = [each for each in reader.entries if each.option != "epochs"]


def _read_adapter(reader: Reader) -> None:
    rank = positive(reader, "peft.dim")
    reader.set("lora", rank or DEFAULT_RANK, "peft.dim", is_default=rank is None)
    targets = (ALL_LINEAR,) if is_set(reader, "peft.match_all_linear") else names(reader, "peft.target_modules")
    if targets:
        reader.set("lora_targets", tuple(each.strip("*") for each in targets), "peft.target_modules")
    if is_set(reader, "peft.use_dora"):
        reader.set("adapter", "dora", "peft.use_dora")
    if is_set(reader, "quantization.load_in_4bit"):
        reader.set("quantize", "nf4", "quantization.load_in_4bit")


NEMO_AUTOMODEL = Trainer(
    "NeMo AutoModel",
    marks=(frozenset({"model._target_", "step_scheduler.global_batch_size"}),),
    keys={
        "model.pretrained_model_name_or_path": says(MODEL, name),
        "step_scheduler.local_batch_size": says("batch", positive),
        "step_scheduler.global_batch_size": says(GLOBAL_BATCH, positive),
        "step_scheduler.max_steps": says(STEPS, positive),
        "step_scheduler.num_epochs": says("epochs", positive),
        "dataset.seq_length": says("input_shape", length),
        "dataloader.num_workers": says("workers"),
        "model.use_liger_kernel": passed_over,
        "distributed.activation_checkpointing": when("checkpointing", True),
    },
    harmless=(
        *("step_scheduler.*", "dist_env*", "rng*", "model.*", "checkpoint*", "distributed.*", "loss_fn*", "dataset.*"),
        *(
            "packed_sequence.*",
            "dataloader.*",
            "validation*",
            "optimizer.*",
            "lr_scheduler*",
            "peft.*",
            "wandb*",
            "recipe",
        ),
        *("quantization.*", "mlflow*", "auto_resume*"),
    ),
    defaults={"precision": "bf16", "optimizer": "adamw"},
    finish=_finish_automodel,
    programs=("automodel",),
)
