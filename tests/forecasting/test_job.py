import json
from dataclasses import replace
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.capture.zoo import zoo_model
from epochcast.cost.model import CostModel
from epochcast.errors import BadInput
from epochcast.forecasting.job import CHECKPOINT_BYTES_PER_SECOND, WARMUP_SECONDS, Forecast, Schedule
from epochcast.forecasting.placement import place
from epochcast.forecasting.step import step_forecast
from epochcast.graph.recipe import Recipe
from epochcast.memory.peak import peak_memory

RESNET = zoo_model("resnet18")


@pytest.fixture(scope="module")
def answer(per_kernel: CostModel) -> Forecast:
    """Batch 32 on four GPUs at 2 dollars each."""
    trace, placement = RESNET.trace(Recipe(32)), place("V100", gpus=4, dollars_per_gpu_hour=2.0)
    step, memory = step_forecast(trace, placement, per_kernel), peak_memory(trace, placement.device)
    return Forecast(trace, placement, Schedule(), step, memory)


def scheduled(answer: Forecast, **options: Any) -> Forecast:
    return replace(answer, schedule=Schedule(**{"checkpoints_per_epoch": 0, **options}))


# 1,000 samples in global batches of 128: 8 steps, the last one not full.
def test_an_epoch_is_its_steps(answer: Forecast) -> None:
    job = scheduled(answer, samples=1000)
    assert (job.global_batch, job.steps_per_epoch) == (128, 8)
    assert job.epoch_seconds is not None
    assert job.epoch_seconds.mid == pytest.approx(8 * answer.step.seconds.mid)


@given(samples=st.integers(1, 10**7))
def test_no_sample_is_left_out(answer: Forecast, samples: int) -> None:
    steps = scheduled(answer, samples=samples).steps_per_epoch
    assert steps is not None
    assert (steps - 1) * 128 < samples <= steps * 128


def test_validation_is_forward_passes(answer: Forecast) -> None:
    job = scheduled(answer, samples=1000, validation_samples=300)  # three passes of 128
    assert job.epoch_seconds is not None
    expected = 8 * answer.step.seconds.mid + 3 * answer.step.forward_seconds
    assert job.epoch_seconds.mid == pytest.approx(expected)


def test_a_checkpoint_writes_parameters_and_state(answer: Forecast) -> None:
    with_two = scheduled(answer, samples=1000, checkpoints_per_epoch=2).epoch_seconds
    without = scheduled(answer, samples=1000).epoch_seconds
    assert with_two is not None and without is not None
    assert with_two.mid - without.mid == pytest.approx(2 * 4 * 11_689_512 / CHECKPOINT_BYTES_PER_SECOND)


def test_a_job_is_its_epochs_and_one_warm_up(answer: Forecast) -> None:
    job = scheduled(answer, samples=1000, epochs=90)
    assert job.total_seconds is not None
    assert job.total_seconds.mid == pytest.approx(WARMUP_SECONDS + 90 * 8 * answer.step.seconds.mid)


def test_dollars_are_hours_times_the_price_of_all_gpus(answer: Forecast) -> None:
    job = scheduled(answer, samples=1000, epochs=90)
    assert job.dollars is not None and job.total_seconds is not None
    assert job.dollars.mid == pytest.approx(job.total_seconds.mid / 3600 * 8)
    assert job.dollars.high / job.dollars.mid == pytest.approx(job.step.seconds.high / job.step.seconds.mid)


def test_what_nobody_said_is_unknown_not_zero(answer: Forecast) -> None:
    unknown = (answer.steps_per_epoch, answer.epoch_seconds, answer.total_seconds, answer.dollars)
    assert unknown == (None, None, None, None)
    unpriced = replace(answer, placement=replace(answer.placement, price=None))
    assert scheduled(unpriced, samples=1000).dollars is None
    assert scheduled(unpriced, samples=1000).total_seconds is not None


# 8 distinct samples per GPU, seen as 4 augmented copies each: a step computes on 32 and uses up 8.
def test_augmented_copies_are_computed_on_but_not_counted(answer: Forecast) -> None:
    job = scheduled(answer, samples=1000, augment=4, validation_samples=300)
    assert (job.batch_per_gpu, job.global_batch, job.steps_per_epoch) == (8, 32, ceil(1000 / 32))
    assert job.samples_per_second == pytest.approx(32 / answer.step.seconds.mid)
    assert job.epoch_seconds is not None
    expected = 32 * answer.step.seconds.mid + 3 * answer.step.forward_seconds
    assert job.epoch_seconds.mid == pytest.approx(expected)  # validation sees each sample once


def test_accumulated_passes_are_one_batch(answer: Forecast, per_kernel: CostModel) -> None:
    trace = RESNET.trace(Recipe(32, accumulate=4))
    step = step_forecast(trace, answer.placement, per_kernel)
    job = scheduled(replace(answer, trace=trace, step=step), samples=10_000, validation_samples=300)
    assert (job.batch_per_gpu, job.global_batch, job.steps_per_epoch) == (128, 512, 20)
    assert job.epoch_seconds is not None
    assert job.epoch_seconds.mid == pytest.approx(20 * step.seconds.mid + 3 * step.forward_seconds)


def test_a_job_fits_where_its_peak_does(answer: Forecast) -> None:
    assert answer.fits and answer.would_fit == ()
    tiny = replace(answer.placement.device, memory_bytes=2**29)
    assert not replace(answer, memory=peak_memory(answer.trace, tiny)).fits


CONTRACT = {
    "model",
    "device",
    "gpus",
    "nodes",
    "strategy",
    "precision",
    "batch_per_gpu",
    "global_batch",
    "step_seconds",
    "step_parts",
    "epoch_seconds",
    "total_seconds",
    "samples_per_second",
    "peak_bytes",
    "memory_bytes",
    "fits",
    "dollars",
    "flops_per_sample",
    "parameters",
    "answered_by",
    "opaque_ops",
    "warnings",
}


def test_the_dictionary_keeps_the_contract_and_is_json(answer: Forecast) -> None:
    found = json.loads(json.dumps(scheduled(answer, samples=1000).as_dict(), allow_nan=False))
    assert set(found) >= CONTRACT
    assert sum(found["step_parts"].values()) == pytest.approx(found["step_seconds"]["mid"])
    assert found["parameters"] == 11_689_512
    assert found["flops_per_sample"] == pytest.approx(3 * 3.63e9, rel=0.03)  # three passes of 1.81 G multiply-adds
    assert answer.as_dict()["dollars"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 0}, "samples must be at least 1, got 0"),
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"validation_samples": -1}, "validation samples must be at least 0, got -1"),
        ({"checkpoints_per_epoch": -0.5}, "checkpoints per epoch must be at least 0, got -0.5"),
        ({"augment": 0}, "augment must be at least 1, got 0"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Schedule(**options)
