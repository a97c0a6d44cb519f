from dataclasses import replace
from typing import Any

import pytest

from epochcast.decide.diff.change_limits import ChangeLimits, percent, signed
from epochcast.decide.diff.diff_answer import Diff
from epochcast.errors import BadInput
from epochcast.interval import Interval

from .conftest import side

BASE = {"a": (1.0, "x"), "b": (1.0, "y")}
SLOWER = {"a": (1.0, "x"), "b": (1.2, "z")}


def diff(allowed: ChangeLimits, **options: Any) -> Diff:
    return Diff(side(BASE, **options), side(SLOWER, **options), allowed)


def test_a_tenth_more_time_exceeds_five_percent_and_not_ten() -> None:
    (over,) = diff(ChangeLimits(time_increase=0.05)).exceeded
    assert over.sentence == "time +10 %, more than the allowed 5 % (not sure)"
    assert diff(ChangeLimits(time_increase=0.1)).exceeded == ()


def test_what_is_unknown_is_not_within_a_limit() -> None:
    with pytest.raises(BadInput, match="its cost is unknown"):
        assert diff(ChangeLimits(cost_increase=0.05)).exceeded


def test_memory_is_limited_by_its_size() -> None:
    answer = diff(ChangeLimits(most_memory_bytes=2**30), peak_bytes=Interval(1.5 * 2**30, 2.0 * 2**30, 3.0 * 2**30))
    (over,) = answer.exceeded
    assert over.is_sure
    assert over.sentence == "memory 2 GiB, more than the allowed 1 GiB"


def test_a_limit_on_change_counts_in_both_directions() -> None:
    faster = Diff(side(SLOWER), side(BASE), ChangeLimits(time_change=0.05))
    assert [over.what for over in faster.exceeded] == ["time_change"]
    assert faster.within(ChangeLimits(time_increase=0.05)).exceeded == ()
    assert [over.what for over in diff(ChangeLimits(time_change=0.05)).exceeded] == ["time_change"]
    assert diff(ChangeLimits(time_change=0.2)).exceeded == ()


# by hand: 100 seconds at $3,600 per hour are $100, a tenth more is $10
def test_an_increase_in_dollars_is_that_of_the_job() -> None:
    priced: dict[str, Any] = {"total_seconds": Interval.exact(100.0), "dollars_per_hour": 3600.0}
    base, head = side(BASE, **priced), side(SLOWER, **{**priced, "total_seconds": Interval.exact(110.0)})
    (over,) = Diff(base, head, ChangeLimits(dollar_increase=5.0)).exceeded
    assert over.what == "dollar_increase" and over.value == pytest.approx(10.0)
    assert over.sentence.startswith("cost +$10.00, more than the allowed $5.00")
    assert Diff(base, head, ChangeLimits(dollar_increase=11.0)).exceeded == ()
    with pytest.raises(BadInput, match="its cost is unknown"):
        assert diff(ChangeLimits(dollar_increase=5.0)).exceeded


def test_a_small_change_is_quiet_unless_a_limit_is_exceeded() -> None:
    assert diff(ChangeLimits(quiet_below=0.2)).is_quiet
    assert not diff(ChangeLimits(quiet_below=0.05)).is_quiet
    assert not diff(ChangeLimits(quiet_below=0.2, time_increase=0.05)).is_quiet
    assert not ChangeLimits(quiet_below=0.2)


def test_a_change_that_only_adds_layers_is_not_faster() -> None:
    """The forecasts say that the larger step is faster, as their errors may."""
    base, larger = side(BASE), side({**BASE, "c": (1.0, "w")})
    head = replace(larger, forecast=replace(larger.forecast, step_seconds=Interval(1.0, 1.9, 3.0)))
    change = Diff(base, head).step_seconds
    assert (change.low, change.mid) == (1.0, 1.0) and change.high > 1
    back = Diff(head, base).step_seconds
    assert (back.mid, back.high) == (1.0, 1.0) and back.low < 1


def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(BadInput, match="time_increase must be at least 0"):
        ChangeLimits(time_increase=-0.1)


@pytest.mark.parametrize(
    ("fraction", "text"), [(0.05, "+5 %"), (-0.034, "-3.4 %"), (1.23, "+123 %"), (0.0001, "±0 %"), (0.0005, "+0.1 %")]
)
def test_changes_are_written_with_their_sign(fraction: float, text: str) -> None:
    assert signed(fraction) == text


def test_percent_has_no_needless_digits() -> None:
    assert (percent(0.05), percent(0.055), percent(0.5)) == ("5 %", "5.5 %", "50 %")
