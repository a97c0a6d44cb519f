import numpy as np
import pytest

from epochcast.interval import Interval
from epochcast.observe.runs.drift import DriftWatch, steadiness
from epochcast.observe.runs.report import Report
from epochcast.observe.runs.tracker import Tracker
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.step_parts import StepParts


def watched(paces: list[float]) -> DriftWatch:
    watch, seconds = DriftWatch(), 0.123
    for step, pace in enumerate(paces, 1):
        seconds += 10 * pace
        watch.add(10.0 * step, seconds, 10.0, 10 * pace)
    return watch


def noisy(mean: float, count: int, seed: int) -> list[float]:
    found: list[float] = (mean * np.exp(np.random.default_rng(seed).normal(0, 0.01, count))).tolist()
    return found


def test_a_slowdown_raises_an_alarm_with_time_and_size() -> None:
    drift = watched(noisy(0.5, 200, 1) + noisy(0.65, 60, 2)).latest
    assert drift is not None
    assert drift.ratio == pytest.approx(1.3, rel=0.03)
    assert 1900 <= drift.since_step <= 2100


@pytest.mark.parametrize("seed", range(5))
def test_noise_raises_none(seed: int) -> None:
    assert watched(noisy(0.5, 3000, seed)).latest is None


def test_pauses_raise_none() -> None:
    paces = noisy(0.5, 600, 3)
    paces[50::50] = [5.0] * len(paces[50::50])
    assert watched(paces).latest is None


def test_a_change_below_two_per_cent_raises_none() -> None:
    assert watched([0.5003] * 200 + [0.5053] * 300).latest is None


def test_change_points_after_the_fact() -> None:
    pytest.importorskip("ruptures", reason="the extra `track` is not installed")
    paces = noisy(0.5, 150, 1) + noisy(0.4, 100, 2) + noisy(0.6, 80, 3)
    steps = [10.0 * n for n in range(1, 331)]
    found = steadiness(steps, steps, paces)
    assert [change.since_step for change in found.changes] == pytest.approx([1500, 2500], abs=30)
    assert [change.ratio for change in found.changes] == pytest.approx([0.8, 1.5], rel=0.02)


def test_variation_and_dickey_fuller_of_white_noise() -> None:
    pytest.importorskip("ruptures", reason="the extra `track` is not installed")
    steps = [float(n) for n in range(500)]
    found = steadiness(steps, steps, noisy(0.5, 500, 7))
    assert found.variation == pytest.approx(0.01, rel=0.15)
    assert found.dickey_fuller_p is not None and found.dickey_fuller_p < 0.01
    assert found.changes == ()


def test_one_slow_rank_is_named() -> None:
    tracker = Tracker(total=1000)
    for step in range(0, 300, 10):
        for rank in range(4):
            seconds = 0.9 if rank == 2 else 0.5
            tracker.add(Report(step=step, clock_seconds=step / 2 + 0.1, rank=rank, step_seconds=seconds))
    assert tracker.standing().reasons == ("rank 2 is slow: 1.80 times the median",)
    assert tracker.history.reports == 30


def test_a_rank_that_slows_down_is_told_apart() -> None:
    """Rank 1 takes 0.7 instead of half a second from step 2,000 on; the others stay."""
    tracker = Tracker(total=10_000)
    for step in range(0, 4001, 10):
        for rank in range(3):
            seconds = 0.7 if rank == 1 and step > 2000 else 0.5
            tracker.add(Report(step=step, clock_seconds=step / 2 + 0.1, rank=rank, step_seconds=seconds + 0.0001))
    [drift] = tracker.standing().rank_drifts
    assert drift.rank == 1
    assert drift.ratio == pytest.approx(1.4, rel=0.01)
    assert drift.since_step == pytest.approx(2000, abs=20)


def slowed(data_seconds_after: float) -> tuple[str, ...]:
    """Half a second per step, 0.05 of it waiting; from step 2,000 on 0.8 seconds."""
    tracker, clock = Tracker(total=10_000), 0.1
    for step in range(0, 4001, 10):
        is_slow = step > 2000
        clock += 10 * (0.8 if is_slow else 0.5)
        data = data_seconds_after if is_slow else 0.05
        seen = Report(step=step, clock_seconds=clock, step_seconds=0.8 if is_slow else 0.5, data_seconds=data)
        tracker.add(seen)
    return tracker.standing().reasons


def test_a_slowdown_with_constant_waiting_for_data_is_throttling() -> None:
    assert [reason.split(":")[0] for reason in slowed(0.05)] == ["throttled"]


def test_a_slowdown_in_which_waiting_grew_is_put_down_to_data() -> None:
    assert [reason.split(":")[0] for reason in slowed(0.35)] == [
        "input-bound",
        "100% of the slowdown is time spent waiting for data",
    ]


@pytest.mark.parametrize(
    ("data_seconds", "comm", "said"),
    [(0.5, 0.0, "time spent waiting for data"), (0.0, 0.0, "compute,"), (0.0, 0.02, "compute or communication")],
)
def test_what_exceeds_the_forecast_is_put_down_to_what_the_log_tells(
    data_seconds: float, comm: float, said: str
) -> None:
    parts = StepParts(0.2, 0.25, 0.05 - comm, comm, 0.0, 0.0)
    forecast = Forecast("own", "V100", step_seconds=Interval(0.45, 0.5, 0.55), step_parts=parts)
    tracker = Tracker(total=10_000, forecast=forecast)
    for step in range(0, 2001, 10):
        tracker.add(Report(step=step, clock_seconds=step + 0.1, step_seconds=1.0, data_seconds=data_seconds))
    assert tracker.standing().reasons[-1].startswith("slower than forecast: ")
    assert f"of the excess is {said}" in tracker.standing().reasons[-1]
    assert tracker.standing().against_forecast == pytest.approx(2, rel=0.05)
    assert ("does not separate" in tracker.standing().reasons[-1]) is (comm > 0)


def test_noise_that_lasts_for_minutes_is_no_change_after_the_fact() -> None:
    """A pace that wanders: each span is like its neighbours, no level holds."""
    rng = np.random.default_rng(0)
    wander = np.zeros(600)
    for place in range(1, len(wander)):
        wander[place] = 0.8 * wander[place - 1] + 0.05 * rng.standard_normal()
    places = list(range(len(wander)))
    assert len(steadiness(places, places, np.exp(wander).tolist()).changes) <= 8
    jump = np.exp(wander + np.where(np.arange(len(wander)) < 400, 0.0, 0.5))
    largest = max(steadiness(places, places, jump.tolist()).changes, key=lambda change: change.ratio)
    assert largest.since_step == pytest.approx(400, abs=15)
    assert largest.ratio == pytest.approx(np.exp(0.5), rel=0.15)
