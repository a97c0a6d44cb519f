"""Scripts that fine-tune with TRL and PEFT, written after their documentation."""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from epochcast.describe.capture.config.setting import ConfigSettings
from epochcast.describe.capture.script.script_settings import script_settings
from epochcast.predict.forecast.job_settings import FilledOptions, filled

# TRL's guide to SFT with a string for the model: everything else is a default
SHORTEST = """
    from datasets import load_dataset
    from trl import SFTConfig, SFTTrainer

    dataset = load_dataset("trl-lib/Capybara", split="train")
    trainer = SFTTrainer(model="Qwen/Qwen3-0.6B", args=SFTConfig(output_dir="out"), train_dataset=dataset)
    trainer.train()
"""
# TRL's guide to PEFT: QLoRA
QLORA = """
    import torch
    from datasets import load_dataset
    from peft import LoraConfig, prepare_model_for_kbit_training
    from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig
    from trl import SFTConfig, SFTTrainer

    MODEL = "meta-llama/Llama-3.1-8B"
    MAX_LENGTH = 2048

    def main():
        bnb_config = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_compute_dtype=torch.bfloat16,
            bnb_4bit_use_double_quant=True,
        )
        model = AutoModelForCausalLM.from_pretrained(
            MODEL, quantization_config=bnb_config, attn_implementation="flash_attention_2", device_map="auto"
        )
        peft_config = LoraConfig(
            r=16,
            lora_alpha=32,
            lora_dropout=0.05,
            target_modules=["q_proj", "k_proj", "v_proj", "self_attn.o_proj"],
            bias="none",
            task_type="CAUSAL_LM",
        )
        args = SFTConfig(
            output_dir="llama-qlora",
            max_length=MAX_LENGTH,
            per_device_train_batch_size=4,
            gradient_accumulation_steps=4,
            num_train_epochs=2,
            learning_rate=2e-4,
            warmup_ratio=0.03,
            lr_scheduler_type="cosine",
            optim="paged_adamw_8bit",
            logging_steps=10,
            report_to="tensorboard",
        )
        trainer = SFTTrainer(model=model, args=args, train_dataset=dataset, peft_config=peft_config)
        trainer.train()
"""
# the older interface: arguments of the config were the trainer's
OLDER = """
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, TrainingArguments
    from trl import SFTTrainer

    model = AutoModelForCausalLM.from_pretrained("mistral-7b", torch_dtype=torch.bfloat16, load_in_8bit=True)
    config = LoraConfig(target_modules="all-linear", modules_to_save=["embed_tokens"], use_dora=True)
    training_args = TrainingArguments("out", per_device_train_batch_size=2, gradient_checkpointing=True)
    trainer = SFTTrainer(model, args=training_args, peft_config=config, max_seq_length=4096, packing=True)
"""
# TRL's own scripts/sft.py makes its configs of the command line
COMMAND_LINE = """
    from transformers import AutoModelForCausalLM
    from trl import ModelConfig, SFTTrainer, get_peft_config, get_quantization_config

    model = AutoModelForCausalLM.from_pretrained(name, quantization_config=get_quantization_config(model_args))
    trainer = SFTTrainer(model=model, args=training_args, peft_config=get_peft_config(model_args))
"""
KTO = """
    from peft import AdaLoraConfig, LoraConfig
    from trl import KTOConfig, KTOTrainer

    args = KTOConfig("out", max_length=512, per_device_train_batch_size=1, bf16=False, eval_strategy="steps")
    trainer = KTOTrainer(model=model, args=args, peft_config=AdaLoraConfig(r=20))
"""


def read(folder: Path, text: str) -> ConfigSettings:
    path = folder / "train.py"
    path.write_text(dedent(text))
    return script_settings(path)[0]


def values(settings: ConfigSettings) -> dict[str, Any]:
    return {setting.option: setting.value for setting in settings.settings}


def asked(folder: Path, text: str, **given: Any) -> FilledOptions:
    read(folder, text)
    return filled("llama3_8b", given, [folder / "train.py"])


