import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.graph.order import LOOSE, NotRepeated, Period, ordered

ONE = Period(2, 1, 3)
"""Block 2 and three copies of it."""
UP = [LOOSE, 0, 1, 1, 2, 2, 3, 3, 4, LOOSE]
DOWN = UP[::-1]


def moved(blocks: list[int], period: Period) -> list[int]:
    order = ordered(blocks, period)
    found = zip(order.positions, order.shifts, strict=True)
    return [blocks[place] + int(shift) for place, shift in found]


def test_a_sequence_upwards_by_hand() -> None:
    assert moved(UP, ONE) == [LOOSE, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, LOOSE]


def test_a_sequence_downwards_is_the_same_backwards() -> None:
    assert moved(DOWN, ONE) == moved(UP, ONE)[::-1]


def test_a_step_goes_up_and_down() -> None:
    assert moved([*UP, *DOWN], ONE) == [*moved(UP, ONE), *moved(DOWN, ONE)]


def test_two_blocks_repeat_together() -> None:
    two = Period(1, 2, 2)
    assert moved([0, 1, 2, 3], two) == list(range(8))
    assert moved([3, 2, 1, 0], two) == list(range(7, -1, -1))


@pytest.mark.parametrize("blocks", [[2], [0, 2, 3], [1, 2], [2, 3], [1, 2, 1], [0, 1, 2, LOOSE, 3]])
def test_what_does_not_pass_through_the_period_is_refused(blocks: list[int]) -> None:
    with pytest.raises(NotRepeated):
        ordered(blocks, ONE)


def test_nothing_stays_nothing() -> None:
    assert len(ordered([], ONE).positions) == 0


@given(counts=st.lists(st.integers(1, 3), min_size=5, max_size=5), copies=st.integers(1, 4))
def test_what_a_copy_refers_to_has_moved_with_it(counts: list[int], copies: int) -> None:
    """Blocks 1, 2 and 3 have as many members: every member of 2 refers to its likes in 1 and 3."""
    counts = [counts[0], counts[1], counts[1], counts[1], counts[4]]
    blocks = [block for block, count in enumerate(counts) for _ in range(count)]
    order = ordered(blocks, Period(2, 1, copies))
    many = [blocks[place] + shift for place, shift in zip(order.positions, order.shifts, strict=True)]
    starts = {block: blocks.index(block) for block in range(5)}
    for offset in range(counts[1]):
        shifts = np.arange(copies + 1)
        for other in (1, 2, 3):
            places = order.places(np.full(copies + 1, starts[other] + offset), shifts, np.zeros(copies + 1, dtype=bool))
            assert [many[place] for place in places] == [other + shift for shift in shifts]
            assert [place - many.index(many[place]) for place in places] == [offset] * (copies + 1)


def test_who_is_outside_finds_the_ends_themselves() -> None:
    order = ordered(UP, ONE)
    assert order.places(np.array([1, 8]), np.zeros(2, dtype=np.int64), np.ones(2, dtype=bool)).tolist() == [1, 14]


def test_a_copy_that_reaches_to_an_end_is_refused() -> None:
    """Block 4 is no neighbour of block 2: what lies two blocks behind a copy is not known."""
    with pytest.raises(NotRepeated):
        ordered(UP, ONE).places(np.array([8]), np.array([1]), np.zeros(1, dtype=bool))


def test_who_is_outside_cannot_mean_one_of_the_copies() -> None:
    with pytest.raises(NotRepeated):
        ordered(UP, ONE).places(np.array([4]), np.array([0]), np.ones(1, dtype=bool))


def test_copies_of_some_members() -> None:
    order = ordered(UP, ONE)
    places, which = order.copies(np.array([3, 5, 8]))
    assert places.tolist() == [3, 5, 7, 9, 11, 14]
    assert which.tolist() == [0, 1, 1, 1, 1, 2]
