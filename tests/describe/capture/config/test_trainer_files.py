"""Files of trainers, written after each trainer's documentation, and what they say of a job."""

from pathlib import Path
from typing import Any

import pytest

from epochcast.describe.capture.config.config_file import read_settings
from epochcast.describe.capture.config.setting import ConfigSettings
from epochcast.describe.capture.config.trainers.trainer_table import TRAINERS
from epochcast.errors import BadInput
from epochcast.predict.forecast import job_settings
from epochcast.predict.forecast.job_settings import NoModel, filled

pytest.importorskip("yaml", reason="the extra yaml is not installed")

AXOLOTL = """
base_model: meta-llama/Llama-3.1-8B
load_in_4bit: true
adapter: qlora
lora_r: 32
lora_alpha: 16
lora_dropout: 0.05
lora_target_linear: true
datasets:
  - {path: tatsu-lab/alpaca, type: alpaca}
sequence_len: 2048
sample_packing: true
gradient_accumulation_steps: 4
micro_batch_size: 2
num_epochs: 3
optimizer: paged_adamw_8bit
bf16: auto
tf32: false
gradient_checkpointing: true
flash_attention: true
peft_use_dora: true
dataloader_num_workers: 2
warmup_ratio: 0.1
"""
LLAMA_FACTORY = """
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 16
lora_target: q_proj,v_proj
quantization_bit: 4
dataset: identity,alpaca_en_demo
template: qwen
cutoff_len: 1024
max_samples: 1000
output_dir: saves/out
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
num_train_epochs: 3.0
lr_scheduler_type: cosine
bf16: true
enable_liger_kernel: true
"""
TORCHTUNE = """
output_dir: /tmp/out
tokenizer: {_component_: torchtune.models.llama3.llama3_tokenizer, path: /tmp/tokenizer.model, max_seq_len: 4096}
model:
  _component_: torchtune.models.llama3_1.qlora_llama3_1_8b
  lora_attn_modules: [q_proj, v_proj, output_proj]
  apply_lora_to_mlp: true
  lora_rank: 8
  lora_alpha: 16
dataset: {_component_: torchtune.datasets.alpaca_dataset, packed: true}
optimizer: {_component_: bitsandbytes.optim.PagedAdamW8bit, lr: 2e-5}
loss: {_component_: torchtune.modules.loss.LinearCrossEntropyLoss}
batch_size: 2
epochs: 1
gradient_accumulation_steps: 8
compile: true
dtype: bf16
enable_activation_checkpointing: true
enable_activation_offloading: false
metric_logger: {_component_: torchtune.training.metric_logging.DiskLogger, log_dir: out}
"""
KOHYA = """
[model]
pretrained_model_name_or_path = "stabilityai/stable-diffusion-xl-base-1.0"
[additional_network]
network_module = "networks.lora"
network_dim = 32
network_alpha = 16
network_train_unet_only = true
[training]
resolution = "1024,768"
train_batch_size = 2
max_train_steps = 1000
mixed_precision = "bf16"
optimizer_type = "AdamW8bit"
gradient_checkpointing = true
cache_latents = true
cache_text_encoder_outputs = true
max_data_loader_n_workers = 4
"""
KOHYA_DATA = """
[general]
enable_bucket = true
caption_extension = ".txt"
[[datasets]]
resolution = 768
batch_size = 4
  [[datasets.subsets]]
  image_dir = "pictures"
  num_repeats = 10
"""
ULTRALYTICS = """
task: detect
mode: train
model: yolov3.pt
data: coco.yaml
epochs: 50
batch: 16
imgsz: 512
device: [0, 1]
workers: 6
optimizer: AdamW
amp: true
close_mosaic: 10
"""


def read(folder: Path, name: str, content: str) -> ConfigSettings:
    (folder / name).write_text(content, encoding="utf-8")
    first, *_ = read_settings(folder / name)
    return first


def values(settings: ConfigSettings) -> dict[str, Any]:
    return {setting.option: setting.value for setting in settings.settings}


def test_axolotl(tmp_path: Path) -> None:
    settings = read(tmp_path, "train.yml", AXOLOTL)
    assert settings.kind == "axolotl"
    assert values(settings) == {
        "model": "meta-llama/Llama-3.1-8B",
        "lora": 32,
        "lora_targets": ("all-linear",),
        "lora_dropout": 0.05,
        "quantize": "nf4-dq",
        "dataset": "alpaca",
        "input_shape": (2048,),
        "packing": True,
        "batch": 2,
        "accumulate": 4,
        "epochs": 3,
        "optimizer": "paged_adamw8bit",
        "precision": "amp_bf16",
        "weights": "bf16",
        "checkpointing": True,
        "attention": "flash",
        "workers": 2,
        "adapter": "dora",
    }
    assert (settings.unread, settings.not_modelled) == ((), ())


