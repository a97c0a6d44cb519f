from dataclasses import FrozenInstanceError
from math import inf, isclose, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.interval import COVERAGE, Interval, sum_independent

ends = st.floats(min_value=-1e12, max_value=1e12)
positive = st.builds(Interval.around, st.floats(1e-9, 1e9), st.floats(1.0, 10.0))


@st.composite
def any_interval(draw: st.DrawFn) -> Interval:
    low, mid, high = sorted(draw(st.tuples(ends, ends, ends)))
    return Interval(low, mid, high, draw(st.floats(0.01, 1.0)))


intervals = any_interval()
several = st.lists(intervals, max_size=8)


def width(interval: Interval) -> float:
    return interval.high - interval.low


def test_half_widths_add_in_quadrature_when_errors_are_unrelated() -> None:
    assert sum_independent([Interval(7, 10, 13), Interval(16, 20, 24)]) == Interval(25, 30, 35)


def test_each_side_adds_on_its_own() -> None:
    total = sum_independent([Interval(7, 10, 10), Interval(16, 20, 21)])
    assert (total.low, total.high) == (25, 31)


def test_around_is_a_ratio_on_both_sides() -> None:
    assert Interval.around(8.0, 2.0) == Interval(4.0, 8.0, 16.0, COVERAGE)


def test_scaling_keeps_the_relative_width() -> None:
    assert Interval(1, 2, 4, 0.8).scaled(3) == Interval(3, 6, 12, 0.8)


def test_an_exact_value_is_certain_and_has_no_width() -> None:
    assert Interval.exact(5) == Interval(5, 5, 5, 1.0)


def test_the_ends_belong_to_the_interval() -> None:
    interval = Interval(1, 2, 4)
    assert [interval.holds(value) for value in (0.99, 1, 3, 4, 4.01)] == [False, True, True, True, False]


def test_the_json_names_are_the_contract() -> None:
    assert Interval(1, 2, 4, 0.9).as_dict() == {"low": 1, "mid": 2, "high": 4, "coverage": 0.9}


def test_the_sum_of_nothing_is_exactly_zero() -> None:
    assert sum_independent([]) == Interval.exact(0)


def test_a_sum_is_as_sure_as_its_least_sure_uncertain_part() -> None:
    certain_by_width = Interval(1, 1, 1, 0.5)
    assert sum_independent([Interval(1, 2, 3, 0.8), Interval(1, 2, 3, 0.9), certain_by_width]).coverage == 0.8
    assert sum_independent([certain_by_width, Interval.exact(2)]).coverage == 1.0


def test_an_iterator_is_summed_whole() -> None:
    assert sum_independent(Interval.exact(value) for value in (1, 2, 3)) == Interval.exact(6)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_very_small_and_very_large_widths_survive_quadrature(size: float) -> None:
    total = sum_independent([Interval(0, 3 * size, 6 * size), Interval(0, 4 * size, 8 * size)])
    assert total.high - total.mid == pytest.approx(5 * size)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((2, 1, 3), "an interval needs low <= mid <= high, got 2, 1, 3"),
        ((1, 3, 2), "an interval needs low <= mid <= high, got 1, 3, 2"),
        ((nan, 1, 2), "an interval needs finite ends, got nan, 1, 2"),
        ((1, 2, inf), "an interval needs finite ends, got 1, 2, inf"),
        ((1, 2, 3, 0), r"coverage must be in \(0, 1\], got 0"),
        ((1, 2, 3, 1.5), r"coverage must be in \(0, 1\], got 1.5"),
        ((1, 2, 3, nan), r"coverage must be in \(0, 1\], got nan"),
    ],
)
def test_an_interval_is_valid_from_birth(numbers: tuple[float, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Interval(*numbers)


def test_a_factor_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r"factor must be at least 1, got 0.5"):
        Interval.around(1.0, 0.5)


def test_a_negative_scale_would_turn_the_ends_around_and_is_refused() -> None:
    with pytest.raises(ValueError, match="an interval is scaled by a factor of at least 0, got -1"):
        Interval(1, 2, 3).scaled(-1)


def test_an_interval_does_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(Interval(1, 2, 3), "mid", 2.5)  # noqa: B010 (mypy refuses the plain assignment, rightly)


@given(parts=st.lists(positive, min_size=1, max_size=8))
def test_a_sum_of_times_stays_positive(parts: list[Interval]) -> None:
    assert sum_independent(parts).low > 0


@given(only=intervals)
def test_a_sum_of_one_is_that_one(only: Interval) -> None:
    alone = sum_independent([only])
    slack = 1e-9 * (abs(only.low) + abs(only.high))
    assert isclose(alone.low, only.low, abs_tol=slack)
    assert isclose(alone.high, only.high, abs_tol=slack)


@given(interval=positive, factor=st.floats(0, 1e6))
def test_scaling_keeps_the_order_of_the_ends(interval: Interval, factor: float) -> None:
    scaled = interval.scaled(factor)
    assert scaled.low <= scaled.mid <= scaled.high
    assert scaled.coverage == interval.coverage
