"""Distributions of response lengths."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.errors import EpochcastError
from epochcast.predict.forecast.response_lengths import response_lengths


@given(st.integers(50, 2000), st.integers(1, 20))
def test_the_mean_is_the_one_that_was_said(mean: int, times: int) -> None:
    lengths = response_lengths(f"lognormal:mean={mean},max={mean * times + 1}")
    assert lengths.mean == pytest.approx(mean, rel=0.01)
    assert lengths.longest == mean * times + 1


def test_draws_have_the_mean_and_the_tail_of_the_distribution() -> None:
    lengths = response_lengths("lognormal:mean=900,max=8192,sigma=1.0")
    drawn = lengths.drawn(256, seed=1)
    assert drawn.mean() == pytest.approx(900, rel=0.03)
    assert drawn.max() > 5000
    assert np.array_equal(drawn, lengths.drawn(256, seed=1))


def test_a_number_is_one_length() -> None:
    assert set(response_lengths("1k").drawn(5).tolist()) == {1000}


def test_lengths_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "lengths.txt"
    file.write_text("100\n200\n300\n")
    assert response_lengths(f"file={file}").mean == 200
    assert response_lengths(f"file={file}").longest == 300


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("normal:mean=3,max=9", "no distribution of response lengths called 'normal'"),
        ("lognormal:mean=900", "does not say max"),
        ("lognormal:mean=900,max=100", "between 1 and the maximum"),
        ("lognormal:mean=9,max=100,sd=3", "no part of response lengths called 'sd'"),
        ("0", "at least|between 1"),
        ("long", "no number of tokens"),
        ("uniform:min=9,max=3", "min is above max"),
    ],
)
def test_bad_lengths_are_one_line(text: str, words: str) -> None:
    with pytest.raises(EpochcastError, match=words):
        response_lengths(text)
