import pytest

from epochcast.decide.plan.job_moves import checkpoint_seconds, moves, places_in
from epochcast.errors import BadInput, UnknownName
from epochcast.interval import Interval
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.where import Where

JOB = Job("resnet18", batch=32)
LEFT = Interval(3000.0, 3600.0, 4200.0)


def test_moving_to_the_same_place_costs_a_new_start() -> None:
    here = forecast_job(JOB, Where("V100").placement())
    stay, again = moves(JOB, here, LEFT, places_in("1xV100"), restart_seconds=300)
    assert stay.is_here and stay.remaining_seconds == LEFT
    assert again.remaining_seconds.mid == pytest.approx(3900 + again.checkpoint_seconds)
    assert again.restart_seconds == 300
    assert (stay.pareto, again.pareto) == (True, False)


def test_more_gpus_finish_sooner_and_work_is_counted_in_samples() -> None:
    here = forecast_job(JOB, Where("V100").placement())
    _, four = moves(JOB, here, LEFT, places_in("4xV100"), restart_seconds=0)
    there = forecast_job(JOB, Where("V100", gpus=4).placement())
    expected = 3600 * there.step_seconds.mid / here.step_seconds.mid / 4
    assert four.remaining_seconds.mid == pytest.approx(expected + four.checkpoint_seconds)
    assert four.global_batch == 128
    assert four.remaining_seconds.high / four.remaining_seconds.mid > LEFT.high / LEFT.mid


def test_the_optimizer_moves_along() -> None:
    """ResNet-18 with Adam: three times four bytes of 11.7 million parameters, written and read at 1 GB/s."""
    job = Job("resnet18", batch=32, optimizer="adam")
    here = forecast_job(job, Where("V100").placement())
    assert checkpoint_seconds(here) == pytest.approx(2 * 12 * 11.69e6 / 1e9, rel=0.01)


def test_places_as_they_are_typed() -> None:
    one, two = places_in("A100, 2x8xH100")
    assert (one.device, one.gpus, one.nodes) == ("A100", 1, 1)
    assert (two.device, two.gpus, two.nodes) == ("H100", 16, 2)


def test_a_place_nobody_knows_offers_near_names() -> None:
    with pytest.raises(UnknownName, match="V100"):
        places_in("4xV10")
    with pytest.raises(BadInput, match="no GPU"):
        places_in("0xV100")


def test_staying_is_compared_even_where_the_forecast_denies_that_it_fits() -> None:
    job = Job("resnet50", batch=4096)
    here = forecast_job(job, Where("V100").placement())
    assert here.fits is False
    stay, there = moves(job, here, LEFT, places_in("1xV100"), restart_seconds=300)
    assert (stay.pareto, there.pareto) == (True, False)


def test_time_in_which_nothing_runs_is_neither_scaled_nor_paid() -> None:
    here = forecast_job(JOB, Where("V100").placement())
    stay, there = moves(JOB, here, LEFT, places_in("4xV100"), restart_seconds=0, down_seconds=LEFT.mid / 10)
    _, without = moves(JOB, here, LEFT, places_in("4xV100"), restart_seconds=0)
    assert stay.dollars is not None and here.dollars_per_hour is not None
    assert stay.dollars.mid == pytest.approx(LEFT.mid * 9 / 10 * here.dollars_per_hour / 3600)
    expected = without.remaining_seconds.mid - without.checkpoint_seconds
    assert there.remaining_seconds.mid == pytest.approx(0.9 * expected + 360 + there.checkpoint_seconds)


def test_a_new_start_on_the_same_machine_is_as_sure_as_staying() -> None:
    here = forecast_job(JOB, Where("V100").placement())
    stay, again = moves(JOB, here, LEFT, places_in("1xV100"), restart_seconds=0)
    width = again.remaining_seconds.high / again.remaining_seconds.mid
    assert width == pytest.approx(stay.remaining_seconds.high / stay.remaining_seconds.mid, rel=0.05)