def test_axolotl_trains_all_weights_in_half_without_an_adapter(tmp_path: Path) -> None:
    text = "base_model: NousResearch/Llama-2-7b-hf\nmicro_batch_size: 1\nlora_r: 8\nlora_target_linear: true\n"
    options = values(read(tmp_path, "full.yml", text))
    assert (options["precision"], options["weights"], options["input_shape"]) == ("amp_bf16", "bf16", (512,))
    assert not {"lora", "lora_targets", "quantize"} & set(options)


def test_axolotl_with_deepspeed_names_the_stage(tmp_path: Path) -> None:
    (tmp_path / "train.yml").write_text(
        "base_model: gpt2\nmicro_batch_size: 1\ndeepspeed: deepspeed_configs/zero3_bf16.json\nbf16: true\n"
    )
    of_trainer, of_deepspeed = read_settings(tmp_path / "train.yml")
    assert of_trainer.uses_deepspeed and "weights" not in values(of_trainer)
    assert values(of_deepspeed) == {"strategy": "zero3"}
    assert filled(None, {}, [tmp_path / "train.yml"]).options["precision"] == "bf16_deepspeed"


def test_llama_factory(tmp_path: Path) -> None:
    settings = read(tmp_path, "lora.yaml", LLAMA_FACTORY)
    assert settings.kind == "LLaMA-Factory"
    assert values(settings) == {
        "model": "Qwen/Qwen2.5-7B-Instruct",
        "lora": 16,
        "lora_targets": ("q_proj", "v_proj"),
        "lora_dropout": 0.0,
        "quantize": "nf4-dq",
        "input_shape": (1024,),
        "samples": 2000,
        "batch": 1,
        "accumulate": 8,
        "epochs": 3,
        "precision": "amp_bf16",
        "weights": "bf16",
        "checkpointing": True,
        "optimizer": "adamw",
        "kernels": "liger",
    }
    assert (settings.unread, settings.not_modelled) == ((), ())


def test_llama_factory_trains_lora_on_all_layers_unless_told(tmp_path: Path) -> None:
    options = values(read(tmp_path, "short.yaml", "model_name_or_path: gpt2\nstage: sft\ncutoff_len: 512\n"))
    assert (options["lora"], options["lora_targets"], options["checkpointing"]) == (8, ("all-linear",), True)


