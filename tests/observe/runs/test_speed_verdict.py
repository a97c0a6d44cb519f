"""The factor against the forecast, and the verdict."""

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.interval import Interval
from epochcast.observe.runs.report import Report
from epochcast.observe.runs.speed_verdict import speed_factor, speed_verdict
from epochcast.observe.runs.tracker import Tracker
from epochcast.predict.forecast.forecast import Forecast

EXPECTED = Interval(0.08, 0.1, 0.125)


# by hand: exact 0.2 s over 0.1 s (±25 %) is 2, from 0.2/0.125 to 0.2/0.08
def test_an_exact_observation_leaves_the_forecasts_interval() -> None:
    factor = speed_factor(Interval.exact(0.2), EXPECTED)
    assert [factor.low, factor.mid, factor.high] == pytest.approx([1.6, 2.0, 2.5])


@given(st.floats(0.0801, 0.1249))
def test_what_is_inside_the_interval_is_normal(seconds: float) -> None:
    assert speed_verdict(speed_factor(Interval.exact(seconds), EXPECTED), 0.3) == "normal"


@pytest.mark.parametrize(("seconds", "verdict"), [(0.13, "slower"), (0.07, "faster"), (3.0, "suspicious")])
def test_what_is_outside_has_a_direction(seconds: float, verdict: str) -> None:
    assert speed_verdict(speed_factor(Interval.exact(seconds), EXPECTED), 0.3) == verdict


def test_more_than_the_peak_is_suspicious() -> None:
    assert speed_verdict(speed_factor(Interval.exact(0.07), EXPECTED), 1.1) == "suspicious"


@given(st.floats(1.0, 1.5), st.floats(0.01, 1.0))
def test_an_uncertain_observation_widens_the_factor(spread: float, seconds: float) -> None:
    exact = speed_factor(Interval.exact(seconds), EXPECTED)
    wide = speed_factor(Interval.around(seconds, spread), EXPECTED)
    assert log(wide.high / wide.low) >= log(exact.high / exact.low) - 1e-9


@pytest.mark.parametrize(("seconds", "verdict"), [(0.1, "normal"), (0.2, "slower"), (0.05, "faster")])
def test_a_tracked_run_has_the_verdict_of_its_own_pace(seconds: float, verdict: str) -> None:
    forecast = Forecast("own", "V100", batch_per_gpu=64, step_seconds=EXPECTED, total_seconds=EXPECTED.scaled(1000))
    tracker = Tracker(1000, forecast)
    assert Tracker(1000, forecast).add_all([Report(step=0.0, clock_seconds=0.0)]).standing().speed_verdict is None
    tracker.add_all(Report(step=float(n), clock_seconds=seconds * n) for n in range(100))
    assert tracker.standing().speed_verdict == verdict
    assert tracker.standing().as_dict()["speed_verdict"] == verdict


def test_a_run_without_a_forecast_has_no_verdict() -> None:
    tracker = Tracker(1000).add_all(Report(step=float(n), clock_seconds=float(n)) for n in range(9))
    assert tracker.standing().speed_verdict is None
