"""Settings of files beside the user's own options: who counts, and what is said."""

import json
from pathlib import Path
from typing import Any

import pytest

import epochcast as ec
from epochcast.errors import BadInput
from epochcast.predict.forecast.job_settings import FilledOptions, filled

MICRO = {"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 2}}


@pytest.fixture
def given(tmp_path: Path) -> Any:
    """`given(documents…, option=…)`: the options filled from these documents."""

    def fill(*documents: dict[str, Any], **options: Any) -> FilledOptions:
        paths = []
        for number, document in enumerate(documents):
            paths.append(tmp_path / f"{number}.json")
            paths[-1].write_text(json.dumps(document))
        return filled("resnet18", options, paths)

    return fill


def test_what_is_given_counts_and_the_difference_is_said(given: Any) -> None:
    read = given({**MICRO, "bf16": {"enabled": True}}, precision="fp32", optimizer="sgd")
    assert read.options == {"precision": "fp32", "optimizer": "sgd", "batch": 4, "strategy": "zero2"}
    assert read.notes == (
        "read from 0.json (DeepSpeed): batch 4, strategy zero2",
        "0.json says precision bf16_deepspeed (bf16); precision fp32 is given and counts",
    )


def test_another_name_of_the_same_is_no_difference(given: Any) -> None:
    read = given({"per_device_train_batch_size": 4, "fp16": True}, precision="amp")
    assert not any("counts" in note for note in read.notes)


def test_the_later_of_two_files_counts_and_it_is_said(given: Any) -> None:
    read = given(
        {**MICRO, "gradient_accumulation_steps": 2}, {"distributed_type": "NO", "gradient_accumulation_steps": 8}
    )
    assert read.options["accumulate"] == 8
    assert "accumulate: 0.json says 2, 1.json says 8; the latter counts" in read.notes


def test_a_default_never_counts_before_something_said(given: Any) -> None:
    read = given({**MICRO, "optimizer": {"type": "Lamb"}}, {"lr_scheduler_type": "linear"})
    assert (read.options["batch"], read.options["optimizer"]) == (4, "lamb")
    assert read.options["epochs"] == 3


@pytest.mark.parametrize(
    ("document", "options", "expected"),
    [
        ({"train_batch_size": 256}, {}, {"global_batch": 256}),
        ({**MICRO, "train_batch_size": 256, "gradient_accumulation_steps": 8}, {}, {"gpus": 8, "accumulate": 8}),
        ({**MICRO, "train_batch_size": 256}, {"gpus": 16}, {"gpus": 16, "accumulate": 4}),
        ({**MICRO, "train_batch_size": 256}, {"batch": 64}, {"batch": 64}),
    ],
)
def test_the_batch_of_deepspeed_is_worked_out(
    document: dict[str, Any], options: dict[str, Any], expected: dict[str, Any], given: Any
) -> None:
    read = given(document, **options)
    assert expected.items() <= read.options.items()
    assert not ("batch" in read.options and "global_batch" in read.options)


def test_batches_that_deepspeed_refuses_are_said(given: Any) -> None:
    read = given({**MICRO, "train_batch_size": 100, "gradient_accumulation_steps": 2}, gpus=8)
    assert any("train_batch_size 100 is not 4 × 2 × 8" in note for note in read.notes)


def test_mixed_precision_under_deepspeed_has_masters(given: Any) -> None:
    read = given({"per_device_train_batch_size": 1, "bf16": True}, {**MICRO, "bf16": {"enabled": "auto"}})
    assert read.options["precision"] == "bf16_deepspeed"


def test_updates_beside_samples_that_are_given_are_said(given: Any) -> None:
    document = {"per_device_train_batch_size": 4, "max_steps": 1000}
    assert "0.json says 1,000 updates; samples 52000 is given and counts" in given(document, samples=52_000).notes


def test_updates_are_samples(given: Any) -> None:
    document = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "max_steps": 1000}
    read = given(document, gpus=8)
    assert (read.options["samples"], read.options["epochs"]) == (1000 * 4 * 2 * 8, 1)
    assert any("samples 64,000 (1,000 updates)" in note for note in read.notes)
    assert "samples" not in given(document, epochs=3).options
    assert "epochs" not in given({"num_train_epochs": 3}, tokens=10**9).options  # they count the whole training


