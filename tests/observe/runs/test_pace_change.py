import numpy as np
import pytest

from epochcast.observe.runs.pace_change import LEAST_SPANS, lasting_change
from epochcast.observe.runs.remaining_time import remaining
from epochcast.observe.runs.report import Report
from epochcast.observe.runs.report_spans import Spans
from epochcast.observe.runs.run_history import History


def spans_of(paces: np.ndarray) -> Spans:
    steps = np.full(len(paces), 10.0)
    return Spans(np.cumsum(steps), steps, paces * steps)


def noisy(count: int, pace: float, seed: int = 0, scatter: float = 0.05) -> np.ndarray:
    return np.asarray(pace * np.exp(np.random.default_rng(seed).normal(0, scatter, count)))


@pytest.mark.parametrize("factor", [0.5, 1.5, 3.0])
def test_a_pace_that_stays_another_one_is_found_where_it_began(factor: float) -> None:
    spans = spans_of(np.concatenate([noisy(60, 1.0), noisy(20, factor, seed=1)]))
    assert lasting_change(spans) == pytest.approx(60, abs=2)


def test_of_two_changes_the_latest_counts() -> None:
    spans = spans_of(np.concatenate([noisy(60, 1.0), noisy(40, 2.0, seed=1), noisy(30, 4.0, seed=2)]))
    assert lasting_change(spans) == pytest.approx(100, abs=2)


def test_a_few_slow_spans_are_no_lasting_change() -> None:
    assert lasting_change(spans_of(np.concatenate([noisy(60, 1.0), noisy(LEAST_SPANS - 4, 3.0)]))) == 0


@pytest.mark.parametrize("seed", range(5))
def test_noise_alone_is_no_change(seed: int) -> None:
    assert lasting_change(spans_of(noisy(500, 1.0, seed, scatter=0.3))) == 0


def test_a_pace_that_comes_and_goes_has_no_end_of_memory() -> None:
    fast, slow = noisy(25, 1.0), noisy(25, 2.0, seed=1)
    assert lasting_change(spans_of(np.concatenate([fast, slow, fast, slow]))) == 0


def test_pauses_here_and_there_are_no_change() -> None:
    paces = noisy(200, 1.0)
    paces[::9] *= 5
    assert lasting_change(spans_of(paces)) == 0


def test_after_a_data_stall_began_the_rest_is_told_at_the_new_pace() -> None:
    """1 s a step for 400 steps and 3 s from there on, asked 100 steps later; the mean so far is 1.4 s."""
    history = History()
    for step in range(0, 501, 5):
        history.add(Report(step=step, clock_seconds=0.5 + step + 2 * max(0, step - 400)))
    left = remaining(history, 1000)
    assert left.remaining_seconds.mid == pytest.approx(1500, rel=0.01)
    assert left.pauses_seen == 0


def test_a_level_that_has_hardly_lasted_says_nothing_of_a_long_rest() -> None:
    spans = spans_of(np.concatenate([noisy(60, 1.0), noisy(20, 2.0)]))
    steps = float(spans.steps[-20:].sum())
    assert lasting_change(spans, left=10 * steps) == pytest.approx(60, abs=2)
    assert lasting_change(spans, left=100 * steps) == 0
