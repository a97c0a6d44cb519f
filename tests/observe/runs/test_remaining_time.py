from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.observe.runs.remaining_time import remaining
from epochcast.observe.runs.report import Report
from epochcast.observe.runs.run_history import MOST_SPANS, History
from epochcast.observe.runs.run_prior import Prior


def history_of(observations: Iterable[Report]) -> History:
    history = History()
    for seen in observations:
        history.add(seen)
    return history


def steady(steps: int, step_seconds: float = 0.5, every: int = 10) -> Iterator[Report]:
    return (Report(step=n, clock_seconds=n * step_seconds) for n in range(0, steps + 1, every))


def validating(steps: int, period: int = 1000, pause_seconds: float = 60.0) -> Iterator[Report]:
    """Half a second per step, a report every ten steps, and a pause after every `period` steps."""
    for n in range(0, steps + 1, 10):
        pauses = max(0, (n - 1) // period) if n else 0
        yield Report(step=n, clock_seconds=0.5 * n + pause_seconds * pauses + 0.25)


def test_a_steady_run_goes_on_as_it_was() -> None:
    left = remaining(history_of(steady(200)), 1000).remaining_seconds
    assert left.mid == pytest.approx(400, rel=0.005)
    assert left.low < 400 < left.high


def test_pauses_come_back_until_the_end_and_not_after_it() -> None:
    """10,000 steps with a minute after every 1,000: at step 3,500 there are six more, not six and a half."""
    left = remaining(history_of(validating(3500)), 10_000)
    assert left.pauses_seen == 3
    assert left.remaining_seconds.mid == pytest.approx(6500 * 0.5 + 6 * 60, rel=0.01)


def test_just_before_a_pause_the_plain_mean_is_further_off() -> None:
    *_, last = validating(3990)
    assert last.clock_seconds is not None
    mean = last.clock_seconds / last.step * (10_000 - last.step)
    truth = 6010 * 0.5 + 6 * 60
    ours = remaining(history_of(validating(3990)), 10_000).remaining_seconds.mid
    assert abs(ours - truth) < abs(mean - truth) / 2


def test_compilation_is_not_counted_again() -> None:
    """The first ten steps take two minutes more than the others."""
    seen = [Report(step=0, clock_seconds=0.1)]
    seen += [Report(step=n, clock_seconds=120.1 + 0.5 * n) for n in range(10, 210, 10)]
    left = remaining(history_of(seen), 1000)
    assert left.remaining_seconds.mid == pytest.approx(800 * 0.5 + 10 * 0.5, rel=0.02)
    assert left.start_seconds == pytest.approx(120, rel=0.05)


def test_a_pace_that_changed_is_followed() -> None:
    """1 s per step for 300 steps, then 2 s for 300: the rest takes 2 s."""
    seen = [Report(step=n, clock_seconds=0.5 + n + max(0, n - 300)) for n in range(0, 601, 5)]
    left = remaining(history_of(seen), 1000).remaining_seconds
    assert left.mid / 400 > 1.6  # the mean so far is 1.5
    assert left.holds(800)


def test_one_absence_is_not_expected_again() -> None:
    """A machine was away for ten hours between minutes of validation."""
    seen = [
        Report(step=one.step, clock_seconds=(one.clock_seconds or 0) + 36_000 * (one.step > 2500))
        for one in validating(5000)
    ]
    left = remaining(history_of(seen), 10_000).remaining_seconds.mid
    assert left < 5000 * 0.5 + 5 * 60 + 0.2 * 36_000


def test_replayed_steps_are_pace_and_down_time_is_not() -> None:
    first = [Report(step=n, clock_seconds=0.5 * n + 0.1) for n in range(0, 501, 10)]
    again = [Report(step=n, clock_seconds=9000.1 + 0.5 * (n - 400), attempt=1) for n in range(400, 601, 10)]
    history = history_of([*first, *again])
    assert (history.restarts, history.replayed_steps) == (1, 100)
    assert history.down_seconds == pytest.approx(9000 - 250)
    assert remaining(history, 1000).remaining_seconds.mid == pytest.approx(200, rel=0.01)


def test_a_clock_set_back_begins_anew() -> None:
    seen = [Report(step=n, clock_seconds=0.5 * n + 0.1) for n in range(0, 301, 10)]
    seen += [Report(step=n, clock_seconds=0.5 * (n - 300)) for n in range(310, 601, 10)]
    history = history_of(seen)
    assert history.clock_jumps == 1
    assert remaining(history, 1000).remaining_seconds.mid == pytest.approx(200, rel=0.01)


def test_a_clock_that_wavers_is_not_counted_twice() -> None:
    """Now and then it reads two seconds less than before."""
    seen = [Report(step=n, clock_seconds=0.5 * n + 0.1 - 7 * (n % 50 == 40)) for n in range(0, 601, 10)]
    history = history_of(seen)
    assert history.elapsed_seconds == pytest.approx(300.1)
    assert remaining(history, 1000).remaining_seconds.mid == pytest.approx(200, rel=0.02)


def test_without_a_clock_printed_step_times_count() -> None:
    seen = [Report(step=n, step_seconds=0.5) for n in range(0, 201, 10)]
    assert remaining(history_of(seen), 1000).remaining_seconds.mid == pytest.approx(400, rel=0.005)


def test_reports_without_time_do_not_make_steps_free() -> None:
    seen = [Report(step=n, clock_seconds=0.5 * n + 0.1 if n % 50 == 0 else None) for n in range(0, 401, 10)]
    assert remaining(history_of(seen), 1000).remaining_seconds.mid == pytest.approx(300, rel=0.01)


def test_the_forecast_answers_before_the_first_step() -> None:
    history = history_of([Report(step=0, clock_seconds=0.0)])
    left = remaining(history, 1000, Prior(Interval(0.4, 0.5, 0.7)))
    assert left.remaining_seconds.mid == pytest.approx(500, rel=0.03)
    assert left.prior_weight == 1.0
    with pytest.raises(BadInput, match="two reports"):
        remaining(history, 1000)


def test_the_log_outvotes_the_forecast() -> None:
    """The forecast says 0.5 s; steps take 1 s."""
    prior = Prior(Interval(0.4, 0.5, 0.65))
    first = remaining(history_of(steady(20, 1.0)), 1000, prior)
    later = remaining(history_of(steady(500, 1.0)), 1000, prior)
    assert 0.5 < first.step_seconds < 1.0
    assert later.step_seconds == pytest.approx(1.0, rel=0.02)
    assert later.prior_weight < 0.02 < first.prior_weight


def test_memory_is_bounded_and_pauses_survive() -> None:
    """40,000 reports, a minute after every 4,000 steps: ten times as many as are kept."""
    steps = 40_000
    seen = (Report(step=n, clock_seconds=0.5 * n + 60 * ((n - 1) // 4000) + 0.25) for n in range(1, steps + 1))
    history = history_of(seen)
    assert len(history.spans()) < MOST_SPANS
    left = remaining(history, 2 * steps).remaining_seconds.mid
    assert left == pytest.approx(0.5 * steps + 60 * 10, rel=0.01)


def test_an_epoch_that_has_not_ended_yet_will_cost_something() -> None:
    def told(steps: int) -> float:
        seen = [Report(step=n, clock_seconds=0.5 * n + 0.1, steps_per_epoch=500) for n in range(0, steps + 1, 10)]
        return remaining(history_of(seen), 5000).remaining_seconds.mid / (5000 - steps)

    assert told(400) == pytest.approx(0.5 * 1.02, rel=0.001)
    assert told(700) == pytest.approx(0.5, rel=0.001)


def test_before_a_pause_was_seen_one_is_thought_possible() -> None:
    """By hand: 0.25 % · (1/√f − 1) is 0.25 % at a quarter of the run; a pause that was seen speaks for itself."""
    assert remaining(history_of(steady(250)), 1000).remaining_seconds.mid == pytest.approx(375 * 1.0025)
    assert remaining(history_of(validating(2500)), 10_000).pauses_seen == 2


def test_a_finished_run_has_nothing_left() -> None:
    left = remaining(history_of(steady(1000)), 1000).remaining_seconds
    assert (left.low, left.mid, left.high) == (0, 0, 0)


@given(pace=st.floats(0.01, 100), reports=st.integers(3, 60), scale=st.floats(0.1, 100))
def test_a_slower_clock_only_scales_the_answer(pace: float, reports: int, scale: float) -> None:
    """Units cancel: every time twice as long, and so is what is left."""

    def told(factor: float) -> float:
        seen = [Report(step=10 * n, clock_seconds=factor * (10 * n * pace + 0.0137)) for n in range(reports)]
        return remaining(history_of(seen), 10_000).remaining_seconds.mid

    assert told(scale) == pytest.approx(scale * told(1.0), rel=0.02)


def recorded(steps: int, period: int, seconds: float, what: str) -> Iterator[Report]:
    """Half a second a step, reported every ten; after every `period` steps a recorded pause, shorter than a report."""
    clock = 0.25
    for step in range(0, steps + 1, 10):
        clock += 5.0 * (step > 0)
        yield Report(step=step, clock_seconds=clock)
        if step and step % period == 0:
            clock += seconds
            yield Report(step=step, clock_seconds=clock, phase="validation", pause_seconds=seconds, what=what)


def test_recorded_pauses_are_counted_as_they_were_up_to_the_last_step() -> None:
    """Two seconds every 100 of 1,000 steps, seen to step 250: eight are to come, one of them after the last step."""
    left = remaining(history_of(recorded(250, 100, 2.0, "validation")), 1000)
    assert left.step_seconds == pytest.approx(0.5, rel=1e-6)
    assert left.pause_seconds == pytest.approx(8 * 2.0, rel=1e-6)


def test_the_first_recorded_pause_tells_of_all_that_follow() -> None:
    left = remaining(history_of(recorded(150, 100, 2.0, "validation")), 1000)
    assert left.pause_seconds == pytest.approx(9 * 2.0, rel=1e-6)


def test_two_slow_spans_side_by_side_are_not_expected_at_every_step() -> None:
    def clock(step: int) -> float:
        return 0.25 + 0.5 * step + 20 * (step >= 495) + 20 * (step >= 500)

    seen = [Report(step=step, clock_seconds=clock(step)) for step in range(0, 501, 5)]
    assert remaining(history_of(seen), 1000).pause_seconds < 60


def test_an_interval_is_wider_where_the_run_was_watched_for_seconds_only() -> None:
    short, long = (
        remaining(history_of(steady(200, step_seconds=seconds)), 1000).remaining_seconds for seconds in (0.05, 50.0)
    )
    assert short.high / short.mid > 1.5 * long.high / long.mid


def runs_in_one_file(first_total: float, second_total: float) -> list[Report]:
    """A run of 0.01 s a step that ends, and another one of 2 s a step that begins at its first step."""
    first = [
        Report(step=n, clock_seconds=0.01 * n, total_steps=first_total) for n in range(0, int(first_total) + 1, 50)
    ]
    began = 0.01 * first_total + 20
    second = [
        Report(step=n, clock_seconds=began + 2.0 * n + 0.25, total_steps=second_total, attempt=1) for n in range(1, 4)
    ]
    return [*first, *second]


def test_a_bar_that_prepared_the_data_says_nothing_of_the_training_after_it() -> None:
    left = remaining(history_of(runs_in_one_file(400, 500)), 500)
    assert left.remaining_seconds.mid == pytest.approx(497 * 2.0, rel=0.05)
    with pytest.raises(BadInput, match="no step has been timed"):
        remaining(history_of(runs_in_one_file(400, 500)[:-2]), 500)


def test_pauses_of_a_run_that_ended_are_not_expected_of_the_next_in_the_same_file() -> None:
    first = [
        Report(step=one.step, clock_seconds=one.clock_seconds, total_steps=3000)
        for one in validating(3000, period=250, pause_seconds=500.0)
    ]
    assert first[-1].clock_seconds is not None
    began = first[-1].clock_seconds + 60
    second = [
        Report(step=one.step, clock_seconds=began + (one.clock_seconds or 0.0), total_steps=3000, attempt=1)
        for one in steady(1000)
    ]
    assert remaining(history_of([*first, *second]), 3000).remaining_seconds.mid == pytest.approx(1000, rel=0.02)


def test_two_late_pauses_close_together_are_no_habit() -> None:
    """Two in the last 200 of 900 steps are two in 900, not one in every 160."""
    seen, clock = [], 0.25
    for n in range(0, 901, 10):
        clock += 10.0 + (600.0 if n in (640, 800) else 0.0)
        seen.append(Report(step=n, clock_seconds=clock))
    left = remaining(history_of(seen), 9000)
    assert left.pause_seconds == pytest.approx(2 / 900 * 8100 * 600, rel=0.05)


def test_attempts_that_differ_make_the_interval_wide() -> None:
    def width(second_pace: float) -> float:
        first = [Report(step=n, clock_seconds=1.0 * n + 0.25, total_steps=2000) for n in range(0, 501, 10)]
        second = [
            Report(step=n, clock_seconds=600.25 + second_pace * (n - 400), total_steps=2000, attempt=1)
            for n in range(400, 801, 10)
        ]
        left = remaining(history_of([*first, *second]), 2000)
        return left.remaining_seconds.mid / left.remaining_seconds.low

    assert width(2.0) > 1.5 * width(1.0)
