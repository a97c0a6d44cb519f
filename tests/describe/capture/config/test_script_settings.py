"""How scripts train, read from their syntax trees."""

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from epochcast.describe.capture.config.setting import ConfigSettings
from epochcast.describe.capture.script.script_settings import script_settings

LIGHTNING = """
    import torch
    import lightning as L
    from torch.utils.data import DataLoader

    class Generator(L.LightningModule):
        def configure_optimizers(self):
            return torch.optim.RMSprop(self.parameters())

    class Net(L.LightningModule):
        def configure_optimizers(self):
            optimizer = torch.optim.AdamW(self.parameters(), lr=1e-3, fused=True)
            return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1)}

    def main():
        train = DataLoader(train_set, batch_size=64, shuffle=True)
        test = DataLoader(test_set, batch_size=1000)
        trainer = L.Trainer(precision="16-mixed", devices=[0, 1, 2, 3], num_nodes=2, strategy="fsdp", max_epochs=20,
                            accumulate_grad_batches=2)
        trainer.fit(Net(), train)
"""
TRAINER = """
    import torch
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

    model = AutoModelForCausalLM.from_pretrained("gpt2")
    args = TrainingArguments("out", per_device_train_batch_size=4, gradient_accumulation_steps=2, bf16=True,
                             optim="adamw_bnb_8bit", max_steps=1000, gradient_checkpointing=True, deepspeed="ds.json")
    Trainer(model=model, args=args).train()
"""
PLAIN = """
    import argparse
    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=7)
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    model = torch.compile(Net().to(memory_format=torch.channels_last))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=args.momentum)
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=args.amp):
        pass
"""
KERAS = """
    import tensorflow as tf
    from tensorflow import keras

    keras.mixed_precision.set_global_policy("mixed_float16")
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss="mse", jit_compile=True)
    model.fit(x, y, batch_size=128, epochs=15)
"""


def read(folder: Path, text: str, name: str = "") -> ConfigSettings:
    path = folder / "train.py"
    path.write_text(dedent(text))
    first, *_ = script_settings(path, name)
    return first


def values(settings: ConfigSettings) -> dict[str, Any]:
    return {setting.option: setting.value for setting in settings.settings}


def test_a_lightning_module_brings_its_optimizer_and_trainer(tmp_path: Path) -> None:
    settings = read(tmp_path, LIGHTNING, "Net")
    assert values(settings) == {
        "optimizer": "adamw",
        "update_style": "fused",
        "strategy": "fsdp",
        "precision": "amp_fp16",
        "gpus": 8,
        "nodes": 2,
        "accumulate": 2,
        "epochs": 20,
        "batch": 64,
    }
    assert values(read(tmp_path, LIGHTNING, "Generator"))["optimizer"] == "rmsprop"


def test_two_optimizers_are_none(tmp_path: Path) -> None:
    settings = read(tmp_path, LIGHTNING)
    assert "optimizer" not in values(settings)
    assert "says optimizer rmsprop (line 8) and adamw (line 12); none is taken, give `optimizer`" in settings.notes


def test_training_arguments_of_a_script_name_deepspeed(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(json.dumps({"zero_optimization": {"stage": 3}, "bf16": {"enabled": "auto"}}))
    (tmp_path / "train.py").write_text(dedent(TRAINER))
    own, deepspeed = script_settings(tmp_path / "train.py")
    assert values(own) == {
        "model": "gpt2",
        "batch": 4,
        "accumulate": 2,
        "max_steps": 1000,
        "precision": "amp_bf16",
        "optimizer": "adamw8bit",
        "checkpointing": True,
        "workers": 0,
    }
    assert own.uses_deepspeed and deepspeed.value("strategy") == "zero3"


def test_a_missing_deepspeed_config_costs_a_note(tmp_path: Path) -> None:
    assert "there is no DeepSpeed config 'ds.json'" in read(tmp_path, TRAINER).notes


def test_a_plain_loop_is_read_with_its_defaults(tmp_path: Path) -> None:
    """--amp is off unless it is given, so products run in tf32."""
    assert values(read(tmp_path, PLAIN)) == {
        "compile": "inductor",
        "channels_last": True,
        "optimizer": "momentum",
        "batch": 32,
        "epochs": 7,
        "precision": "tf32",
    }
    always = PLAIN.replace(", enabled=args.amp", "")
    assert values(read(tmp_path, always))["precision"] == "amp_bf16"


def test_keras_says_optimizer_policy_and_backend(tmp_path: Path) -> None:
    assert values(read(tmp_path, KERAS)) == {
        "precision": "amp_fp16",
        "optimizer": "momentum",
        "compile": "xla",
        "framework": "tensorflow",
        "batch": 128,
        "epochs": 15,
    }


def test_what_only_shows_when_it_runs_is_said(tmp_path: Path) -> None:
    text = (
        "from transformers import TrainingArguments\nargs = TrainingArguments('o', per_device_train_batch_size=f())\n"
    )
    settings = read(tmp_path, text)
    assert "batch" not in values(settings)  # nor its default, since the script says another
    assert settings.notes == ("line 2: per_device_train_batch_size: known only when the script runs",)


@pytest.mark.parametrize("line", ["import re\nre.compile('adam')", "model.compile()", "x = 3", "torch.optim.Adam(p)"])
def test_what_is_no_setting_is_not_read(line: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(line)
    assert script_settings(tmp_path / "train.py") == ()


def test_a_module_and_the_weights_it_is_loaded_in(tmp_path: Path) -> None:
    text = TRAINER.replace('"gpt2"', '"gpt2", torch_dtype=torch.bfloat16')
    assert values(read(tmp_path, text))["precision"] == "bf16"
