"""Interruptions: Daly's formula against chance, and the laws it keeps."""

from math import inf, sqrt
from random import Random
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.decide.plan.spot import Spot, checkpoint_interval_seconds, expected_seconds, interrupted
from epochcast.errors import BadInput
from epochcast.interval import Interval

HOUR = 3600.0


def simulated(work: float, interval: float, checkpoint: float, restart: float, mean: float, chance: Random) -> float:
    """One life of a job, interruption by interruption."""
    now, saved = 0.0, 0.0
    until = chance.expovariate(1 / mean)
    while saved < work:
        needed = min(interval, work - saved) + checkpoint
        if now + needed <= until:
            now, saved = now + needed, saved + min(interval, work - saved)
            continue
        now = until
        while True:  # starting again may be interrupted, too
            until = now + chance.expovariate(1 / mean)
            if now + restart <= until:
                now += restart
                break
            now = until
    return now


@pytest.mark.parametrize(
    ("work", "checkpoint", "restart", "mean"),
    [(24 * HOUR, 60.0, 300.0, 4 * HOUR), (10 * HOUR, 20.0, 600.0, 1 * HOUR), (48 * HOUR, 300.0, 120.0, 12 * HOUR)],
)
def test_the_expected_time_is_that_of_a_simulation(work: float, checkpoint: float, restart: float, mean: float) -> None:
    interval = checkpoint_interval_seconds(checkpoint, mean)
    steps = round(work / interval)
    work = steps * interval  # whole segments, as the formula has them
    chance = Random(7)
    lives = [simulated(work, interval, checkpoint, restart, mean, chance) for _ in range(1500)]
    expected = expected_seconds(work, interval, checkpoint, restart, mean)
    assert fmean(lives) == pytest.approx(expected, abs=3 * stdev(lives) / sqrt(len(lives)))
    # 90 % of lives are inside, as far as chance alone goes: a work that is known exactly
    found = interrupted(Interval(work, work, work), Spot(HOUR / mean, checkpoint, restart), checkpoint, 1)
    assert found is not None
    inside = fmean(found.total_seconds.low <= life <= found.total_seconds.high for life in lives)
    assert inside == pytest.approx(0.9, abs=0.04)
    assert found.interruptions == pytest.approx(expected / mean)


@pytest.mark.parametrize(("checkpoint", "mean"), [(30.0, 2 * HOUR), (120.0, 6 * HOUR), (5.0, HOUR)])
def test_no_other_interval_is_faster(checkpoint: float, mean: float) -> None:
    best = checkpoint_interval_seconds(checkpoint, mean)

    def took(interval: float) -> float:
        return expected_seconds(100 * HOUR, interval, checkpoint, 300, mean)

    assert all(took(best) <= took(best * factor) * 1.0005 for factor in (0.5, 0.8, 0.9, 1.1, 1.25, 2))


# by hand: √(2 · 60 s · 24 h) is 3220 s; the higher order adds a percent and takes the checkpoint away
def test_youngs_interval_by_hand() -> None:
    assert checkpoint_interval_seconds(60, 24 * HOUR) == pytest.approx(sqrt(2 * 60 * 24 * HOUR), rel=0.02)


def test_without_interruptions_nothing_is_added() -> None:
    found = interrupted(Interval(90, 100, 120), Spot(0.0), 10.0, 4)
    assert found is not None
    assert (found.total_seconds, found.interruptions) == (Interval(90, 100, 120), 0)
    assert checkpoint_interval_seconds(10, inf) == inf


def test_a_job_that_never_gets_on_is_none() -> None:
    assert interrupted(Interval(HOUR, HOUR, HOUR), Spot(60, 600, 600), 600, 8) is None


@given(rate=st.floats(0.001, 2), more=st.floats(0, 2), machines=st.integers(1, 16))
def test_more_interruptions_never_take_less_time(rate: float, more: float, machines: int) -> None:
    work = Interval(5 * HOUR, 6 * HOUR, 8 * HOUR)
    few, many = (interrupted(work, Spot(each, 30, 300), 30, machines) for each in (rate, rate + more))
    if many is not None:
        assert few is not None
        assert few.total_seconds.mid <= many.total_seconds.mid * (1 + 1e-9)
        assert few.total_seconds.mid >= work.mid


@pytest.mark.parametrize("wrong", [{"interruptions_per_hour": -1}, {"checkpoint_seconds": -1}, {"restart_seconds": -1}])
def test_what_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(BadInput, match="must be"):
        Spot(**{"interruptions_per_hour": 0.1, **wrong})
