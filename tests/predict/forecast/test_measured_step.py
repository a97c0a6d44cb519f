"""A step that the user measured, and what it leaves uncertain."""

from functools import partial

import pytest

import epochcast as ec
from epochcast.errors import BadInput, MissingUnit
from epochcast.predict.cost.hosts import MOST_LAUNCH_SECONDS, find_host
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.measured_step import (
    AFTER_HIGH,
    AFTER_LOW,
    HOST_HIGH,
    HOST_LOW,
    MOST_RATIO,
    GivenStep,
    parse_measured_step,
    scaled_host,
    solved_factor,
)
from epochcast.predict.forecast.placement import WrittenPlacement
from epochcast.predict.forecast.step import HOST
from epochcast.predict.forecast.uncertainty import narrowed_width
from epochcast.predict.forecast.where import Where

RESNET = partial(ec.forecast, "resnet50", device="A100", precision="amp")
SMALL = partial(ec.forecast, "mnist_cnn", device="H100", batch=4)


def width(answer: Forecast) -> float:
    return answer.step_seconds.high / answer.step_seconds.low


@pytest.mark.parametrize("text", ["210ms@64", "0.21s@64", " 210 ms@ 64 "])
def test_a_time_and_its_batch_are_parsed(text: str) -> None:
    step = parse_measured_step(text)
    assert step.batch == 64
    assert step.seconds == pytest.approx(0.21)
    assert parse_measured_step(step.text) == step


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("210ms", "'210ms' is no measured step: give a time and the batch it was measured at, like 210ms@64"),
        ("210ms@all", "'210ms@all' is no measured step: give a time and the batch"),
        ("soon@64", "'soon' is not a time"),
        ("0s@64", "a measured step must take more than 0 seconds, got 0"),
        ("210ms@0", "the batch of a measured step must be at least 1, got 0"),
    ],
)
def test_what_is_no_measured_step_is_refused(text: str, refusal: str) -> None:
    with pytest.raises(BadInput, match=refusal):
        Where("A100", step_seconds=text)


def test_a_time_without_a_unit_is_refused() -> None:
    with pytest.raises(MissingUnit, match="step_seconds 210: give a unit, for example 210ms"):
        parse_measured_step("210@64")


@pytest.mark.parametrize("seconds", ["1h", "1us"])
def test_a_measurement_far_from_the_forecast_is_refused(seconds: str) -> None:
    with pytest.raises(BadInput, match=r"`step_seconds`: .*@64 cannot be a step of this job on one GPU: the forecast"):
        RESNET(batch=64, step_seconds=f"{seconds}@64")


def test_the_factor_by_hand() -> None:
    """2 s of kernels beside 1 s of something else: 5 s need twice the kernels."""
    assert solved_factor(lambda factor: 1 + 2 * factor, 5.0) == pytest.approx(2, rel=1e-5)
    assert solved_factor(lambda factor: 1 + 2 * factor, 1.0) is None, "no factor makes kernels vanish"
    assert solved_factor(lambda factor: factor, 1.01 * MOST_RATIO) is None


@pytest.mark.parametrize("ratio", [0.7, 1.3])
def test_the_forecast_at_the_measured_batch_is_the_measurement(ratio: float) -> None:
    plain = RESNET(batch=64)
    seconds = ratio * plain.step_seconds.mid
    measured = RESNET(batch=64, step_seconds=f"{seconds:.9g}s@64")
    assert measured.step_seconds.mid == pytest.approx(seconds, rel=1e-5)
    assert measured.step_seconds.low == pytest.approx(AFTER_LOW * seconds, rel=0.03)  # the host's part is not measured
    assert measured.step_seconds.high > 0.99 * AFTER_HIGH * seconds, "a host that nobody named may still be slow"
    assert width(measured) < width(plain)


def test_the_factor_carries_over_to_another_batch() -> None:
    plain = [RESNET(batch=batch).step_seconds.mid for batch in (64, 128)]
    measured = RESNET(batch=128, step_seconds=f"{1.3 * plain[0]:.9g}s@64")
    assert measured.step_seconds.mid == pytest.approx(1.3 * plain[1], rel=0.01)


def test_on_several_gpus_only_the_kernels_were_measured() -> None:
    plain = RESNET(batch=64).step_seconds.mid
    several = partial(RESNET, batch=64, gpus=8, nodes=2, link="ethernet_10g")
    before, after = several(), several(step_seconds=f"{plain:.9g}s@64")
    assert after.step_seconds.mid == pytest.approx(before.step_seconds.mid, rel=1e-3)
    assert width(after) < width(before)
    assert after.uncertainty[0].part == "communication"


def test_a_launch_bound_job_changes_its_host_only() -> None:
    plain = SMALL()
    seconds = 1.3 * plain.step_seconds.mid
    measured = SMALL(step_seconds=f"{seconds:.9g}s@4")
    assert measured.step_seconds.mid == pytest.approx(seconds, rel=1e-5)
    assert width(measured) < width(plain)
    assert plain.step_parts is not None and measured.step_parts is not None
    for part in ("forward", "backward", "update"):
        assert getattr(measured.step_parts, part) == pytest.approx(getattr(plain.step_parts, part))
    assert plain.details.placement.host is None
    assert measured.details.placement.host is not None


@pytest.mark.parametrize("compiler", ["none", "inductor"])
def test_a_measured_step_that_waits_for_launches_is_as_sure_as_launches_carry(compiler: str) -> None:
    """Neither how hosts differ nor how people run such steps is left, nor whether casts are worth it."""
    plain = SMALL(precision="amp", compile=compiler)
    seconds = 1.5 * plain.step_seconds.mid
    measured = SMALL(precision="amp", compile=compiler, step_seconds=f"{seconds:.9g}s@4")
    assert width(plain) > 3
    assert measured.step_seconds.mid == pytest.approx(seconds, rel=1e-4)
    assert measured.step_seconds.high <= HOST_HIGH * seconds * 1.01
    assert measured.step_seconds.low >= HOST_LOW * seconds * 0.99
    assert measured.uncertainty[0].part == HOST and not measured.uncertainty[0].narrow_by


def test_the_width_that_a_measured_step_would_give_is_the_one_it_gives() -> None:
    for job in (partial(SMALL), partial(RESNET, batch=64)):
        plain = job()
        batch, middle = plain.batch_per_gpu, plain.step_seconds.mid
        measured = job(step_seconds=f"{middle:.9g}s@{batch}")
        is_launch_bound = plain.uncertainty[0].part == HOST
        expected = narrowed_width(width(plain), plain.uncertainty, is_launch_bound=is_launch_bound)
        assert width(measured) == pytest.approx(expected, rel=0.15)


def test_a_measured_host_keeps_what_else_is_known_of_it() -> None:
    cloud = find_host("cloud")
    scaled = scaled_host(cloud, 1e-5, 2.0)
    assert scaled.launch_seconds.mid == pytest.approx(2e-5)
    assert scaled_host(None, 1.0, 2.0).launch_seconds.mid == pytest.approx(MOST_LAUNCH_SECONDS)


def test_a_placement_is_written_with_its_measured_step() -> None:
    placement = Where("A100", step_seconds="210ms@64").placement()
    assert placement.measured_step == GivenStep(0.21, 64)
    assert WrittenPlacement.of(placement).placement() == placement
