"""Dates and times in the forms that logs use."""

import pytest

from epochcast.observe.logs.time_stamps import Stamps, clock_text_seconds


@pytest.mark.parametrize(
    "pair",
    [
        ("2031-05-03 20:00:00,040 - x", "2031-05-03 20:00:30,040 - x"),
        ("[2031-12-17:23:59:50:INFO] x", "[2031-12-18:00:00:20:INFO] x"),
        ("2031/06/08 17:00:00 - x", "2031/06/08 17:00:30 - x"),
        ("31-05-05 23:59:45.000 - x", "31-05-06 00:00:15.000 - x"),
        ("I1231 23:59:50.5 77 solver.cpp:1] x", "I0101 00:00:20.5 77 solver.cpp:1] x"),
        ("[12/31 23:59:50] x", "[01/01 00:00:20] x"),
        ("Sun Dec 13 22:37:00 2020 x", "Sun Dec 13 22:37:30 2020 x"),
        ('{"time_ms": 1714680541482}', '{"time_ms": 1714680571482}'),
        ('{"timestamp": "1587450966.25"}', '{"timestamp": "1587450996.25"}'),
        ("23:59:50 step 1", "00:00:20 step 2"),
        ("2031-05-03T20:00:00+02:00 x", "2031-05-03T18:00:30Z x"),
    ],
)
def test_two_stamps_are_half_a_minute_apart(pair: tuple[str, str]) -> None:
    stamps = Stamps()
    first, second = (stamps.seconds(line) for line in pair)
    assert first is not None and second is not None
    assert second - first == pytest.approx(30.0)


@pytest.mark.parametrize("line", ["Iter 100, loss = 1.25", "2031-13-45 20:00:00 x", "12/11 of 30", "version 20.10.05"])
def test_what_is_no_time_gives_none(line: str) -> None:
    assert Stamps().seconds(line) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1:02:03", 3723),
        ("02:03", 123),
        ("14s", 14),
        ("1 day, 2:03:04", 93784),
        ("2d 14h 58m", 226680),
        ("16.8s", 16.8),
    ],
)
def test_durations_by_hand(text: str, seconds: float) -> None:
    assert clock_text_seconds(text) == pytest.approx(seconds)
