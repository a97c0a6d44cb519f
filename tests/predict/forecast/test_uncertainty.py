"""What makes an interval wide."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import epochcast as ec
from epochcast.predict.forecast.step import COMMUNICATION, FRAMEWORK, GPU, HOST, INPUT, NETWORK, SETUP
from epochcast.predict.forecast.uncertainty import (
    _NARROWED_BY,
    LEAST_SHARE,
    MEMORY_PARTS,
    uncertain_memory,
    uncertain_parts,
)
from epochcast.predict.memory.memory_spreads import PARTS as MEMORY_SPREAD_PARTS
from epochcast.surfaces.render.forecast_table import _UNCERTAIN, _UNCERTAIN_MEMORY

PARTS = (GPU, FRAMEWORK, NETWORK, SETUP, HOST, COMMUNICATION, INPUT)


@given(st.lists(st.floats(0, 10), min_size=len(PARTS), max_size=len(PARTS)))
def test_shares_sum_to_one_the_largest_first(variances: list[float]) -> None:
    parts = uncertain_parts(dict(zip(PARTS, variances, strict=True)))
    shares = [part.share for part in parts]
    assert shares == sorted(shares, reverse=True)
    assert not parts or sum(shares) == pytest.approx(1)
    assert all(share >= LEAST_SHARE for share in shares)


def test_a_sure_step_has_no_uncertain_part() -> None:
    assert uncertain_parts({GPU: 0.0}) == uncertain_parts({}) == ()


def test_every_part_says_what_narrows_it() -> None:
    narrowed = {part.part: part.narrow_by for part in uncertain_parts(dict.fromkeys(PARTS, 1.0))}
    assert narrowed[GPU] == narrowed[NETWORK] == narrowed[FRAMEWORK] == "--step-seconds"
    assert (narrowed[HOST], narrowed[COMMUNICATION]) == ("--host-class", "--link")


def test_a_large_step_is_as_unsure_as_its_kernels_and_a_small_one_as_its_host() -> None:
    large = ec.forecast("resnet50", device="A100", batch=256, precision="amp")
    small = ec.forecast("mnist_cnn", device="A100", batch=1)
    assert {part.part for part in large.uncertainty[:2]} == {GPU, NETWORK}
    assert small.uncertainty[0].part == HOST
    for answer in (large, small):
        assert sum(part.share for part in answer.uncertainty) == pytest.approx(1)


def test_a_loader_that_limits_is_the_uncertain_part() -> None:
    answer = ec.forecast("resnet50", device="H100", batch=64, precision="amp", loader_seconds=0.05, cpus=8, workers=4)
    assert answer.uncertainty[0].part == INPUT


def test_every_part_has_words() -> None:
    assert set(_NARROWED_BY) == set(_UNCERTAIN)


def test_the_peak_of_memory_says_what_makes_it_wide_and_which_option_narrows_it() -> None:
    parts = uncertain_memory({"activations, zoo": 1.0, "setup, one GPU": 1.0, "assumed": 2.0}, ("lengths", "precision"))
    assert [(part.part, part.share) for part in parts] == [("assumed", 0.5), ("activations", 0.25), ("setup", 0.25)]
    assert [part.narrow_by for part in parts] == ["--lengths --precision", "", ""]


def test_every_part_of_memory_has_words() -> None:
    names = {part.partition(",")[0] for part in MEMORY_SPREAD_PARTS}
    assert names == set(MEMORY_PARTS) == set(_UNCERTAIN_MEMORY)
