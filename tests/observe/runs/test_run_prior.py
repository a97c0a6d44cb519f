from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.observe.runs.remaining_time import remaining
from epochcast.observe.runs.report import Report
from epochcast.observe.runs.run_history import History
from epochcast.observe.runs.run_prior import Prior, combined, prior_of_forecast
from epochcast.observe.runs.tracker import Tracker
from epochcast.predict.forecast.forecast import Forecast

STEP = Interval(0.09, 0.1, 0.12)
# Ten epochs of a hundred steps, two seconds of validation after each, five of warm-up.
FORECAST = Forecast(
    "own",
    "V100",
    step_seconds=STEP,
    steps_per_epoch=100,
    epochs=10,
    epoch_seconds=STEP.scaled(120),
    total_seconds=STEP.scaled(1250),
)


def test_a_forecast_tells_pace_pauses_and_start() -> None:
    prior = prior_of_forecast(FORECAST)
    assert prior.step_seconds == STEP
    assert prior.pause_fraction == pytest.approx(0.2)
    assert prior.start_seconds == pytest.approx(5)


def test_ends_of_epochs_are_foreseen_as_the_forecast_has_them() -> None:
    """Before the first validation: nine hundred and fifty steps of 0.1 s, a fifth of it beside them."""
    tracker = Tracker(forecast=FORECAST)
    for step in range(0, 51, 5):
        tracker.add(Report(step=step, clock_seconds=0.1 * step + 0.01, total_steps=1000, steps_per_epoch=100))
    assert tracker.standing().remaining_seconds.mid == pytest.approx(95 * 1.2, rel=0.01)


def test_the_start_that_was_told_is_still_to_come_while_no_step_was_timed() -> None:
    history = History()
    history.add(Report(step=0, clock_seconds=2.0))
    prior = Prior(STEP, start_seconds=5.0)
    assert remaining(history, 1000, prior).remaining_seconds.mid == pytest.approx(100 + 3, rel=0.03)


def test_pauses_that_were_told_count_where_no_epochs_are_counted() -> None:
    history = History()
    for step in range(0, 101, 10):
        history.add(Report(step=step, clock_seconds=step + 0.1))
    assert remaining(history, 1000, Prior(pause_fraction=0.2)).remaining_seconds.mid == pytest.approx(900 * 1.2)


def test_the_surer_of_two_weighs_more() -> None:
    both = combined([Prior(Interval.around(1.0, 1.5)), Prior(Interval.around(1.3, 1.1), 0.1, 7.0, "past runs"), None])
    assert both is not None and both.step_seconds is not None
    assert 1.2 < both.step_seconds.mid < 1.3
    assert (both.pause_fraction, both.start_seconds) == (0.1, 7.0)
    assert both.source == "past runs and the forecast"
    assert combined([None]) is None


@given(first=st.floats(0.1, 10), second=st.floats(0.1, 10), wide=st.floats(1.05, 3), narrow=st.floats(1.05, 3))
def test_what_is_combined_lies_between(first: float, second: float, wide: float, narrow: float) -> None:
    both = combined([Prior(Interval.around(first, wide)), Prior(Interval.around(second, narrow))])
    assert both is not None and both.step_seconds is not None
    assert min(first, second) * (1 - 1e-9) <= both.step_seconds.mid <= max(first, second) * (1 + 1e-9)


def test_priors_that_disagree_are_less_sure_than_either_claims() -> None:
    both = combined([Prior(Interval.around(1.0, 1.05)), Prior(Interval.around(2.0, 1.05))])
    assert both is not None and both.log_error is not None
    assert both.log_error > 0.2 * log(2)


def test_a_step_that_takes_no_time_is_refused() -> None:
    with pytest.raises(BadInput, match="step_seconds must be positive"):
        Prior(Interval(0.0, 0.5, 1.0))