def test_the_shortest_script_has_the_defaults_of_trl(tmp_path: Path) -> None:
    settings = read(tmp_path, SHORTEST)
    assert all(setting.is_default for setting in settings.settings if setting.option != "model")
    assert values(settings) == {
        "model": "Qwen/Qwen3-0.6B",
        "input_shape": (1024,),
        "checkpointing": True,
        "precision": "amp_bf16",
        "batch": 8,
        "epochs": 3,
        "optimizer": "adamw",
        "workers": 0,
    }


def test_a_script_of_qlora_is_read_whole(tmp_path: Path) -> None:
    settings = read(tmp_path, QLORA)
    assert values(settings) == {
        "model": "meta-llama/Llama-3.1-8B",
        "four_bit": True,
        "quantize": "nf4-dq",
        "attention": "flash",
        "lora": 16,
        "lora_dropout": 0.05,
        "lora_targets": ("q_proj", "k_proj", "v_proj", "o_proj"),
        "input_shape": (2048,),
        "batch": 4,
        "accumulate": 4,
        "epochs": 2,
        "optimizer": "paged_adamw8bit",
        "precision": "amp_bf16",
        "checkpointing": True,
        "workers": 0,
    }
    assert settings.not_modelled == ()
    assert settings.notes == ()


def test_an_older_script_is_read_and_what_it_trains_besides_is_named(tmp_path: Path) -> None:
    settings = read(tmp_path, OLDER)
    said = values(settings)
    assert (said["lora"], said["lora_targets"], said["input_shape"]) == (8, ("all-linear",), (4096,))
    assert (said["precision"], said["checkpointing"], said["packing"]) == ("bf16", True, True)
    named = [what.partition(" ")[0] for what in settings.not_modelled]
    assert (named, said["adapter"]) == (["modules_to_save"], "dora")
    assert said["eight_bit"] is True


def test_configs_from_the_command_line_are_missed_aloud(tmp_path: Path) -> None:
    notes = " ".join(read(tmp_path, COMMAND_LINE).notes)
    assert "peft_config is known only when the script runs: the model is forecast without it, give `lora`" in notes
    assert "quantization_config is known only when the script runs" in notes


def test_other_trainers_and_adapters_are_named_as_not_modelled(tmp_path: Path) -> None:
    settings = read(tmp_path, KTO)
    assert values(settings)["precision"] == "fp32"  # bf16 is off
    named = " ".join(settings.not_modelled)
    assert all(word in named for word in ("KTOConfig", "reference model", "AdaLoraConfig", "eval_strategy"))
    assert settings.notes == ()


PEFT = """
    from peft import {kind}, get_peft_model
    from transformers import AutoModelForCausalLM

    model = get_peft_model(AutoModelForCausalLM.from_pretrained("gpt2"), {kind}({arguments}))
"""


@pytest.mark.parametrize(
    ("kind", "arguments", "adapter", "rank", "targets"),
    [
        ("IA3Config", "target_modules=['c_attn', 'mlp.c_proj'], feedforward_modules=['mlp.c_proj']", "ia3", 1, 2),
        ("LoHaConfig", "r=16, target_modules=['c_attn']", "loha", 16, 1),
        ("LoKrConfig", "target_modules='all-linear'", "lokr", 8, 1),
        ("PrefixTuningConfig", "task_type='CAUSAL_LM', num_virtual_tokens=30", "prefix", 30, 0),
    ],
)
def test_other_adapters_of_peft(
    tmp_path: Path, kind: str, arguments: str, adapter: str, rank: int, targets: int
) -> None:
    said = values(read(tmp_path, PEFT.format(kind=kind, arguments=arguments)))
    assert (said["adapter"], said["lora"], len(said.get("lora_targets", ()))) == (adapter, rank, targets)


UNSLOTH = """
    from unsloth import FastLanguageModel
    from trl import SFTConfig, SFTTrainer

    length = 2048
    model, tokenizer = FastLanguageModel.from_pretrained("unsloth/Meta-Llama-3.1-8B", max_seq_length=length)
    model = FastLanguageModel.get_peft_model(model, target_modules=["q_proj", "v_proj"], lora_dropout=0)
    SFTTrainer(model=model, args=SFTConfig(per_device_train_batch_size=2, max_steps=60, optim="adamw_8bit"))
"""


