"""Files read by the trainers' own parsers say what they say here. Trainers that are not installed are skipped."""

from importlib.metadata import PackageNotFoundError, files
from json import dumps
from pathlib import Path
from typing import Any

import pytest

from epochcast.describe.capture.config.config_file import read_settings
from epochcast.describe.capture.config.setting import ConfigSettings

pytest.importorskip("yaml", reason="the extra yaml is not installed")

ARGUMENTS = """
output_dir: out
use_cpu: true
per_device_train_batch_size: 4
gradient_accumulation_steps: 8
num_train_epochs: 2
gradient_checkpointing: true
optim: adafactor
dataloader_num_workers: 3
max_steps: 500
"""
ACCELERATE = """
compute_environment: LOCAL_MACHINE
distributed_type: {kind}
mixed_precision: fp16
num_machines: 2
num_processes: 16
machine_rank: 0
main_training_function: main
downcast_bf16: 'no'
rdzv_backend: static
same_network: true
use_cpu: false
"""
SFT = """
model_name_or_path: Qwen/Qwen2.5-0.5B
output_dir: out
use_cpu: true
bf16: false
max_length: 512
packing: true
per_device_train_batch_size: 2
use_peft: true
lora_r: 16
lora_target_modules: [q_proj, v_proj]
load_in_4bit: true
"""
DEEPSPEED = {
    "train_batch_size": 32,
    "train_micro_batch_size_per_gpu": 8,
    "gradient_accumulation_steps": 4,
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
}
YOLO = "task: detect\nmode: train\nmodel: yolo11n.pt\ndata: coco8.yaml\nepochs: 12\nimgsz: 320\nworkers: 2\n"


def read(folder: Path, name: str, text: str) -> ConfigSettings:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return read_settings(file)[0]


def parsed_by_transformers(file: Path, *classes: Any) -> list[Any]:
    from epochcast.describe.capture.torch.torchvision_shim import import_torchvision

    import_torchvision()  # transformers imports it, and here it has no operators of its own
    from transformers import HfArgumentParser

    return list(HfArgumentParser(list(classes)).parse_yaml_file(str(file), allow_extra_keys=True))


@pytest.mark.parametrize("name", ["gradient_checkpointing", "activation_checkpointing"])
def test_transformers_reads_the_same_arguments(tmp_path: Path, name: str) -> None:
    pytest.importorskip("transformers", "5")
    pytest.importorskip("accelerate")
    settings = read(tmp_path, "args.yaml", ARGUMENTS.replace("gradient_checkpointing", name))
    from epochcast.describe.capture.torch.torchvision_shim import import_torchvision

    import_torchvision()
    from transformers import TrainingArguments

    (arguments,) = parsed_by_transformers(tmp_path / "args.yaml", TrainingArguments)
    assert settings.value("batch") == arguments.per_device_train_batch_size
    assert settings.value("accumulate") == arguments.gradient_accumulation_steps
    assert settings.value("checkpointing") == getattr(arguments, name)
    assert settings.value("workers") == arguments.dataloader_num_workers
    assert settings.value("max_steps") == arguments.max_steps
    assert settings.value("optimizer") == str(arguments.optim).rpartition(".")[2].casefold()


@pytest.mark.parametrize("kind", ["MULTI_GPU", "NO"])
def test_accelerate_reads_the_same_places(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("accelerate")
    from accelerate.commands.config.config_args import load_config_from_file

    settings = read(tmp_path, "accelerate.yaml", ACCELERATE.format(kind=f"'{kind}'"))
    config = load_config_from_file(str(tmp_path / "accelerate.yaml"))
    is_alone = str(config.distributed_type).endswith("NO")
    assert is_alone == (kind == "NO")
    assert settings.value("gpus") == (None if is_alone else config.num_processes)
    assert settings.value("nodes") == (None if is_alone else config.num_machines)
    assert settings.value("precision") == f"amp_{config.mixed_precision}"
    assert not settings.unread


def test_trl_reads_the_same_settings(tmp_path: Path) -> None:
    pytest.importorskip("trl")
    from epochcast.describe.capture.torch.torchvision_shim import import_torchvision

    import_torchvision()
    trl: Any = pytest.importorskip("trl")
    settings = read(tmp_path, "sft.yaml", SFT)
    arguments, model = parsed_by_transformers(tmp_path / "sft.yaml", trl.SFTConfig, trl.ModelConfig)
    assert settings.value("model") == model.model_name_or_path
    assert settings.value("input_shape") == (arguments.max_length,)
    assert settings.value("packing") == arguments.packing
    assert settings.value("batch") == arguments.per_device_train_batch_size
    assert settings.value("checkpointing") in (arguments.gradient_checkpointing, "full")
    assert (settings.value("lora"), list(settings.value("lora_targets"))) == (model.lora_r, model.lora_target_modules)
    assert settings.value("lora_dropout") == model.lora_dropout


def test_deepspeed_reads_the_same_config(tmp_path: Path) -> None:
    runtime: Any = pytest.importorskip("deepspeed.runtime.config")
    settings = read(tmp_path, "ds.json", dumps(DEEPSPEED))
    config = runtime.DeepSpeedConfig(DEEPSPEED)
    assert settings.value("batch") == config.train_micro_batch_size_per_gpu
    assert settings.value("accumulate") == config.gradient_accumulation_steps
    assert settings.value("strategy") == f"zero{config.zero_optimization_stage}"


def test_ultralytics_reads_the_same_arguments(tmp_path: Path) -> None:
    cfg: Any = pytest.importorskip("ultralytics.cfg")
    settings = read(tmp_path, "args.yaml", YOLO)
    arguments = cfg.get_cfg(str(tmp_path / "args.yaml"))
    defaults = cfg.get_cfg()
    assert settings.value("epochs") == arguments.epochs
    assert settings.value("input_shape") == (3, arguments.imgsz, arguments.imgsz)
    assert settings.value("workers") == arguments.workers
    assert settings.value("batch") == defaults.batch
    assert settings.value("accumulate") == round(defaults.nbs / defaults.batch)
    assert (settings.value("precision") == "amp_fp16") == defaults.amp


def test_every_fine_tuning_recipe_of_torchtune_is_read() -> None:
    try:
        shipped = files("torchtune") or []
    except PackageNotFoundError:
        pytest.skip("torchtune is not installed")
    recipes = [Path(str(each.locate())) for each in shipped if "recipes/configs/" in str(each)]
    trained = [file for file in recipes if "lora" in file.name or "full" in file.name]
    read_files = {file: read_settings(file)[0] for file in trained if "ppo" not in file.name}
    assert read_files
    incomplete = [
        file.name
        for file, settings in read_files.items()
        if any(settings.value(name) is None for name in ("model", "batch", "precision", "epochs"))
        or (file.name.endswith("lora.yaml") and not settings.value("lora"))
    ]
    assert not incomplete
