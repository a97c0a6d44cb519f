import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.interval import Interval
from epochcast.observe.runs.interruptions import Interruption, count_at, interruptions_to_come
from epochcast.observe.runs.remaining_time import remaining
from epochcast.observe.runs.report import Report
from epochcast.observe.runs.run_history import History
from epochcast.observe.runs.tracker import Tracker
from epochcast.predict.forecast.forecast import Forecast


def test_one_in_the_first_half_by_hand() -> None:
    """P(0) = 1/2, P(1) = 1/4, …: none is the median, four are passed in one of 32."""
    assert count_at(0.5, 1, 0.5) == 0
    assert count_at(0.95, 1, 0.5) == 4


def test_none_seen_none_expected() -> None:
    assert interruptions_to_come([], 100, 900, 1.0).high_seconds == 0


def test_many_come_back_as_often() -> None:
    """Twenty in a thousand steps, an hour and fifty steps each: about twenty more in the next thousand."""
    coming = interruptions_to_come([Interruption(3600, 50)] * 20, 1000, 1000, 2.0)
    assert coming.seconds == pytest.approx(20 * 3700, rel=0.1)
    assert coming.down_seconds == pytest.approx(20 * 3600, rel=0.1)
    assert coming.high_seconds > 1.3 * coming.seconds


@given(seen=st.integers(1, 30), left=st.floats(1, 1e5), more=st.floats(1, 1e5))
def test_more_steps_never_have_fewer_interruptions(seen: int, left: float, more: float) -> None:
    known = [Interruption(60, 10)] * seen
    fewer, longer = (interruptions_to_come(known, 1000, steps, 1.0).high_seconds for steps in (left, left + more))
    assert fewer <= longer


def attempts(ends: list[int], total: int | None = None) -> list[Report]:
    """Each begins fifty steps before the last one's end, an hour later; one second per step."""
    seen, clock, begin = [], 0.5, 0
    for attempt, end in enumerate(ends):
        for step in range(begin, end + 1, 10):
            seen.append(Report(step=step, clock_seconds=clock + step - begin, attempt=attempt, total_steps=total))
        clock += end - begin + 3600
        begin = max(0, end - 50)
    return seen


def history_of(seen: list[Report]) -> History:
    history = History()
    for one in seen:
        history.add(one)
    return history


def test_a_run_that_broke_off_thrice_will_again() -> None:
    left = remaining(history_of(attempts([500, 1000, 1500, 2000])), 4000)
    assert left.interrupted_seconds >= 2 * 3600
    assert left.remaining_seconds.mid == pytest.approx(2000 + left.interrupted_seconds, rel=0.01)


def test_another_run_in_the_same_file_is_no_interruption() -> None:
    seen = attempts([500], total=500)
    seen += [Report(step=n, clock_seconds=9000 + n, attempt=1, total_steps=500) for n in range(0, 201, 10)]
    history = history_of(seen)
    assert (history.restarts, history.interruptions) == (1, [])
    assert remaining(history, 500).remaining_seconds.mid == pytest.approx(300, rel=0.01)


def test_an_attempt_on_another_machine_has_its_own_pace() -> None:
    """One second per step before the restart, a quarter after it."""
    seen = attempts([2000])
    seen += [Report(step=n, clock_seconds=9000 + n / 4, attempt=1) for n in range(2000, 2101, 10)]
    left = remaining(history_of(seen), 4000)
    assert left.step_seconds == pytest.approx(0.25, rel=0.01)


def test_nobody_pays_while_nothing_runs() -> None:
    forecast = Forecast("own", "V100", step_seconds=Interval(0.9, 1.0, 1.1), dollars_per_hour=3600.0)
    progress = Tracker(total=4000, forecast=forecast).add_all(attempts([500, 1000, 1500, 2000])).standing()
    assert progress.dollars_so_far == pytest.approx(2150, rel=0.01)
    assert progress.dollars_in_all is not None
    assert progress.dollars_in_all.mid == pytest.approx(2150 + 2000 + 50 * 3, rel=0.05)