def test_unsloth_trains_adapters_beside_four_bits_with_its_kernels(tmp_path: Path) -> None:
    said = values(read(tmp_path, UNSLOTH))
    assert (said["lora"], said["lora_targets"], said["kernels"]) == (16, ("q_proj", "v_proj"), "unsloth")
    assert (said["quantize"], said["optimizer"]) == ("nf4-dq", "adamw8bit")


ULTRALYTICS = """
    from ultralytics import YOLO

    model = YOLO("yolo11n.pt")
    model.train(data="coco.yaml", epochs=300, imgsz=640, batch=128, device=[0, 1, 2, 3], workers=16)
"""


def test_a_script_of_ultralytics_says_what_its_command_line_does(tmp_path: Path) -> None:
    said = values(read(tmp_path, ULTRALYTICS))
    assert (said["model"], said["batch"], said["gpus"], said["workers"]) == ("yolo11n", 32, 4, 16)
    assert (said["input_shape"], said["epochs"], said["dataset"]) == ((3, 640, 640), 300, "coco")


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("max_length=None", "texts are not cut, so that their length is not known: give `input_shape`"),
        ("max_length=args.length", "max_length: known only when the script runs"),
        ("use_liger_kernel=flag", "use_liger_kernel: known only when the script runs"),
        ("a_new_switch=True", "not read: a_new_switch"),
    ],
)
def test_no_argument_is_passed_over_in_silence(tmp_path: Path, argument: str, said: str) -> None:
    settings = read(tmp_path, f"from trl import SFTConfig\nargs = SFTConfig('out', {argument})\n")
    assert said in " ".join(settings.notes)
    assert ("input_shape" in values(settings)) is not argument.startswith("max_length")


def test_a_rank_that_is_only_known_later_is_the_default_and_said(tmp_path: Path) -> None:
    script = "from peft import LoraConfig\nconfig = LoraConfig(r=args.rank, target_modules=r'.*(q|v)_proj')\n"
    settings = read(tmp_path, script)
    assert values(settings) == {"lora": 8, "lora_dropout": 0.0, "lora_targets": (".*(q|v)_proj",)}
    assert "rank 8 is taken, give `lora`" in settings.notes[0]


def test_a_script_counts_where_the_user_says_nothing(tmp_path: Path) -> None:
    options = asked(tmp_path, QLORA, lora=64, device="A100").options
    assert (options["lora"], options["four_bit"], options["input_shape"]) == (64, True, (2048,))


# the texts of Alpaca have at most 512 tokens, so that cutting them at 2,048 changes nothing
def test_short_texts_stay_as_long_as_they_are(tmp_path: Path) -> None:
    answer = asked(tmp_path, QLORA, dataset="alpaca")
    assert "input_shape" not in answer.options
    assert "train.py cuts texts at 2,048 tokens; those of the data are shorter" in answer.notes
    assert asked(tmp_path, OLDER, dataset="alpaca").options["input_shape"] == (4096,)  # packed


# a trainer that cuts texts shorter than the longest of the data pads batches to what is left of them
def test_texts_are_cut_at_the_trainers_length(tmp_path: Path) -> None:
    answer = asked(tmp_path, QLORA.replace("2048", "256"), dataset="alpaca")
    assert answer.options["lengths"] == "mean=120,max=256,padded" and "input_shape" not in answer.options
    assert "train.py cuts texts at 256 tokens; alpaca has 120 on average" in answer.notes


def test_packing_is_an_option_that_a_file_says(tmp_path: Path) -> None:
    assert asked(tmp_path, OLDER).options["packing"] is True
    assert "packing" not in asked(tmp_path, OLDER, lengths="mean=180,max=512,padded").options
    short = asked(tmp_path, OLDER, lengths="mean=180,max=512").options
    assert short["packing"] is True and "input_shape" not in short
    lengths = "mean=200,max=4096,packed"
    answer = asked(tmp_path, OLDER, lengths=lengths)
    assert answer.options["lengths"] == lengths and "input_shape" not in answer.options


def test_four_bits_without_an_adapter_are_refused_in_a_note(tmp_path: Path) -> None:
    script = "from transformers import BitsAndBytesConfig\nconfig = BitsAndBytesConfig(load_in_4bit=True)\n"
    answer = asked(tmp_path, script)
    assert "four_bit" not in answer.options
    assert any("no adapter was read; give `lora`" in note for note in answer.notes)
