from dataclasses import replace
from math import exp, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.decide.diff.diff_answer import Diff
from epochcast.decide.diff.paired_interval import constants, independent_change, step_change, unlikeness
from epochcast.interval import Interval

from .conftest import side

HALF = {"a": (1.0, "shared"), "b": (1.0, "mine")}


def test_equal_steps_do_not_change_for_sure() -> None:
    change = step_change(side(HALF), side(HALF))
    assert (change.low, change.mid, change.high) == (1, 1, 1)


def test_half_in_common_by_hand() -> None:
    """Half of each step is shared: u = √(½² + ½²), h = c · √u."""
    other = {"a": (1.0, "shared"), "b": (1.1, "other")}
    u = sqrt(0.5**2 + (1.1 / 2.1) ** 2)
    assert unlikeness(side(HALF).kernels, side(other).kernels) == pytest.approx(u)
    change = step_change(side(HALF), side(other))
    assert change.mid == pytest.approx(1.05)
    assert change.high == pytest.approx(1.05 * exp(constants()["known"] * sqrt(u)))


def test_the_change_is_surer_than_two_forecasts_apart() -> None:
    other = {"a": (1.0, "shared"), "b": (1.1, "other")}
    paired = step_change(side(HALF), side(other))
    apart = independent_change(side(HALF).forecast.step_seconds, side(other).forecast.step_seconds)
    assert apart.low < paired.low < paired.high < apart.high


def test_an_added_layer_never_makes_a_step_faster() -> None:
    change = step_change(side(HALF), side({**HALF, "c": (0.01, "new")}))
    assert change.low == 1 < change.mid < change.high
    back = step_change(side({**HALF, "c": (0.01, "new")}), side(HALF))
    assert back.high == 1 > back.mid


def test_a_device_nobody_measured_is_less_sure() -> None:
    other = {"a": (1.0, "shared"), "b": (1.1, "other")}
    known = step_change(side(HALF), side(other))
    unseen = step_change(replace(side(HALF), is_known=False), side(other))
    assert unseen.high > known.high


def test_two_devices_have_nothing_to_cancel() -> None:
    base, head = side(HALF), side(HALF)
    head = replace(head, forecast=replace(head.forecast, device="V100"))
    answer = Diff(base, head)
    assert answer.step_seconds == independent_change(base.forecast.step_seconds, head.forecast.step_seconds)
    assert any("differ in device" in warning for warning in answer.warnings)


intervals = st.tuples(st.floats(0.1, 1), st.floats(1, 10), st.floats(1, 3)).map(
    lambda parts: Interval(parts[0] * parts[1], parts[1], parts[2] * parts[1])
)


@given(base=intervals, head=intervals)
def test_the_way_back_is_the_inverse(base: Interval, head: Interval) -> None:
    there, back = independent_change(base, head), independent_change(head, base)
    assert there.low * back.high == pytest.approx(1)
    assert there.mid * back.mid == pytest.approx(1)