def test_torchtune(tmp_path: Path) -> None:
    settings = read(tmp_path, "recipe.yaml", TORCHTUNE)
    assert settings.kind == "torchtune"
    assert values(settings) == {
        "model": "meta-llama/Llama-3.1-8B",
        "lora": 8,
        "lora_targets": ("q_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
        "lora_dropout": 0.0,
        "quantize": "nf4-dq",
        "input_shape": (4096,),
        "packing": True,
        "dataset": "alpaca",
        "batch": 2,
        "accumulate": 8,
        "epochs": 1,
        "precision": "bf16",
        "optimizer": "paged_adamw8bit",
        "checkpointing": True,
        "compile": "inductor",
        "loss_chunks": 8,
    }
    assert (settings.unread, settings.not_modelled) == ((), ())


def test_kohya(tmp_path: Path) -> None:
    settings = read(tmp_path, "lora.toml", KOHYA)
    assert settings.kind == "kohya sd-scripts"
    assert values(settings) == {
        "model": "stabilityai/stable-diffusion-xl-base-1.0",
        "lora": 32,
        "lora_targets": ("to_q", "to_k", "to_v", "0", "proj", "2"),
        "lora_dropout": 0.0,
        "input_shape": (4, 96, 128),
        "batch": 2,
        "max_steps": 1000,
        "precision": "amp_bf16",
        "weights": "bf16",
        "optimizer": "adamw8bit",
        "checkpointing": True,
        "workers": 4,
        "host_class": "diffusion_trainer",
    }
    assert (settings.unread, settings.not_modelled) == ((), ())


def test_kohyas_data_file_has_batch_and_resolution(tmp_path: Path) -> None:
    (tmp_path / "data.toml").write_text(KOHYA_DATA)
    (tmp_path / "lora.toml").write_text(KOHYA.replace("train_batch_size = 2\n", ""))
    options = filled(None, {}, [tmp_path / "lora.toml", tmp_path / "data.toml"]).options
    assert options["batch"] == 4


def test_ultralytics_counts_the_batch_of_all_gpus(tmp_path: Path) -> None:
    settings = read(tmp_path, "args.yaml", ULTRALYTICS)
    assert settings.kind == "ultralytics"
    assert values(settings) == {
        "model": "yolov3",
        "gpus": 2,
        "batch": 8,
        "accumulate": 4,
        "epochs": 50,
        "input_shape": (3, 512, 512),
        "precision": "amp_fp16",
        "optimizer": "adamw",
        "ema": True,
        "dataset": "coco",
        "workers": 6,
    }
    assert settings.unread == ()


def test_a_setting_of_no_table_is_named(tmp_path: Path) -> None:
    assert read(tmp_path, "train.yml", f"{AXOLOTL}\nnew_feature: 3\n").unread == ("new_feature",)


def test_a_file_says_the_model_and_the_user_another(tmp_path: Path) -> None:
    (tmp_path / "train.yml").write_text(AXOLOTL)
    assert filled(None, {}, [tmp_path / "train.yml"]).model == "meta-llama/Llama-3.1-8B"
    given = filled("gpt2", {}, [tmp_path / "train.yml"])
    assert given.model == "gpt2"
    assert any("says model meta-llama/Llama-3.1-8B (base_model); gpt2 is given" in note for note in given.notes)


def test_files_that_say_no_model_are_named(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"train_batch_size": 8}')
    with pytest.raises(NoModel, match=r"^ds.json does not say which model: give MODEL, such as"):
        filled(None, {}, [tmp_path / "ds.json"])


def test_an_unknown_trainer_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(
        BadInput, match=r"^train.yml: unknown settings file: expected one of .*torchtune, axolotl"
    ) as error:
        read(tmp_path, "train.yml", "recipe: cake\nflour_grams: 500\n")
    message = str(error.value)
    assert all(trainer.name in message for trainer in TRAINERS) and "\n" not in message


def test_anchors_are_followed_and_one_to_nowhere_is_named(tmp_path: Path) -> None:
    shared = "common: &rank 16\nlora_r: *rank\n"
    assert (
        values(read(tmp_path, "a.yml", f"{shared}base_model: gpt2\nadapter: lora\nmicro_batch_size: 1\n"))["lora"] == 16
    )
    with pytest.raises(BadInput, match=r"^b.yml is not YAML \(line 2\): no anchor for the alias \*nowhere; write"):
        read(tmp_path, "b.yml", "base_model: gpt2\nlora_r: *nowhere\n")


def test_anchors_that_stand_for_too_much_are_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 7)]
    with pytest.raises(BadInput, match="stand for more than 50,000 values"):
        read(tmp_path, "big.yml", "\n".join(lines))


def test_a_setting_without_an_option_is_named_as_not_modelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_settings, "OPTIONS", {k: v for k, v in job_settings.OPTIONS.items() if k != "adapter"})
    (tmp_path / "train.yml").write_text(AXOLOTL)
    assert "train.yml: not modelled: peft_use_dora (adapter dora)" in filled(None, {}, [tmp_path / "train.yml"]).notes


def test_networks_of_diffusers_take_pixels(tmp_path: Path) -> None:
    text = KOHYA.replace("stabilityai/stable-diffusion-xl-base-1.0", "black-forest-labs/FLUX.1-dev")
    options = values(read(tmp_path, "flux.toml", f"{text}fp8_base = true\n"))
    assert (options["model"], options["input_shape"]) == ("diffusers:flux1-dev", (3, 768, 1024))
    assert (options["quantize"], options["lora_targets"]) == ("w8", ("all-linear",))
    assert "host_class" not in options


def test_weights_in_a_file_are_those_of_their_family(tmp_path: Path) -> None:
    text = KOHYA.replace("stabilityai/stable-diffusion-xl-base-1.0", "/models/ponyDiffusionV6XL.safetensors")
    settings = read(tmp_path, "lora.toml", text)
    assert settings.value("model") == "stabilityai/stable-diffusion-xl-base-1.0"
    assert any("ponyDiffusionV6XL.safetensors is taken as stabilityai/" in note for note in settings.notes)
