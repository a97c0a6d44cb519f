"""What would make a job fit, by what it costs in time."""

from dataclasses import replace
from typing import Any

import pytest

import epochcast as ec
from epochcast.interval import Interval
from epochcast.predict.forecast.remedies import EFFORTS, MORE_HARDWARE, OTHER_JOB, SAME_JOB, Remedy, _is_enough, _passes
from epochcast.predict.memory.verdict import FITS


def test_what_would_fit_fits_with_the_options_that_it_names() -> None:
    answer = ec.forecast("gpt2", device="T4", batch=64, optimizer="adamw")
    found = answer.remedies()
    assert answer.fits is False
    assert {"accumulate", "batch", "device"} <= {remedy.change for remedy in found}
    cheapest = found[0]
    options: dict[str, Any] = {"device": "T4", "batch": 64, "optimizer": "adamw"}
    for name, value in cheapest.options.items():
        options[name] = int(value) if value.isdecimal() else value
    again = ec.forecast("gpt2", **options)
    assert again.fits
    assert again.memory_verdict == cheapest.verdict
    assert 1 / again.samples_per_second * answer.samples_per_second == pytest.approx(cheapest.time_factor)


def test_the_cheapest_comes_first_and_other_jobs_last() -> None:
    found = ec.forecast("gpt2", device="T4", batch=64, optimizer="adamw").remedies()
    assert [remedy.effort for remedy in found] == sorted((remedy.effort for remedy in found), key=EFFORTS.index)
    same = [remedy for remedy in found if remedy.effort == SAME_JOB and remedy.verdict == FITS]
    assert [remedy.time_factor for remedy in same] == sorted(remedy.time_factor for remedy in same)
    assert {remedy.change for remedy in found if remedy.effort == OTHER_JOB} >= {"batch"}
    assert {remedy.change for remedy in found if remedy.effort == MORE_HARDWARE} >= {"device"}


def test_accumulation_keeps_the_samples_of_a_step() -> None:
    found = ec.forecast("resnet50", device="T4", batch=512).remedies()
    split = next(remedy for remedy in found if remedy.change == "accumulate")
    assert int(split.options["batch"]) * int(split.options["accumulate"]) == 512


# by hand: 32 samples, at most 11 a pass: 3 passes leave a rest, 4 of 8 do not; 31 is prime, so 3 of 11 or fewer
def test_passes_divide_the_samples_where_few_do() -> None:
    assert [_passes(32, 11), _passes(512, 171), _passes(31, 11), _passes(30, 30)] == [4, 4, 3, 1]


def test_the_gpus_given_may_share_the_state() -> None:
    answer = ec.forecast("gpt2_xl", device="RTX 3090", batch=1, gpus=8, optimizer="adamw", precision="fp32")
    assert answer.fits is False
    strategies = {remedy.options.get("strategy") for remedy in answer.remedies()}
    assert strategies & {"zero1", "zero2", "zero3"}


def test_lora_is_named_another_job() -> None:
    found = ec.forecast("llama2_7b", device="RTX 4090", batch=1, optimizer="adamw").remedies()
    tuned = {remedy.change.partition(",")[0]: remedy for remedy in found if remedy.effort == OTHER_JOB}
    assert "QLoRA" in tuned
    assert tuned["QLoRA"].options["four_bit"] == "True"


def test_lora_that_is_tried_is_the_lora_that_is_forecast() -> None:
    """Its base is in half, as a LoRA job without a precision is."""
    found = ec.forecast("llama3_2_3b", device="RTX 4090", batch=1, input_shape=(512,)).remedies()
    tried = next(remedy for remedy in found if remedy.change == "LoRA")
    asked = ec.forecast("llama3_2_3b", device="RTX 4090", batch=1, input_shape=(512,), lora=16)
    assert (tried.options["precision"], tried.options["weights"]) == ("amp_bf16", "bf16")
    assert asked.peak_bytes is not None
    assert tried.peak_bytes.mid == asked.peak_bytes.mid


def test_a_job_that_fits_needs_no_change() -> None:
    assert ec.forecast("resnet50", device="V100", batch=8).remedies() == ()


def test_what_saves_less_time_than_is_shown_makes_no_remedy() -> None:
    peak = Interval(1e9, 2e9, 3e9)
    options = {"checkpointing": "full"}
    less = Remedy("checkpointing", "full", peak, "V100", FITS, 0.99, Interval(1, 2, 3), 1.391, SAME_JOB, options)
    more = replace(less, time_factor=1.389, options={**options, "optimizer": "adamw8bit"})
    assert _is_enough(less, more)
    assert not _is_enough(less, replace(more, time_factor=1.37))
