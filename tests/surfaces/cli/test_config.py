"""`--config`, and scripts and models that say how they are trained."""

import json
from pathlib import Path
from textwrap import dedent

import pytest

import epochcast as ec

from .conftest import Command

LIGHTNING = """
    import torch
    from torch import nn
    import pytorch_lightning as pl

    class Net(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(784, 10)

        def forward(self, x):
            return self.layer(x)

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

    if __name__ == "__main__":
        pl.Trainer(precision="16-mixed", devices=2, strategy="ddp", max_epochs=5).fit(
            Net(), DataLoader(train_set, batch_size=64))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def lightning_script(folder: Path) -> Path:
    """A script beside a small stand-in of the package that it imports."""
    (folder / "pytorch_lightning.py").write_text("from torch.nn import Module as LightningModule\n")
    (folder / "train.py").write_text(dedent(LIGHTNING))
    return folder / "train.py"


def deepspeed(folder: Path) -> None:
    document = {"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 1}, "optimizer": {"type": "AdamW"}}
    (folder / "ds.json").write_text(json.dumps(document))


def test_a_config_fills_what_is_not_typed(folder: Path, command: Command) -> None:
    deepspeed(folder)
    ran = command("forecast resnet18 --device A100 --gpus 4 --config ds.json --optimizer sgd --json")
    answer = ran.json
    assert (answer["batch_per_gpu"], answer["strategy"], answer["optimizer"]) == (4, "zero1", "sgd")
    assert "read from ds.json (DeepSpeed): batch 4, precision fp32 (its default), strategy zero1" in answer["warnings"]
    assert any("says optimizer adamw" in note and "sgd is given and counts" in note for note in answer["warnings"])


def test_the_table_ends_in_what_was_read(folder: Path, command: Command) -> None:
    deepspeed(folder)
    printed = command("forecast resnet18 --device A100 --gpus 4 --config ds.json").out
    assert " · zero1 · fp32 · adamw" in printed.splitlines()[0]
    again = command("forecast resnet18 --device A100 --gpus 4 --config ds.json --accumulate 8").out
    assert "batch 32 per GPU in 8 passes, 128 in total" in again.splitlines()[0]
    assert "note: read from ds.json (DeepSpeed): batch 4" in printed


def test_checkpointing_is_told_as_the_option_takes_it(folder: Path, command: Command) -> None:
    arguments = {"gradient_checkpointing": True, "per_device_train_batch_size": 4, "num_train_epochs": 1}
    (folder / "arguments.json").write_text(json.dumps(arguments), encoding="utf-8")
    printed = command("forecast gpt2 --device A100 --config arguments.json").out
    assert "checkpointing full" in " ".join(printed.split())


@pytest.mark.parametrize("verb", ["advise resnet18", "scaling resnet18 --gpus 1,2", "inspect resnet18 --batch 2"])
def test_every_command_takes_it(verb: str, folder: Path, command: Command) -> None:
    deepspeed(folder)
    ran = command(f"{verb} --device A100 --config ds.json --json")
    assert ran.code == 0
    assert any("ds.json" in note for note in ran.json["warnings"])


def test_a_config_that_is_none_is_one_line(folder: Path, command: Command) -> None:
    (folder / "no.json").write_text('{"learning": 1}')
    ran = command("forecast resnet18 --device A100 --batch 4 --config no.json")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "no.json: unknown settings file" in ran.err


def test_a_problem_in_a_config_names_the_flag(folder: Path, command: Command) -> None:
    (folder / "a.json").write_text('{"per_device_train_batch_size": 4, "optim": "adamwz"}')
    ran = command("forecast resnet18 --device A100 --config a.json")
    assert ran.code == 2
    assert ran.err.startswith("epochcast: a.json, optim: no optimizer called 'adamwz'; ")
    assert ran.err.endswith("say another with --optimizer\n")


def test_a_saved_job_is_what_was_read(folder: Path, command: Command) -> None:
    deepspeed(folder)
    command("forecast resnet18 --device A100 --gpus 4 --config ds.json --save-job big --json")
    job = ec.read_job("big").job
    assert (job.batch, job.optimizer) == (4, "adamw")


@pytest.mark.usefixtures("lightning_script")
def test_a_lightning_module_runs_as_its_script_says(command: Command) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    answer = command("forecast train.py:Net --device A100 --samples 10000 --json").json
    assert (answer["optimizer"], answer["precision"], answer["gpus"]) == ("adamw", "amp_fp16", 2)
    assert (answer["batch_per_gpu"], answer["epochs"], answer["strategy"]) == (64, 5, "ddp")
    assert any(note.startswith("read from train.py: ") and "optimizer adamw" in note for note in answer["warnings"])
    own = command("forecast train.py:Net --device A100 --batch 8 --gpus 1 --precision fp32 --optimizer sgd --json").json
    assert (own["optimizer"], own["precision"], own["gpus"], own["batch_per_gpu"]) == ("sgd", "fp32", 1, 8)
    assert sum("is given and counts" in note for note in own["warnings"]) == 4


@pytest.mark.usefixtures("lightning_script")
def test_python_and_the_command_line_read_the_same(command: Command) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    answer = command("forecast train.py:Net --device A100 --json").json
    in_python = ec.forecast("train.py:Net", device="A100").as_dict()
    assert in_python["warnings"] == answer["warnings"]
    assert (in_python["step_seconds"], in_python["optimizer"]) == (answer["step_seconds"], answer["optimizer"])
    assert ec.forecast("train.py:Net", device="A100", batch=64, config=None).optimizer == "sgd"


def test_a_keras_file_says_what_it_was_compiled_with(folder: Path, command: Command) -> None:
    keras = pytest.importorskip("keras", reason="keras is not installed")
    layers = [
        keras.Input((8,)),
        keras.layers.Dense(8, dtype="mixed_bfloat16"),
        keras.layers.Dense(4, dtype="mixed_bfloat16"),
    ]
    model = keras.Sequential([*layers, keras.layers.Activation("softmax", dtype="float32")])
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True), loss="mse")
    live = ec.forecast(model, device="A100", batch=4)
    assert (live.optimizer, live.precision) == ("nesterov", "amp_bf16")
    model.save("m.keras")
    ran = command("forecast m.keras --device A100 --batch 4 --json")
    assert (ran.json["optimizer"], ran.json["precision"]) == ("nesterov", "amp_bf16")
    model.compile(keras.optimizers.Nadam(), loss="mse")
    noted = ec.forecast(model, device="A100", batch=4)
    assert noted.optimizer == "adam"
    assert any("Nadam is taken as adam" in note for note in noted.warnings)


AXOLOTL = """
base_model: gpt2
adapter: lora
lora_r: 8
lora_target_modules: [c_attn]
micro_batch_size: 4
sequence_len: 256
sample_packing: true
num_epochs: 2
peft_use_dora: true
some_new_feature: 7
"""


def test_a_trainers_file_is_enough(folder: Path, command: Command) -> None:
    pytest.importorskip("yaml", reason="the extra yaml is not installed")
    (folder / "train.yml").write_text(AXOLOTL)
    answer = command("forecast --config train.yml --device A100 --json").json
    assert (answer["model"], answer["batch_per_gpu"], answer["sequence_length"]) == ("gpt2", 4, 256)
    assert (answer["lora"], answer["lora_targets"], answer["precision"]) == (8, ["c_attn"], "amp_bf16_half")
    assert any("adapter dora" in note for note in answer["warnings"])
    assert "train.yml: not read: some_new_feature" in answer["warnings"]


def test_a_file_of_settings_is_enough_in_python(folder: Path) -> None:
    pytest.importorskip("yaml", reason="the extra yaml is not installed")
    (folder / "train.yml").write_text(AXOLOTL)
    assert ec.forecast(config="train.yml", device="A100").batch_per_gpu == 4
    with pytest.raises(ec.EpochcastError, match=r"^no model: give MODEL"):
        ec.forecast(device="A100")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("ds.json", '{"train_batch_size": 8}', "ds.json does not say which model: give MODEL"),
        (
            "cake.yml",
            "flour: 500",
            "cake.yml: unknown settings file: expected one of verl,",
        ),
        ("a.yml", "base_model: gpt2\nlora_r: *far", "a.yml is not YAML (line 2): no anchor for the alias *far"),
        ("b.yml", "base_model: no/such-1B\nmicro_batch_size: 1", "no model called 'no/such-1B'; "),
        ("c.yml", "base_model: out\nmicro_batch_size: 1", "'out' is a folder without config.json: give the model"),
        (
            "d.yml",
            "base_model: gpt2\nmicro_batch_size: 1\nadapter: lora\nlora_target_modules: [q_proj]",
            "no linear layer is called q_proj; the model has: c_attn",
        ),
    ],
)
def test_a_bad_file_is_one_line(name: str, content: str, said: str, folder: Path, command: Command) -> None:
    pytest.importorskip("yaml", reason="the extra yaml is not installed")
    (folder / "out").mkdir()
    (folder / name).write_text(content)
    ran = command(f"forecast --config {name} --device A100")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert said in ran.err


def test_a_script_says_its_model_to_a_config(folder: Path, command: Command) -> None:
    (folder / "sft.py").write_text(
        "from datasets import load_dataset\n"
        "from trl import SFTConfig, SFTTrainer\n"
        "from transformers import AutoTokenizer\n"
        "tokenizer = AutoTokenizer.from_pretrained('some/tokenizer')\n"
        "args = SFTConfig(per_device_train_batch_size=2, max_length=128)\n"
        "SFTTrainer(model='gpt2', args=args, train_dataset=load_dataset('tatsu-lab/alpaca')).train()\n"
    )
    answer = command("forecast --config sft.py --device A100 --json").json
    assert (answer["model"], answer["batch_per_gpu"], answer["dataset"]) == ("gpt2", 2, "alpaca")


def test_the_batch_may_be_left_to_advice(command: Command) -> None:
    ran = command("forecast resnet18 --device A100 --batch auto --json")
    advised = command("advise resnet18 --device A100 --json").json["batch"]
    assert ran.json["batch_per_gpu"] == advised
    assert ran.err == f"epochcast: --batch auto: {advised} per GPU (`epochcast advise`)\n"
    assert command("forecast resnet18 --device A100 --batch many").err.endswith(
        "--batch: must be a whole number or auto, got 'many'\n"
    )


def test_small_images_at_another_size_are_said(command: Command) -> None:
    answer = command("forecast resnet18_cifar --dataset cifar10 --input 3x128x128 --device A100 --batch 64 --json").json
    said = "cifar10 has images of 3x32x32, and the step is forecast for 3x128x128."
    assert any(note.startswith(said) for note in answer["warnings"])
    answer = command("forecast resnet18_cifar --dataset cifar10 --device A100 --batch 64 --json").json
    assert not any("has images of" in note for note in answer["warnings"])
