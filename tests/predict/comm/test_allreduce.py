import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.every import every

from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.cluster import Group
from epochcast.hardware.link import Link
from epochcast.predict.comm.allreduce import ALGORITHMS, PARTIAL, all_reduce_seconds
from epochcast.predict.comm.protocol import ProtocolLine, tuning

NVLINK = Link(latency_seconds=1e-6, bandwidth_bytes_per_second=100e9)
ETHERNET = Link(latency_seconds=1e-5, bandwidth_bytes_per_second=1e9)


def boxes(count: int, ranks_per_node: int = 1) -> Group:
    return Group(count, ranks_per_node, NVLINK, ETHERNET)


sizes = st.integers(min_value=0, max_value=10**11)
groups = st.builds(boxes, st.integers(1, 64), st.integers(1, 16))
every_algorithm = every("algorithm", ALGORITHMS)
every_whole_algorithm = every("algorithm", [a for a in ALGORITHMS if a not in PARTIAL])


# By hand: 1 GB over 4 boxes of one rank, α = 10 µs, B = 1 GB/s; a message of n bytes takes 1e-5 + n/1e9 s.
@pytest.mark.parametrize(
    ("algorithm", "seconds"),
    [
        ("ring", 6 * (1e-5 + 0.25)),
        ("tree", 4 * (1e-5 + 1.0)),
        ("butterfly", 2 * (1e-5 + 1.0)),
        ("butterfly_mixing", 1 * (1e-5 + 1.0)),
        ("halving_doubling", 4 * 1e-5 + 1.5),
        ("hierarchical", 6 * (1e-5 + 0.25)),
        ("hierarchical_copy", 4 * (1e-5 + 1.0)),
        ("one_to_all", 6 * (1e-5 + 1.0)),
        ("reduce_to_one_device", 6 * (1e-5 + 1.0)),
        # NCCL's: 8.4 µs to start; a ring of four boxes has 8 crossings, two trees 4; trees get 0.92 of the rate.
        ("double_tree", 8.4e-6 + 4 * 1e-5 + 2.0 / 0.92),
        ("auto", 8.4e-6 + 8 * 1e-5 + 1.5),
        ("nccl", 8.4e-6 + 8 * 1e-5 + 1.5),
    ],
)
def test_four_boxes_by_hand(algorithm: str, seconds: float) -> None:
    assert all_reduce_seconds(10**9, boxes(4), algorithm) == pytest.approx(seconds)


def test_a_hierarchy_keeps_the_fast_link_busy_inside_the_boxes() -> None:
    """2 boxes of 4: inside 6·(1 µs + 0.25 GB / 100 GB/s), across 2·(10 µs + 0.5 GB / 1 GB/s)."""
    inside, across = 6 * (1e-6 + 0.0025), 2 * (1e-5 + 0.5)
    assert all_reduce_seconds(10**9, boxes(2, 4), "hierarchical") == pytest.approx(inside + across)


def test_a_flat_algorithm_pays_the_slowest_link_throughout() -> None:
    assert all_reduce_seconds(10**9, boxes(2, 4), "tree") == pytest.approx(6 * (1e-5 + 1.0))


@every_algorithm
def test_one_rank_has_nothing_to_send(algorithm: str) -> None:
    assert all_reduce_seconds(10**9, boxes(1), algorithm) == 0


@every_algorithm
def test_no_bytes_still_pay_latency(algorithm: str) -> None:
    assert 1e-5 <= all_reduce_seconds(0, boxes(8), algorithm) < 2e-4


@every_algorithm
@given(size=sizes, more=sizes, group=groups)
def test_more_bytes_never_take_less_time(algorithm: str, size: int, more: int, group: Group) -> None:
    assert all_reduce_seconds(size, group, algorithm) <= all_reduce_seconds(size + more, group, algorithm)


@every_algorithm
@given(size=sizes, group=groups, times=st.integers(2, 1000))
def test_units_cancel(algorithm: str, size: int, group: Group, times: int) -> None:
    """More bytes over links as many times faster take the same time."""
    inner, outer = (Link(link.latency_seconds, times * link.bandwidth_bytes_per_second) for link in (NVLINK, ETHERNET))
    faster = Group(group.nodes, group.ranks_per_node, inner, outer)
    same = all_reduce_seconds(size, group, algorithm)
    assert all_reduce_seconds(times * size, faster, algorithm) == pytest.approx(same)


@every_whole_algorithm
@given(size=sizes, count=st.integers(2, 64))
def test_no_whole_sum_beats_the_bandwidth_bound(algorithm: str, size: int, count: int) -> None:
    """Some rank must send at least 2n(p-1)/p bytes (Patarasuk & Yuan 2009)."""
    bound = 2 * size * (count - 1) / count / ETHERNET.bandwidth_bytes_per_second
    assert all_reduce_seconds(size, boxes(count), algorithm) >= bound * (1 - 1e-12)


