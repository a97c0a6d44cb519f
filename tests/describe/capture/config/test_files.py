"""Config files of other tools, as people write them."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from epochcast.describe.capture.config.config_file import read_settings
from epochcast.describe.capture.config.setting import ConfigSettings
from epochcast.errors import BadInput, EpochcastError, MissingExtra

pytest.importorskip("yaml", reason="the extra yaml is not installed")

DEEPSPEED = {
    "train_micro_batch_size_per_gpu": 4,
    "gradient_accumulation_steps": 8,
    "train_batch_size": "auto",
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "none"}, "overlap_comm": True},
    "optimizer": {"type": "Adam", "params": {"lr": 1e-4, "betas": [0.9, 0.95]}},
    "gradient_clipping": 1.0,
}
ACCELERATE = """
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
mixed_precision: bf16
num_processes: 16
num_machines: 2
fsdp_config:
  fsdp_sharding_strategy: SHARD_GRAD_OP
  fsdp_activation_checkpointing: true
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
"""
ARGUMENTS = {
    "output_dir": "out",
    "per_device_train_batch_size": 4,
    "gradient_accumulation_steps": 2,
    "fp16": True,
    "optim": "adamw_torch_fused",
    "num_train_epochs": 2.0,
    "gradient_checkpointing": True,
    "learning_rate": 2e-5,
}
LIGHTNING_CLI = """
trainer: {precision: bf16-mixed, devices: 4, num_nodes: 2, strategy: ddp, accumulate_grad_batches: 2, max_epochs: 20}
model: {class_path: my.Net, init_args: {width: 128}}
data: {class_path: my.Data, init_args: {batch_size: 32}}
optimizer: {class_path: torch.optim.SGD, init_args: {lr: 0.1, momentum: 0.9, nesterov: true}}
"""


def read(folder: Path, name: str, content: object) -> ConfigSettings:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    first, *_ = read_settings(path)
    return first


def values(settings: ConfigSettings) -> dict[str, Any]:
    return {setting.option: setting.value for setting in settings.settings if not setting.is_default}


def test_deepspeed_says_batches_stage_precision_and_optimizer(tmp_path: Path) -> None:
    settings = read(tmp_path, "ds.json", DEEPSPEED)
    assert settings.kind == "DeepSpeed"
    assert values(settings) == {
        "batch": 4,
        "accumulate": 8,
        "precision": "bf16_deepspeed",
        "strategy": "zero2",
        "optimizer": "adamw",  # DeepSpeed's Adam decays weights as AdamW does
        "update_style": "fused",
    }
    assert settings.unread == ("gradient_clipping", "zero_optimization.overlap_comm")
    assert settings.not_modelled == ()


def test_deepspeeds_plain_adam_has_to_be_asked_for(tmp_path: Path) -> None:
    adam = {"type": "Adam", "params": {"adam_w_mode": False, "torch_adam": True}}
    assert values(read(tmp_path, "ds.json", {**DEEPSPEED, "optimizer": adam}))["optimizer"] == "adam"


def test_accelerate_says_processes_precision_and_sharding(tmp_path: Path) -> None:
    settings = read(tmp_path, "default_config.yaml", ACCELERATE)
    assert settings.kind == "Accelerate"
    assert values(settings) == {
        "gpus": 16,
        "nodes": 2,
        "precision": "amp_bf16",
        "strategy": "zero2",
        "checkpointing": True,
    }
    assert settings.unread == ()  # layers are wrapped one by one, as assumed


@pytest.mark.parametrize(
    ("written", "precision"), [("no", "fp32"), ("'no'", "fp32"), ("fp16", "amp_fp16"), ("fp8", "fp8")]
)
def test_a_bare_no_is_a_precision(written: str, precision: str, tmp_path: Path) -> None:
    text = f"distributed_type: MULTI_GPU\nnum_processes: 2\nmixed_precision: {written}\n"
    assert values(read(tmp_path, "a.yaml", text))["precision"] == precision


def test_megatron_under_accelerate_is_a_product_of_degrees(tmp_path: Path) -> None:
    text = "distributed_type: MEGATRON_LM\nmegatron_lm_config: {megatron_lm_tp_degree: 4, megatron_lm_pp_degree: 2}\n"
    assert values(read(tmp_path, "a.yaml", text))["strategy"] == "tp4,pp2"


def test_training_arguments_have_defaults(tmp_path: Path) -> None:
    settings = read(tmp_path, "args.json", ARGUMENTS)
    assert values(settings) == {
        "batch": 4,
        "accumulate": 2,
        "epochs": 2,
        "precision": "amp_fp16",
        "optimizer": "adamw",
        "update_style": "fused",
        "checkpointing": True,
    }
    bare = read(tmp_path, "bare.json", {"lr_scheduler_type": "cosine", "output_dir": "out"})
    assert {s.option: s.value for s in bare.settings if s.is_default} == {
        "batch": 8,
        "epochs": 3,
        "optimizer": "adamw",
        "precision": "fp32",
        "workers": 0,
    }


def test_training_arguments_bring_their_deepspeed_config(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(json.dumps(DEEPSPEED))
    (tmp_path / "args.yaml").write_text("per_device_train_batch_size: 2\nbf16: true\ndeepspeed: ds.json\n")
    arguments, deepspeed = read_settings(tmp_path / "args.yaml")
    assert arguments.uses_deepspeed
    assert (deepspeed.name, deepspeed.value("strategy")) == ("ds.json", "zero2")


def test_a_deepspeed_config_that_is_not_there_is_missed(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"args\.json: there is no DeepSpeed config 'no\.json'"):
        read(tmp_path, "args.json", {**ARGUMENTS, "deepspeed": "no.json"})


def test_lightning_cli_counts_devices_per_node(tmp_path: Path) -> None:
    settings = read(tmp_path, "config.yaml", LIGHTNING_CLI)
    assert values(settings) == {
        "strategy": "ddp",
        "precision": "amp_bf16",
        "gpus": 8,
        "nodes": 2,
        "accumulate": 2,
        "epochs": 20,
        "optimizer": "nesterov",
        "batch": 32,
    }


@pytest.mark.parametrize(
    ("strategy", "ours"),
    [("deepspeed_stage_3_offload", "zero3"), ("deepspeed", "zero2"), ("fsdp", "fsdp"), ("dp", "data_parallel")],
)
def test_lightnings_strategies_have_our_names(strategy: str, ours: str, tmp_path: Path) -> None:
    settings = read(tmp_path, "config.yaml", f"trainer: {{strategy: {strategy}}}\n")
    assert values(settings)["strategy"] == ours
    assert settings.uses_deepspeed == strategy.startswith("deepspeed")
    assert values(settings).get("offload") == ("parameters" if "offload" in strategy else None)
    assert not settings.not_modelled


@pytest.mark.parametrize(
    ("zero", "offload"),
    [
        ({"stage": 2, "offload_optimizer": {"device": "cpu"}}, "optimizer"),
        ({"stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}, "parameters"),
        ({"stage": 3, "offload_param": {"device": "nvme"}}, None),
    ],
)
def test_what_deepspeed_leaves_to_the_host(zero: dict[str, Any], offload: str | None, tmp_path: Path) -> None:
    settings = read(tmp_path, "ds.json", {**DEEPSPEED, "zero_optimization": zero})
    assert values(settings).get("offload") == offload
    assert bool(settings.not_modelled) == (offload is None)


@pytest.mark.parametrize("name", ["ds.json", "a.yaml"])
@pytest.mark.parametrize(
    "content",
    [
        "",
        "[1, 2]",
        "{",
        "\x00",
        "a: &x [1]\nb: *x\n",
        "!!python/object/apply:os.system ['true']",
        "{" * 5000,
        "[" * 20000,
        '{"train_micro_batch_size_per_gpu": "many"}',
        '{"zero_optimization": 3}',
        '{"zero_optimization": {"stage": 7}}',
        '{"bf16": 1, "train_batch_size": 3}',
        "distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: [1]}\n",
        '{"weights": 1}',
    ],
)
def test_what_is_no_config_is_one_clear_line(name: str, content: str, tmp_path: Path) -> None:
    with pytest.raises(EpochcastError) as caught:
        read(tmp_path, name, content)
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


def test_yaml_needs_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingExtra, match=r"this needs PyYAML; .*pip install '\.\[yaml\]'"):
        read(tmp_path, "a.yaml", ACCELERATE)
    assert read(tmp_path, "ds.json", DEEPSPEED).kind == "DeepSpeed"


def test_a_folder_and_a_missing_file_are_said(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is a folder"):
        read_settings(tmp_path)
    with pytest.raises(BadInput, match="there is no file"):
        read_settings(tmp_path / "no.json")
