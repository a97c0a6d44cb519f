from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.forecast.epochs import CHECKPOINT_BYTES_PER_SECOND, WARMUP_SECONDS, steps_per_epoch
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.job_data import Data, data_of
from epochcast.predict.forecast.placement import place
from epochcast.predict.forecast.session import Session

RESNET = zoo_model("resnet18")
MNIST = zoo_model("mnist_cnn").trace(Recipe(1))


def asked(model: CostModel, **options: Any) -> Forecast:
    """Batch 32 on four GPUs at 2 dollars each; no checkpoints unless asked for."""
    job = Job(RESNET, **{"batch": 32, "checkpoints_per_epoch": 0, **options})
    return forecast_job(job, place("V100", gpus=4, dollars_per_gpu_hour=2.0), Session(model))


# 1,000 samples in global batches of 128: 8 steps, the last one not full.
def test_an_epoch_is_its_steps(per_kernel: CostModel) -> None:
    answer = asked(per_kernel, samples=1000)
    assert (answer.global_batch, answer.steps_per_epoch) == (128, 8)
    assert answer.epoch_seconds is not None
    assert answer.epoch_seconds.mid == pytest.approx(8 * answer.step_seconds.mid)


@given(samples=st.integers(1, 10**7))
def test_no_sample_is_left_out(samples: int) -> None:
    steps = steps_per_epoch(Data("images", samples, 0, 1.0, None), 128)
    assert steps is not None
    assert (steps - 1) * 128 < samples <= steps * 128


def test_validation_is_forward_passes(per_kernel: CostModel) -> None:
    answer = asked(per_kernel, samples=1000, validation_samples=300)  # three passes of 128
    assert answer.epoch_seconds is not None
    expected = 8 * answer.step_seconds.mid + 3 * answer.details.step.forward_seconds
    assert answer.epoch_seconds.mid == pytest.approx(expected)


def test_a_checkpoint_writes_parameters_and_state(per_kernel: CostModel) -> None:
    with_two = asked(per_kernel, samples=1000, checkpoints_per_epoch=2).epoch_seconds
    without = asked(per_kernel, samples=1000).epoch_seconds
    assert with_two is not None and without is not None
    assert with_two.mid - without.mid == pytest.approx(2 * 4 * 11_689_512 / CHECKPOINT_BYTES_PER_SECOND)


def test_a_job_is_its_epochs_and_one_warm_up(per_kernel: CostModel) -> None:
    answer = asked(per_kernel, samples=1000, epochs=90)
    assert answer.total_seconds is not None
    assert answer.total_seconds.mid == pytest.approx(WARMUP_SECONDS + 90 * 8 * answer.step_seconds.mid)


def test_dollars_are_hours_times_the_price_of_all_gpus(per_kernel: CostModel) -> None:
    answer = asked(per_kernel, samples=1000, epochs=90)
    assert answer.dollars is not None and answer.total_seconds is not None
    assert answer.dollars.mid == pytest.approx(answer.total_seconds.mid / 3600 * 8)
    assert answer.dollars.high / answer.dollars.mid == pytest.approx(answer.step_seconds.high / answer.step_seconds.mid)


def test_what_nobody_said_is_unknown_not_zero(per_kernel: CostModel) -> None:
    answer = asked(per_kernel)
    unknown = (answer.steps_per_epoch, answer.epoch_seconds, answer.total_seconds, answer.dollars)
    assert unknown == (None, None, None, None)


# 8 distinct samples per GPU, seen as 4 augmented copies each: a step computes on 32 and uses up 8.
def test_augmented_copies_are_computed_on_but_not_counted(per_kernel: CostModel) -> None:
    answer = asked(per_kernel, batch=8, samples=1000, augment=4, validation_samples=300)
    assert (answer.batch_per_gpu, answer.global_batch, answer.steps_per_epoch) == (8, 32, ceil(1000 / 32))
    assert answer.samples_per_second == pytest.approx(32 / answer.step_seconds.mid)
    assert answer.epoch_seconds is not None
    expected = 32 * answer.step_seconds.mid + 3 * answer.details.step.forward_seconds
    assert answer.epoch_seconds.mid == pytest.approx(expected)  # validation sees each sample once


def test_accumulated_passes_are_one_batch(per_kernel: CostModel) -> None:
    answer = asked(per_kernel, accumulate=4, samples=10_000, validation_samples=300)
    assert (answer.batch_per_gpu, answer.global_batch, answer.steps_per_epoch) == (128, 512, 20)
    assert answer.epoch_seconds is not None
    expected = 20 * answer.step_seconds.mid + 3 * answer.details.step.forward_seconds
    assert answer.epoch_seconds.mid == pytest.approx(expected)


def test_a_part_of_a_data_set_has_no_validation() -> None:
    whole, part = (data_of(Job("mnist_cnn", dataset="mnist", samples=samples), MNIST) for samples in (None, 1000))
    assert (whole.validation_samples, part.validation_samples) == (10_000, 0)
    assert (whole.samples, part.samples) == (60_000, 1000)
