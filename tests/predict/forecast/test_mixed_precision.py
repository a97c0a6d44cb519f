"""Mixed precision is never slower than float32 where tensor cores work."""

from dataclasses import replace

import numpy as np
import pytest

import epochcast as ec
from epochcast.interval import Interval
from epochcast.predict.cost.cost_model import Costs
from epochcast.predict.forecast.mixed_precision import no_slower
from epochcast.predict.forecast.step import StepForecast
from epochcast.predict.forecast.step_parts import StepParts

# Launch-bound, as it has many small layers: casts take longer than products gain.
SMALL = ("resnet56", "mobilenet_v3_small", "lstm_wikitext2")


def step(low: float, mid: float, high: float, *, is_calibrated: bool = False) -> StepForecast:
    costs = Costs.by("learned", *(np.array([end]) for end in (low, mid, high)))
    costs = replace(costs, is_calibrated=is_calibrated)
    return StepForecast(Interval(low, mid, high), StepParts(mid, 0, 0, 0, 0, 0), mid, {"learned": 1.0}, costs)


def test_a_step_with_casts_is_at_most_as_long_as_in_float32_and_keeps_its_upper_end() -> None:
    bounded = no_slower(step(0.9, 1.5, 2.5), step(0.8, 1.0, 1.2))
    assert bounded.seconds == Interval(0.8, 1.0, 2.5)
    assert bounded.parts.total_seconds == 1.0 and bounded.casts_seconds == pytest.approx(0.5)


def test_a_faster_step_is_left_alone() -> None:
    fast = step(0.4, 0.5, 0.6)
    assert no_slower(fast, step(0.8, 1.0, 1.2)) is fast


def test_what_the_user_measured_in_one_precision_is_left_alone() -> None:
    measured = step(1.4, 1.5, 1.6, is_calibrated=True)
    assert no_slower(measured, step(0.8, 1.0, 1.2)) is measured
    both = no_slower(measured, step(0.8, 1.0, 1.2, is_calibrated=True))
    assert both.seconds.mid == 1.0


@pytest.mark.parametrize("model", SMALL)
@pytest.mark.parametrize("gpus", [1, 4])
def test_small_steps_are_forecast_as_in_float32_with_a_warning(model: str, gpus: int) -> None:
    job = ec.Job(model, batch=1, precision="amp")
    where = ec.place("A100", gpus=gpus)
    mixed, single = (ec.forecast(each, placement=where) for each in (job, replace(job, precision="fp32")))
    assert mixed.step_seconds.mid <= single.step_seconds.mid
    assert mixed.step_seconds.high >= single.step_seconds.high
    assert mixed.step_parts is not None
    assert sum(mixed.step_parts.as_dict().values()) == pytest.approx(mixed.step_seconds.mid)
    (warning,) = (text for text in mixed.warnings if "gains nothing here" in text)
    assert "with its casts the step may take" in warning


def test_a_large_step_gains_and_says_nothing_of_casts() -> None:
    mixed, single = (ec.forecast("resnet50", device="V100", batch=128, precision=name) for name in ("amp", "fp32"))
    assert mixed.step_seconds.mid < 0.7 * single.step_seconds.mid
    assert not any("casts" in text for text in mixed.warnings)


def test_without_tensor_cores_mixed_precision_may_be_slower() -> None:
    mixed, single = (ec.forecast("resnet56", device="GTX 1080", batch=1, precision=name) for name in ("amp", "fp32"))
    assert mixed.step_seconds.mid > single.step_seconds.mid