def test_nodes_of_a_file_do_not_spread_other_gpus(given: Any) -> None:
    document = {"distributed_type": "MULTI_GPU", "num_processes": 16, "num_machines": 2}
    assert given(document).options == {"gpus": 16, "nodes": 2, "strategy": "ddp"}
    assert "nodes" not in given(document, gpus=4).options


def test_an_unknown_optimizer_of_a_file_ends_it_unless_another_is_said(given: Any) -> None:
    document = {"per_device_train_batch_size": 4, "optim": "adamq"}
    with pytest.raises(BadInput, match=r"0\.json, optim: no optimizer called 'adamq'; .*say another with `optimizer`"):
        given(document)
    assert given(document, optimizer="adamw").options["optimizer"] == "adamw"


@pytest.mark.parametrize("batch", [0, -4, 10**30])
def test_a_batch_that_makes_no_sense_names_its_file(batch: int, given: Any) -> None:
    with pytest.raises(BadInput, match=r"0\.json, train_micro_batch_size_per_gpu: batch must be at"):
        given({**MICRO, "train_micro_batch_size_per_gpu": batch})


# an update takes full sequences, whatever texts they were joined from
def test_updates_of_packed_sequences_are_sequences(given: Any) -> None:
    document = {
        "base_model": "gpt2",
        "micro_batch_size": 4,
        "max_steps": 1000,
        "sequence_len": 1000,
        "sample_packing": True,
    }
    assert given(document).options["samples"] == 4000
    assert "packing" not in given(document).options
    packed = given(document, lengths="mean=250,max=1000").options
    assert (packed["samples"], packed["packing"]) == (16_000, True)


def test_workers_that_a_file_says_count(given: Any) -> None:
    document = {"per_device_train_batch_size": 4, "dataloader_num_workers": 3}
    assert given(document).options["workers"] == given(document, loader_seconds=0.01).options["workers"] == 3
    assert "workers" not in given({"per_device_train_batch_size": 4}).options
    assert given({"per_device_train_batch_size": 4}, dataset="imagenet-1k").options["workers"] == 0


def test_an_adapter_that_a_built_network_does_not_take_is_named(tmp_path: Path) -> None:
    text = """
from peft import {kind}, get_peft_model
from transformers import AutoModelForCausalLM

model = get_peft_model(AutoModelForCausalLM.from_pretrained("gpt2"), {kind}({rank}=16))
"""
    script = tmp_path / "train.py"
    script.write_text(text.format(kind="LoHaConfig", rank="r"))
    loha = filled(None, {}, [script])
    assert (loha.options["lora"], loha.options.get("adapter")) == (16, None)
    assert any("LoHa is forecast as LoRA of the same rank" in note for note in loha.notes)
    script.write_text(text.format(kind="PrefixTuningConfig", rank="num_virtual_tokens"))
    prefix = filled(None, {}, [script])
    assert "lora" not in prefix.options
    assert any("prefix is forecast without it" in note for note in prefix.notes)


def test_python_takes_the_same_files(tmp_path: Path) -> None:
    path = tmp_path / "ds.json"
    path.write_text(json.dumps({**MICRO, "optimizer": {"type": "AdamW"}, "gradient_clipping": 1.0}))
    answer = ec.forecast("resnet18", device="A100", gpus=4, config=[path])
    assert (answer.batch_per_gpu, answer.strategy, answer.optimizer) == (4, "zero2", "adamw")
    assert "ds.json: not read: gradient_clipping" in answer.warnings
    with pytest.raises(BadInput, match="a job says everything itself"):
        ec.forecast(ec.Job("resnet18", batch=4), device="A100", config=[path])


def test_every_verb_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "ds.json"
    path.write_text(json.dumps({**MICRO, "optimizer": {"type": "AdamW"}}))
    read = "read from ds.json (DeepSpeed): "
    scaling = ec.scaling("resnet18", device="A100", gpus=[1, 2], config=[path])
    assert scaling.rows[0].forecast.optimizer == "adamw"
    advice = ec.advise("resnet18", device="A100", config=[path])
    assert advice.trace.recipe.optimizer == "adamw"
    plan = ec.plan("resnet18", samples=10_000, clouds=["aws"], devices=["V100"], gpus=[1], config=[path])
    assert (plan.job.optimizer, plan.job.batch) == ("adamw", 4)
    for answer in (scaling, advice, plan):
        assert any(note.startswith(read) for note in answer.warnings)