@given(size=sizes, rounds=st.integers(1, 6))
def test_mixing_is_one_round_of_the_butterfly(size: int, rounds: int) -> None:
    group = boxes(2**rounds)
    mixing = all_reduce_seconds(size, group, "butterfly_mixing")
    assert rounds * mixing == pytest.approx(all_reduce_seconds(size, group, "butterfly"))


@given(size=sizes, group=groups)
def test_the_fastest_is_the_best_that_finishes_the_sum(size: int, group: Group) -> None:
    whole = [all_reduce_seconds(size, group, name) for name in ALGORITHMS if name not in PARTIAL]
    assert all_reduce_seconds(size, group, "fastest") == min(whole)


def test_butterfly_pays_two_messages_off_a_power_of_two() -> None:
    def messages(ranks: int) -> int:
        return round(all_reduce_seconds(0, boxes(ranks), "butterfly") / ETHERNET.latency_seconds)

    assert [messages(ranks) for ranks in (2, 3, 4, 6, 8)] == [1, 3, 2, 4, 3]


def test_an_unknown_algorithm_is_answered_with_near_ones() -> None:
    with pytest.raises(UnknownName, match="no all-reduce algorithm called 'star'; near: tree"):
        all_reduce_seconds(1, boxes(1, 2), "star")


@pytest.mark.parametrize("size", [-1.0, float("nan"), float("inf")])
def test_a_size_that_is_none_is_refused(size: float) -> None:
    with pytest.raises(BadInput, match="at least 0 bytes"):
        all_reduce_seconds(size, boxes(2), "ring")


# NCCL by hand: eight GPUs with NVLink, α = 3.4 µs, B = 100 GB/s sustained.
EIGHT = Group(1, 8, Link(3.4e-6, 200e9, sustained_fraction=0.5, medium="nvlink"), ETHERNET)
LINES = {protocol.name: protocol.lines for protocol in tuning().protocols}
OWN = tuning().own_fractions["nvlink"]


def ring_by_hand(line: ProtocolLine, size_bytes: float) -> float:
    """14 hops, 14 parts of eight by wire and a copy of the own part."""
    moved_bytes = size_bytes * (14 + OWN) / 8
    return line.start_seconds + 14 * line.hop_factor * 3.4e-6 + moved_bytes / (line.bandwidth_fraction * 100e9)


def test_nccl_takes_ll_for_small_buffers() -> None:
    assert all_reduce_seconds(1000, EIGHT, "auto") == pytest.approx(ring_by_hand(LINES["ll"]["nvlink"], 1000))


def test_nccl_takes_a_simple_ring_for_large_buffers() -> None:
    """Ten gigabytes at 100 GB/s: 14/8 of them by wire."""
    found = all_reduce_seconds(10**10, EIGHT, "auto")
    assert found == pytest.approx(ring_by_hand(LINES["simple"]["nvlink"], 10**10))
    assert found == pytest.approx(1.75 * 0.1, rel=0.1)


def test_nccl_takes_trees_where_a_ring_has_too_many_hops() -> None:
    """1 MB over 1,000 boxes of one: a ring has 2,000 crossings, trees 20; InfiniBand takes LL."""
    many = Group(1000, 1, NVLINK, Link(14e-6, 10e9, medium="rdma"))
    assert all_reduce_seconds(10**6, many, "auto") == pytest.approx(6.6e-6 + 20 * 0.18 * 14e-6 + 2e6 / (0.46 * 10e9))


def test_ll128_needs_nvlink_everywhere() -> None:
    by_name = {protocol.name: protocol for protocol in tuning().protocols}
    assert by_name["ll128"].runs_on(EIGHT)
    assert not by_name["ll128"].runs_on(Group(2, 8, EIGHT.inner, Link(14e-6, 10e9, medium="rdma")))


@given(size=sizes, nodes=st.integers(1, 64), each=st.integers(1, 8))
def test_a_link_that_sustains_less_is_never_quicker(size: int, nodes: int, each: int) -> None:
    half = Link(ETHERNET.latency_seconds, ETHERNET.bandwidth_bytes_per_second, sustained_fraction=0.5)
    for name in ALGORITHMS:
        slow = all_reduce_seconds(size, Group(nodes, each, NVLINK, half), name)
        assert slow >= all_reduce_seconds(size, Group(nodes, each, NVLINK, ETHERNET), name)


def test_ten_thousand_ranks_cost_no_more_to_ask_than_two() -> None:
    assert 0 < all_reduce_seconds(10**9, boxes(1250, 8)) < 10
