"""The line after fifty steps of a training."""

from io import StringIO

import pytest

import epochcast as ec
from epochcast.observe.recording.recorded_rows import AttemptStart, RecordedRow

START = AttemptStart("mine", 1, 1_700_000_000.0, total_steps=1000)
FORECAST = ec.forecast("resnet50", device="V100", batch=64)


def rows(steps: range, seconds: float, data_seconds: float = 0.0) -> list[RecordedRow]:
    return [
        RecordedRow(n, "train", n + 1, seconds * (n + 1), steps=1, seconds=seconds, data_seconds=data_seconds)
        for n in steps
    ]


def test_nothing_is_written_before_fifty_steps_and_one_line_after() -> None:
    screen, step = StringIO(), FORECAST.step_seconds.mid
    line = ec.SpeedLine(FORECAST, stream=screen)
    assert line.send(START, rows(range(30), step)) == 30
    assert screen.getvalue() == ""
    line.send(START, rows(range(30, 60), step))
    line.send(START, rows(range(60, 90), step))
    assert screen.getvalue() == "mine: 1.00 times the forecast step, normal\n"


def test_a_slow_loader_is_named() -> None:
    screen, step = StringIO(), 3 * FORECAST.step_seconds.mid
    ec.SpeedLine(FORECAST, stream=screen).send(START, rows(range(60), step, 0.65 * step))
    assert "slower; likeliest cause: data loading (waiting for data takes 65% of the step)" in screen.getvalue()


def test_a_forecast_that_was_read_back_is_refused() -> None:
    with pytest.raises(ec.BadInput, match="was read back"):
        ec.SpeedLine(ec.Forecast.from_dict(FORECAST.as_dict()))
