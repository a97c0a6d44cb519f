from math import hypot

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.comm.waiting import Waiting, contention_fraction, slowest_of, waiting_seconds
from epochcast.hardware.catalogue import find_device, find_link
from epochcast.hardware.cluster import Group

ROUND = Waiting(0.1, 0.75, 0.01, 1e-3, 1e-4, 10.0, "by hand")


# Expected maxima of normal draws: 0.564, 1.029, 1.424, 1.766 (Harter 1961); Blom's are within 5 %.
@pytest.mark.parametrize(("ranks", "spreads"), [(1, 0.0), (2, 0.564), (4, 1.029), (8, 1.424), (16, 1.766)])
def test_the_slowest_of_several_lies_as_far_out_as_tables_say(ranks: int, spreads: float) -> None:
    assert slowest_of(ranks) == pytest.approx(spreads, rel=0.05)


def test_a_step_of_one_second_by_hand() -> None:
    """Spread 0.1, 1 % shared and a millisecond; four passes between exchanges halve the spread.

    Samples that differ by 0.75 of their mean: 25 of them by 0.15, with the spread of steps 0.18.
    """
    assert waiting_seconds(1.0, 8, known=ROUND) == pytest.approx(0.1 * slowest_of(8) + 0.01 + 1e-3)
    assert waiting_seconds(1.0, 8, accumulate=4, known=ROUND) == pytest.approx(0.05 * slowest_of(8) + 0.01 + 1e-3)
    ragged = waiting_seconds(1.0, 8, ragged_samples=25, known=ROUND)
    assert ragged == pytest.approx(hypot(0.1, 0.15) * slowest_of(8) + 0.01 + 1e-3)


def test_one_rank_waits_for_nobody() -> None:
    assert waiting_seconds(1.0, 1) == 0


@given(ranks=st.integers(1, 10_000))
def test_more_ranks_never_wait_less(ranks: int) -> None:
    assert waiting_seconds(1.0, ranks) <= waiting_seconds(1.0, ranks + 1)


def test_nvlink_hides_nothing_and_ethernet_nearly_all() -> None:
    device, nvlink, ethernet = find_device("V100"), find_link("nvlink2"), find_link("ethernet_10g")
    assert contention_fraction(Group(1, 8, nvlink, ethernet), device) > 0.7
    assert contention_fraction(Group(2, 8, nvlink, ethernet), device) < 0.02


def test_ranks_whose_samples_differ_in_length_differ_more_and_large_batches_less() -> None:
    even, few, many = (waiting_seconds(1.0, 8, ragged_samples=n) for n in (0, 8, 512))
    assert even < many < few
