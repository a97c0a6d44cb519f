"""What is assumed where nobody said: precision, optimizer, the length of texts."""

from math import ceil
from typing import Any

import pytest

import epochcast as ec
from epochcast.base.notes import Importance, ranked
from epochcast.errors import BadInput
from epochcast.hardware.catalogue import find_device
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.job_defaults import settled
from epochcast.predict.forecast.session import Session

SESSION = Session()


def assumed(job: Job, device: str = "A100") -> dict[str, object]:
    return dict(settled(job, find_device(device), SESSION).assumed)


@pytest.mark.parametrize(
    ("device", "precision"),
    [
        ("A100", "amp_bf16"),
        ("H100", "amp_bf16"),
        ("V100", "amp_fp16"),
        ("T4", "amp_fp16"),
        ("P100", "fp32"),
        ("M40", "fp32"),
    ],
)
def test_a_language_model_takes_the_mixed_precision_of_its_device(device: str, precision: str) -> None:
    assert assumed(Job("gpt2", batch=1), device) == {"precision": precision, "optimizer": "adamw"}


def test_other_networks_take_float32_and_sgd() -> None:
    assert assumed(Job("resnet18", batch=1)) == {"precision": "fp32", "optimizer": "sgd"}


def test_what_is_said_is_never_assumed() -> None:
    job = Job("gpt2", batch=1, precision="fp32", optimizer="sgd", input_shape=(256,))
    answer = settled(job, find_device("A100"), SESSION)
    assert (answer.job, dict(answer.assumed)) == (job, {})
    assert assumed(Job("gpt2", batch=1, precision="fp32")) == {"optimizer": "adamw"}
    assert assumed(Job("gpt2", batch=1, weights="bf16", optimizer="sgd")) == {}


def test_a_pass_without_an_update_has_no_optimizer() -> None:
    assert assumed(Job("gpt2", batch=1, mode="forward")) == {"precision": "amp_bf16"}


def test_texts_are_as_long_as_those_of_the_data() -> None:
    answer = ec.forecast("llama3_2_1b", device="A100", batch=8, dataset="alpaca", session=SESSION)
    assert answer.assumed["lengths"] == "mean=120,max=512,padded"
    assert (answer.longest_sequence, answer.samples, answer.tokens) == (512, 52002, 52002 * 120)
    assert answer.sequence_length is not None and 200 < answer.sequence_length < 512
    fixed = ec.forecast("bert_base", device="A100", batch=1, dataset="mnli", session=SESSION)  # its mean is unknown
    assert (fixed.sequence_length, fixed.assumed["input_shape"]) == (128, [128])
    own = ec.forecast("llama3_2_1b", device="A100", batch=1, dataset="alpaca", input_shape=(128,), session=SESSION)
    assert own.sequence_length == 128 and "input_shape" not in own.assumed


def test_packed_texts_are_fewer_sequences() -> None:
    options: dict[str, Any] = {"device": "A100", "batch": 1, "packing": True, "session": SESSION}
    answer = ec.forecast("gpt2", dataset="alpaca", input_shape=(1000,), **options)
    assert (answer.samples, answer.sequence_length, answer.packing) == (ceil(52002 * 0.12), 1000, True)
    assert answer.assumed["lengths"] == "mean=120,max=1000,packed" and "input_shape" not in answer.assumed
    own = ec.forecast("gpt2", dataset="alpaca", **options)  # sequences of the network's length
    assert (own.sequence_length, own.assumed["input_shape"]) == (1024, [1024])
    short = ec.forecast("gpt2", dataset="alpaca", input_shape=(64,), **options)  # every text is cut
    assert short.samples == 52002
    said = ec.forecast("gpt2", samples=1000, lengths="mean=250,max=1000", **options)
    assert said.samples == 250 and not {"lengths", "input_shape"} & {*said.assumed}


def test_packing_without_a_known_mean_says_what_to_give() -> None:
    options: dict[str, Any] = {"device": "A100", "batch": 1, "packing": True, "session": SESSION}
    for more, hint in (({"samples": 1000}, "max=1024."), ({}, "max=1024 and `samples`."), ({"dataset": "squad"}, ".")):
        answer = ec.forecast("gpt2", **more, **options)
        notes = [note for note in ranked(answer.warnings) if note.startswith("Packing: the mean length")]
        assert len(notes) == 1 and notes[0].endswith(hint) and notes[0].importance is Importance.NOT_AS_ASKED
    for more in ({"dataset": "wikitext-103"}, {"tokens": 10**9}):
        assert not any("Packing" in note for note in ec.forecast("gpt2", **more, **options).warnings)


