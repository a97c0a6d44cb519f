"""Lightning's Trainer: its arguments as called in a script, or the `trainer` table of a LightningCLI's YAML."""

from collections.abc import Mapping
from typing import Any

from epochcast.describe.capture.config.offloads import OPTIMIZER, PARAMETERS, set_fsdp_offload
from epochcast.describe.capture.config.optimizers import match_optimizer
from epochcast.describe.capture.config.precisions import LIGHTNING
from epochcast.describe.capture.config.setting import STEPS, ConfigSettings, Reader

KIND = "Lightning"
DEEPSPEED_STAGE = 2
"""Of DeepSpeedStrategy where none is given."""

_STRATEGIES: Mapping[str, str] = {
    "ddp": "ddp",
    "ddp_spawn": "ddp",
    "ddp_notebook": "ddp",
    "ddp_fork": "ddp",
    "ddp_find_unused_parameters_true": "ddp",
    "ddp_find_unused_parameters_false": "ddp",
    "ddpstrategy": "ddp",
    "dp": "data_parallel",
    "fsdp": "fsdp",
    "fsdp_cpu_offload": "fsdp",
    "fsdpstrategy": "fsdp",
    "horovod": "horovod",
    "deepspeed": f"zero{DEEPSPEED_STAGE}",
    "deepspeedstrategy": f"zero{DEEPSPEED_STAGE}",
}
_SHARDING: Mapping[str, str] = {
    "full_shard": "fsdp",
    "shard_grad_op": "zero2",
    "no_shard": "ddp",
    "hybrid_shard": "fsdp",
}


def is_lightning(document: Mapping[str, Any]) -> bool:
    """Whether it is a config of a LightningCLI."""
    return isinstance(document.get("trainer"), Mapping)


def read_lightning(name: str, document: Mapping[str, Any]) -> ConfigSettings:
    """What the config says of a job: the trainer, the optimizer, and the batch of the data module."""
    reader = Reader(name, document)
    uses_deepspeed = read_trainer(reader.section("trainer"))
    optimizer = reader.section("optimizer")
    class_path = optimizer.take("class_path")
    if isinstance(class_path, str):
        arguments = optimizer.section("init_args")
        optimizer_match = match_optimizer(
            class_path,
            momentum=arguments.take("momentum"),
            nesterov=arguments.take("nesterov"),
            is_fused=arguments.take("fused"),
        )
        optimizer.set("optimizer", optimizer_match.name, "class_path", problem=optimizer_match.problem)
        if optimizer_match.note:
            reader.notes.append(optimizer_match.note)
    data = reader.section("data")
    for place in (data, data.section("init_args")):
        batch = place.integer("batch_size")
        if batch is not None:
            place.set("batch", batch, "batch_size")
        workers = place.integer("num_workers")
        if workers is not None:
            place.set("workers", workers, "num_workers")
    reader.read_keys |= {"seed_everything", "ckpt_path"}
    return reader.settings(KIND, uses_deepspeed=uses_deepspeed)


def read_trainer(reader: Reader) -> bool:
    """The arguments of a Trainer; whether it trains with DeepSpeed."""
    uses_deepspeed = _read_strategy(reader)
    _read_precision(reader)
    _read_devices(reader)
    accumulate = reader.integer("accumulate_grad_batches")
    if accumulate is not None:
        reader.set("accumulate", accumulate, "accumulate_grad_batches")
    epochs, steps = reader.integer("max_epochs"), reader.integer("max_steps")
    if steps is not None and steps > 0:
        reader.set(STEPS, steps, "max_steps")
    elif epochs is not None and epochs > 0:
        reader.set("epochs", epochs, "max_epochs")
    for key in ("limit_train_batches", "overfit_batches"):
        if reader.take(key) not in (None, 1.0, 0, 0.0):
            reader.leave(key, "give `samples`")
    if reader.flag("fast_dev_run"):
        reader.leave("fast_dev_run", "the whole training is forecast")
    accelerator = reader.text("accelerator")
    if accelerator not in ("", "gpu", "cuda"):
        reader.leave("accelerator", accelerator)
    return uses_deepspeed


def _read_strategy(reader: Reader) -> bool:
    value = reader.take("strategy")
    arguments: Mapping[str, Any] = {}
    if isinstance(value, Mapping):
        arguments = value.get("init_args") or {}
        value = str(value.get("class_path", "")).rpartition(".")[2]
    if value is None:
        return False
    word = str(value).strip().casefold()
    if word.startswith("deepspeed"):
        _read_deepspeed(reader, word, arguments)
        return True
    strategy = _STRATEGIES.get(word)
    if strategy is None:
        reader.leave("strategy", word)
        return False
    sharding = str(arguments.get("sharding_strategy", "")).casefold()
    strategy = _SHARDING.get(sharding, strategy)
    reader.set("strategy", strategy, "strategy")
    if "offload" in word or arguments.get("cpu_offload"):
        set_fsdp_offload(reader, strategy, "strategy")
    if arguments.get("activation_checkpointing_policy") or arguments.get("activation_checkpointing"):
        reader.set("checkpointing", True, "strategy")
    return False


def _read_deepspeed(reader: Reader, word: str, arguments: Mapping[str, Any]) -> None:
    stages = [stage for stage in (1, 2, 3) if f"stage_{stage}" in word]
    stage = arguments.get("stage", stages[0] if stages else DEEPSPEED_STAGE)
    if stage not in (0, 1, 2, 3):
        raise reader.wrong("strategy.stage", "0, 1, 2 or 3", stage)
    reader.set("strategy", f"zero{stage}" if stage else "ddp", "strategy")
    if arguments.get("offload_parameters") or ("offload" in word and stage == 3):
        reader.set("offload", PARAMETERS, "strategy")
    elif arguments.get("offload_optimizer") or "offload" in word:
        reader.set("offload", OPTIMIZER, "strategy")


def _read_precision(reader: Reader) -> None:
    word = reader.text("precision")
    if not word:
        return
    if word not in LIGHTNING:
        reader.leave("precision", word)
        return
    reader.set("precision", LIGHTNING[word], "precision")


def _read_devices(reader: Reader) -> None:
    """GPUs of one node times nodes."""
    nodes = reader.integer("num_nodes")
    value = reader.document.get("devices", reader.document.get("gpus"))
    reader.read_keys |= {"devices", "gpus"}
    devices: int | None = None
    if isinstance(value, list):
        devices = len(value)
    elif isinstance(value, str) and "," in value:
        devices = len([part for part in value.split(",") if part.strip()])
    elif isinstance(value, int) and not isinstance(value, bool) and value > 0:
        devices = value
    elif isinstance(value, str) and value.isdecimal():
        devices = int(value)
    elif value is not None:
        reader.leave("devices", f"{value}: as many as the machine has; give `gpus`")
    if devices is not None:
        reader.set("gpus", devices * (nodes or 1), "devices")
    if nodes is not None and (devices is not None or nodes > 1):
        reader.set("nodes", nodes, "num_nodes")
