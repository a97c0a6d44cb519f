from math import hypot

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.hardware.catalogue import find_device, find_link
from epochcast.hardware.cluster import Group
from epochcast.predict.comm.stragglers import (
    HOROVOD,
    PYTORCH,
    TENSORFLOW,
    Batch,
    Waiting,
    contention_fraction,
    slowest_of,
    waiting,
    waiting_seconds,
)

ROUND = Waiting(
    spread_fraction=0.1,
    step_seconds=1e-3,
    network_spread_fraction=0.2,
    ragged_sample_fraction=0.75,
    padded_sample_fraction=3.75,
    shared_fraction=0.01,
    bucket_seconds=1e-4,
    contention=10.0,
    source="by hand",
)
KNOWN = waiting()


def box(ranks: int, nodes: int = 1) -> Group:
    return Group(nodes, ranks // nodes, find_link("nvlink2"), find_link("ethernet_10g"))


# Expected maxima of normal draws: 0.564, 1.029, 1.424, 1.766 (Harter 1961); Blom's are within 5 %.
@pytest.mark.parametrize(("ranks", "spreads"), [(1, 0.0), (2, 0.564), (4, 1.029), (8, 1.424), (16, 1.766)])
def test_the_slowest_of_several_lies_as_far_out_as_tables_say(ranks: int, spreads: float) -> None:
    assert slowest_of(ranks) == pytest.approx(spreads, rel=0.05)


def test_a_step_of_one_second_by_hand() -> None:
    """Spread 0.1, 1 % shared and a millisecond; four passes between exchanges halve the spread.

    Samples that differ by 0.75 of their mean: 25 of them by 0.15, with the spread of steps 0.18; padded to the longest
    by 3.75/25 = 0.15, too. Boxes differ by 0.2.
    """
    rest = 0.01 + 1e-3
    assert waiting_seconds(1.0, box(8), ROUND) == pytest.approx(0.1 * slowest_of(8) + rest)
    assert waiting_seconds(1.0, box(8), ROUND, accumulate=4) == pytest.approx(0.05 * slowest_of(8) + rest)
    assert waiting_seconds(1.0, box(8, nodes=2), ROUND) == pytest.approx(0.2 * slowest_of(8) + rest)
    for batch in (Batch(25), Batch(25, is_padded=True), Batch(spread_fraction=0.15)):
        assert waiting_seconds(1.0, box(8), ROUND, batch=batch) == pytest.approx(
            hypot(0.1, 0.15) * slowest_of(8) + rest
        )


def test_one_rank_waits_for_nobody() -> None:
    assert waiting_seconds(1.0, box(1), KNOWN) == 0


@given(ranks=st.integers(1, 10_000))
def test_more_ranks_never_wait_less(ranks: int) -> None:
    assert waiting_seconds(1.0, box(ranks), KNOWN) <= waiting_seconds(1.0, box(ranks + 1), KNOWN)


def test_nvlink_hides_nothing_and_ethernet_nearly_all() -> None:
    device, nvlink, ethernet = find_device("V100"), find_link("nvlink2"), find_link("ethernet_10g")
    assert contention_fraction(Group(1, 8, nvlink, ethernet), device) > 0.7
    assert contention_fraction(Group(2, 8, nvlink, ethernet), device) < 0.02


def test_ranks_whose_samples_differ_in_length_differ_more_and_large_batches_less() -> None:
    for is_padded in (False, True):
        even, few, many = (waiting_seconds(1.0, box(8), KNOWN, batch=Batch(n, is_padded)) for n in (0, 8, 512))
        assert even < many < few


def test_every_runner_has_constants_and_several_boxes_wait_no_less_than_one() -> None:
    for runner in (PYTORCH, TENSORFLOW, HOROVOD):
        known = waiting(runner)
        assert waiting_seconds(1.0, box(8), known) <= waiting_seconds(1.0, box(8, nodes=2), known)
    assert waiting(HOROVOD).step_seconds > waiting(PYTORCH).step_seconds