def test_packing_is_for_texts_and_joins_all_of_them() -> None:
    with pytest.raises(BadInput, match="`packing` is for language models: resnet18 takes images"):
        ec.forecast("resnet18", device="A100", batch=1, packing=True, session=SESSION)
    with pytest.raises(BadInput, match="`packing` joins texts; leave padded out of `lengths`"):
        Job("gpt2", batch=1, packing=True, lengths="mean=100,max=512,padded")


def test_a_corpus_fills_the_sequences_of_the_network() -> None:
    answer = ec.forecast("gpt2", device="A100", batch=1, dataset="wikitext-103", session=SESSION)
    assert answer.assumed == {"precision": "amp_bf16", "optimizer": "adamw", "input_shape": [1024]}


def test_images_are_no_texts_whatever_their_data_says() -> None:
    with pytest.raises(BadInput, match="resnet18 takes images, alpaca is text"):
        ec.forecast("resnet18", device="A100", batch=1, dataset="alpaca", session=SESSION)


def test_every_verb_assumes_the_same() -> None:
    wanted = {"precision": "amp_fp16", "optimizer": "adamw", "input_shape": [1024]}
    options: dict[str, Any] = {"device": "V100", "session": SESSION}
    assert ec.forecast("gpt2", batch=2, **options).as_dict()["assumed"] == wanted
    assert ec.forecast(Job("gpt2", batch=2), **options).as_dict()["assumed"] == wanted
    assert ec.scaling("gpt2", batch=2, gpus=[1, 2], **options).as_dict()["assumed"] == wanted
    assert ec.advise("gpt2", **options).as_dict()["assumed"] == wanted
    assert ec.diff("gpt2", "gpt2_medium", batch=2, **options).as_dict()["head"]["assumed"] == wanted


def test_a_plan_assumes_the_precision_of_each_device() -> None:
    answer = ec.plan("gpt2", batch=8, devices=["V100", "A100"], gpus=[1], samples=10_000, session=SESSION)
    precisions = {row.forecast.device[:4]: row.forecast.precision for row in answer.candidates}
    assert precisions == {"V100": "amp_fp16", "A100": "amp_bf16"}
    assert answer.setup["assumed"]["optimizer"] == "adamw"


# a variant that is what would be assumed anyway is no other configuration
def test_a_variant_of_a_plan_is_not_assumed() -> None:
    options: dict[str, Any] = {"batch": 8, "devices": ["A100"], "gpus": [1], "samples": 10_000, "session": SESSION}
    answer = ec.plan("resnet18", what_if=["precision=fp32,amp"], **options)
    assert {row.variant for row in answer.candidates} == {(), (("precision", "amp"),)}
    told = {row.variant: dict(row.forecast.assumed) for row in answer.candidates}
    assert told == {(): {"precision": "fp32", "optimizer": "sgd"}, (("precision", "amp"),): {"optimizer": "sgd"}}


def test_adapters_and_checkpointing_are_in_the_answer() -> None:
    answer = ec.forecast(
        "llama3_2_1b", device="A100", batch=1, input_shape=(64,), lora=4, checkpointing=True, session=SESSION
    )
    assert (answer.lora_targets, answer.checkpointing) == (("q_proj", "v_proj"), "full")
    every = ec.forecast(
        "llama3_2_1b", device="A100", batch=1, input_shape=(64,), lora=4, lora_targets=("all-linear",), session=SESSION
    )
    assert every.lora_targets == ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    assert ec.Forecast.from_dict(every.as_dict()) == every


def test_the_base_of_adapters_is_in_half_unless_it_is_said() -> None:
    options: dict[str, Any] = {"device": "A100", "batch": 1, "input_shape": (64,), "lora": 4, "session": SESSION}
    usual = ec.forecast("llama3_2_1b", **options)
    assert dict(usual.assumed) == {"precision": "amp_bf16", "weights": "bf16", "optimizer": "adamw"}
    said = ec.forecast("llama3_2_1b", weights="fp32", precision="amp_bf16", **options)
    assert said.peak_breakdown["parameters"] > 1.9 * usual.peak_breakdown["parameters"]


def test_lengths_that_nobody_said_make_the_peak_less_sure() -> None:
    options: dict[str, Any] = {"device": "A100", "batch": 2, "session": SESSION}
    assumed, said = (
        ec.forecast("gpt2", **more, **options)
        for more in ({"dataset": "alpaca"}, {"lengths": "mean=120,max=512,padded"})
    )
    part = {each.part: each.narrow_by for each in assumed.peak_uncertainty}
    assert part["assumed"] == "--lengths"
    assert "assumed" not in [each.part for each in said.peak_uncertainty]
    assert assumed.peak_bytes.high / assumed.peak_bytes.low > said.peak_bytes.high / said.peak_bytes.low
