from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.measure.bench.timing import LEAST_SAMPLES, Sample, median_error, summary, time_executions

times = st.lists(st.floats(1e-6, 10.0), min_size=1, max_size=40)


def told(values: Iterator[float]) -> Sample:
    def sample(execute: Callable[[], object], count: int) -> float:
        execute()
        return next(values)

    return sample


def endless(*values: float) -> Iterator[float]:
    while True:
        yield from values


# by hand: 1, 2, 3, 4, 5: median 3, quartiles 2 and 4, tenth percentile 1.4
def test_figures_by_hand() -> None:
    timing = summary([5.0, 1.0, 3.0, 2.0, 4.0], count=2)
    assert (timing.seconds, timing.repeats) == (3.0, 10)
    assert timing.low_seconds == pytest.approx(1.4)
    assert timing.spread == pytest.approx(2 / 3)


# by hand: deviations of 1, 2, 3 from 2 are 1, 0, 1; 1.2533 · 1.4826 · 1 / √3 / 2
def test_the_error_of_a_median_by_hand() -> None:
    assert median_error([1.0, 2.0, 3.0]) == pytest.approx(1.2533 * 1.4826 / 3**0.5 / 2)


def test_a_steady_clock_is_believed_at_once() -> None:
    assert time_executions(int, 10.0, told(endless(0.01))).repeats == LEAST_SAMPLES


def test_outliers_neither_move_the_figure_nor_keep_it_from_settling() -> None:
    timing = time_executions(int, 10.0, told(endless(0.01, 0.01, 0.01, 0.01, 3.0)))
    assert (timing.seconds, timing.repeats) == (0.01, LEAST_SAMPLES)


def test_an_unsteady_clock_is_asked_for_longer() -> None:
    assert time_executions(int, 10.0, told(endless(0.01, 0.02, 0.04)), most_samples=50).repeats == 50


def test_short_executions_are_timed_together() -> None:
    executed = []
    timing = time_executions(lambda: executed.append(0), 1.0)
    assert timing.repeats > 10 * LEAST_SAMPLES
    assert len(executed) >= timing.repeats


def test_a_long_execution_ends_at_the_limit() -> None:
    assert time_executions(int, 0.5, told(endless(0.4, 0.9, 0.6))).repeats == 1


@given(samples=times)
def test_the_low_figure_is_never_above_the_median(samples: list[float]) -> None:
    timing = summary(samples)
    assert min(samples) <= timing.low_seconds <= timing.seconds <= max(samples)


@given(samples=times, factor=st.floats(0.1, 10))
def test_spread_and_error_have_no_unit(samples: list[float], factor: float) -> None:
    scaled = [factor * s for s in samples]
    assert summary(scaled).spread == pytest.approx(summary(samples).spread, abs=1e-9)
    assert median_error(scaled) == pytest.approx(median_error(samples), abs=1e-9)
