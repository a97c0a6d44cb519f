import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.every import every

from epochcast.errors import BadInput
from epochcast.hardware.cluster import Group
from epochcast.hardware.link import Link
from epochcast.predict.comm import collectives
from epochcast.predict.comm.collectives import (
    all_gather_seconds,
    all_reduce_seconds,
    all_to_all_seconds,
    broadcast_seconds,
    point_to_point_seconds,
    reduce_scatter_seconds,
)

NVLINK = Link(latency_seconds=1e-6, bandwidth_bytes_per_second=100e9)
ETHERNET = Link(latency_seconds=1e-5, bandwidth_bytes_per_second=1e9)
FOUR_BOXES = Group(4, 1, NVLINK, ETHERNET)
TWO_BY_FOUR = Group(2, 4, NVLINK, ETHERNET)
GIGABYTE = 10**9

every_collective = every("name", collectives.__all__)


# By hand: 1 GB over 4 boxes of one rank, α = 10 µs, B = 1 GB/s; NCCL takes 8.4 µs to start, a ring 4 crossings, and
# messages to all others an eighth of the latency each.
def test_four_boxes_by_hand() -> None:
    assert reduce_scatter_seconds(GIGABYTE, FOUR_BOXES) == pytest.approx(8.4e-6 + 4e-5 + 0.75, rel=1e-9)
    assert all_gather_seconds(GIGABYTE, FOUR_BOXES) == pytest.approx(8.4e-6 + 4e-5 + 0.75, rel=1e-9)
    assert broadcast_seconds(GIGABYTE, FOUR_BOXES) == pytest.approx(3e-5 + 1.0)
    assert all_to_all_seconds(GIGABYTE, FOUR_BOXES) == pytest.approx(8.4e-6 + 3e-5 / 8 + 0.75, rel=1e-9)
    assert point_to_point_seconds(GIGABYTE, FOUR_BOXES) == pytest.approx(1e-5 + 1.0)


def test_the_ranks_of_a_box_share_its_card() -> None:
    """2 boxes of 4: each of four ranks sends half of its bytes to the other box, or a whole message."""
    hops = (3 * 1e-6 + 4 * 1e-5) / 8
    assert all_to_all_seconds(GIGABYTE, TWO_BY_FOUR) == pytest.approx(8.4e-6 + hops + 4 * 0.5, rel=1e-9)
    assert point_to_point_seconds(GIGABYTE, TWO_BY_FOUR) == pytest.approx(1e-5 + 4.0)


@given(size=st.integers(0, 10**11), nodes=st.integers(1, 64), each=st.integers(1, 16))
def test_an_all_reduce_is_never_slower_than_scattering_and_gathering(size: int, nodes: int, each: int) -> None:
    group = Group(nodes, each, NVLINK, ETHERNET)
    both = reduce_scatter_seconds(size, group) + all_gather_seconds(size, group)
    assert all_reduce_seconds(size, group) <= both * (1 + 1e-12)


@every_collective
def test_one_rank_has_nothing_to_send(name: str) -> None:
    assert getattr(collectives, name)(GIGABYTE, Group(1, 1, NVLINK, ETHERNET)) == 0


@every_collective
@given(size=st.integers(0, 10**11), more=st.integers(0, 10**11))
def test_more_bytes_never_take_less_time(name: str, size: int, more: int) -> None:
    seconds = getattr(collectives, name)
    assert seconds(size, TWO_BY_FOUR) <= seconds(size + more, TWO_BY_FOUR)


@every_collective
def test_a_size_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="at least 0 bytes"):
        getattr(collectives, name)(-1.0, FOUR_BOXES)
