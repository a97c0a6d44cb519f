"""Typed speeds: what a person writes, in seconds per step, sample, token, epoch or job."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.errors import BadInput
from epochcast.observe.check.observed_rate import read_rate

SPEEDS = {
    "39s/it": ("step", 39.0),
    "39 seconds per iteration": ("step", 39.0),
    "1.2it/s": ("step", 1 / 1.2),
    "210ms/step": ("step", 0.21),
    "2.3 s a step": ("step", 2.3),
    "2.1k tokens/s": ("token", 1 / 2100),
    "2,100 tok/sec": ("token", 1 / 2100),
    "1.5M tokens/min": ("token", 60 / 1.5e6),
    "340 img/s": ("image", 1 / 340),
    "8 samples/s": ("sample", 1 / 8),
    "39 s/epoch": ("epoch", 39.0),
    "1h 20min/epoch": ("epoch", 4800.0),
    "1:23/epoch": ("epoch", 83.0),
    "5 epochs/h": ("epoch", 720.0),
    "88h/job": ("job", 88 * 3600.0),
}


@pytest.mark.parametrize("text", SPEEDS)
def test_a_speed_is_seconds_per_unit(text: str) -> None:
    unit, seconds = SPEEDS[text]
    observation = read_rate(text)
    assert observation.unit == unit
    assert observation.seconds.mid == pytest.approx(seconds)
    assert not observation.is_per_gpu


# by hand: 39 is anything from 38.5 to 39.5, 1.2 from 1.15 to 1.25
def test_a_number_is_known_to_half_of_its_last_digit() -> None:
    assert (read_rate("39s/it").seconds.low, read_rate("39s/it").seconds.high) == (38.5, 39.5)
    rate = read_rate("1.2it/s").seconds
    assert [rate.low, rate.high] == pytest.approx([1 / 1.25, 1 / 1.15])


def test_a_rate_may_be_that_of_one_gpu() -> None:
    assert read_rate("340 img/s/gpu").is_per_gpu


@given(st.floats(1e-3, 1e6))
def test_a_time_per_step_and_steps_per_second_agree(seconds: float) -> None:
    per_step, rate = read_rate(f"{seconds:.6f}s/it").seconds, read_rate(f"{1 / seconds:.12f}it/s").seconds
    assert per_step.mid == pytest.approx(rate.mid, rel=1e-2)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("fast", "has no number"),
        ("", "has no number"),
        ("39", "does not say of what"),
        ("39s", "does not say of what"),
        ("39 apples/s", "is no speed"),
        ("0it/s", "is no speed"),
        ("-3s/it", "is no speed"),
        ("1s/it/it/it", "is no speed"),
        ("9" * 400, "is no speed"),
    ],
)
def test_what_is_no_speed_is_refused_with_examples(text: str, reason: str) -> None:
    with pytest.raises(BadInput, match=reason) as refused:
        read_rate(text)
    assert "39s/it" in str(refused.value)
