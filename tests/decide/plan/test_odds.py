import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.decide.plan.odds import probability_within, quantile_of
from epochcast.interval import Interval

TEN = Interval(5.0, 10.0, 30.0)
intervals = st.builds(
    lambda mid, below, above: Interval(mid / below, mid, mid * above),
    st.floats(0.01, 1e6),
    st.floats(1, 5),
    st.floats(1, 5),
)


# by hand: of a 90 % interval one value in twenty is above the high end, one in twenty below the low end
def test_the_ends_are_the_quantiles_of_their_coverage() -> None:
    assert probability_within(TEN, 30.0) == pytest.approx(0.95)
    assert probability_within(TEN, 10.0) == pytest.approx(0.5)
    assert probability_within(TEN, 5.0) == pytest.approx(0.05)
    assert quantile_of(TEN, 0.95) == pytest.approx(30.0)
    assert quantile_of(TEN, 0.05) == pytest.approx(5.0)


def test_a_known_value_is_within_or_not() -> None:
    assert [probability_within(Interval.exact(2.0), limit) for limit in (1.9, 2.0, 3.0)] == [0.0, 1.0, 1.0]
    assert quantile_of(Interval.exact(2.0), 0.99) == 2.0


@given(interval=intervals, limit=st.floats(0.01, 1e6), more=st.floats(0, 1e6))
def test_a_larger_limit_is_never_less_probable(interval: Interval, limit: float, more: float) -> None:
    assert 0 <= probability_within(interval, limit) <= probability_within(interval, limit + more) <= 1


@given(interval=intervals.filter(lambda each: each.high > 1.01 * each.mid), probability=st.floats(0.5, 0.999))
def test_the_quantile_has_its_probability(interval: Interval, probability: float) -> None:
    assert probability_within(interval, quantile_of(interval, probability)) == pytest.approx(probability, abs=1e-6)
