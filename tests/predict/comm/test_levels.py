"""Groups of more than two levels: GPUs on a switch, switches in a box, boxes."""

from dataclasses import replace
from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.every import every

from epochcast.errors import BadInput
from epochcast.hardware.cluster import Group, Level
from epochcast.hardware.link import Link
from epochcast.predict.comm import collectives
from epochcast.predict.comm.allreduce import ALGORITHMS, PARTIAL, all_reduce_seconds
from epochcast.predict.comm.collectives import all_to_all_seconds, point_to_point_seconds
from epochcast.predict.comm.protocol import tuning

SWITCH = Link(1e-6, 10e9, medium="pcie")
SOCKET = Link(2e-6, 5e9, medium="pcie")
NETWORK = Link(1e-5, 1e9, medium="rdma")
# Two boxes of two sockets of two GPUs on a switch.
DEEP = Group(2, 4, SWITCH, NETWORK, (Level(2, SOCKET),))
GIGABYTE = 10**9
FLAT = ("ring", "tree", "butterfly", "halving_doubling", "one_to_all")

sizes = st.integers(0, 10**11)
links = st.builds(Link, st.floats(0, 1e-4), st.floats(1e8, 1e12))
levels = st.lists(st.builds(Level, st.integers(1, 4), links), max_size=3).map(tuple)


@st.composite
def groups(draw: st.DrawFn) -> Group:
    within = draw(levels)
    each = draw(st.integers(1, 4))
    for level in within:
        each *= level.fanout
    return Group(draw(st.integers(1, 8)), each, draw(links), draw(links), within)


def test_levels_are_listed_from_the_ranks_outwards() -> None:
    assert DEEP.levels == (Level(2, SWITCH), Level(2, SOCKET), Level(2, NETWORK))
    assert (DEEP.ranks, DEEP.slowest) == (8, NETWORK)


def test_a_hierarchy_has_one_phase_per_level() -> None:
    """Two children on each level: 2·(α + n/2B) three times."""
    by_hand = 2 * (1e-6 + 0.05) + 2 * (2e-6 + 0.1) + 2 * (1e-5 + 0.5)
    assert all_reduce_seconds(GIGABYTE, DEEP, "hierarchical") == pytest.approx(by_hand)


def test_nccl_counts_the_hops_of_every_level() -> None:
    """A ring through 8 ranks has 14 hops: 4 between boxes, 8 - 4 between sockets, 14 - 8 on switches. Trees by LL."""
    hops = 4 * 1e-5 + 4 * 2e-6 + 6 * 1e-6
    assert all_reduce_seconds(GIGABYTE, DEEP) == pytest.approx(8.4e-6 + hops + 1.75)
    chain = 1e-5 + 1 * 2e-6 + 2 * 1e-6
    assert all_reduce_seconds(GIGABYTE, DEEP, "double_tree") == pytest.approx(8.4e-6 + 2 * chain + 2 / 0.92)


def test_an_all_to_all_is_as_slow_as_its_slowest_level() -> None:
    """Of each rank's GB seven eighths leave it, six leave the switch, four the box: 4·0.5 GB at 1 GB/s; in one box of
    four half leaves a switch of two.
    """
    whole, one_box = all_to_all_seconds(GIGABYTE, DEEP), all_to_all_seconds(GIGABYTE, replace(DEEP, nodes=1))
    sustained = tuning().pairwise[0].lines["pcie"].bandwidth_fraction
    assert whole == pytest.approx(2.0, abs=5e-5)
    assert one_box == pytest.approx(2 * 0.5 / 5 / sustained, abs=5e-5)


def test_neighbours_of_two_sockets_share_what_joins_them() -> None:
    assert point_to_point_seconds(GIGABYTE, replace(DEEP, nodes=1)) == pytest.approx(2e-6 + 2 / 5)


@pytest.mark.parametrize("algorithm", FLAT)
def test_a_flat_algorithm_pays_the_slowest_link_on_its_way(algorithm: str) -> None:
    one_box = replace(DEEP, nodes=1)
    assert all_reduce_seconds(GIGABYTE, one_box, algorithm) == all_reduce_seconds(
        GIGABYTE, Group(1, 4, SOCKET, NETWORK), algorithm
    )


@every("algorithm", ALGORITHMS)
@given(size=sizes, group=groups(), link=links, place=st.integers(0, 3))
def test_a_level_with_one_child_changes_nothing(
    algorithm: str, size: int, group: Group, link: Link, place: int
) -> None:
    at = min(place, len(group.within))
    more = replace(group, within=(*group.within[:at], Level(1, link), *group.within[at:]))
    assert all_reduce_seconds(size, more, algorithm) == all_reduce_seconds(size, group, algorithm)
    for name in collectives.__all__:
        seconds = getattr(collectives, name)
        assert seconds(size, more) == seconds(size, group)


@given(size=sizes, rate=st.floats(1e8, 1e12), fanouts=st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_levels_on_which_every_gpu_has_its_own_link_cost_one_ring(size: int, rate: float, fanouts: list[int]) -> None:
    """A part's link is then as many times as fast as it has GPUs: Σ 2n(fᵢ-1)/(f₁…fᵢB) = 2n(p-1)/pB."""
    below, within = fanouts[0], []
    for fanout in fanouts[1:]:
        within.append(Level(fanout, Link(0.0, below * rate)))
        below *= fanout
    deep = Group(1, below, Link(0.0, rate), NETWORK, tuple(within))
    flat = Group(1, below, Link(0.0, rate), NETWORK)
    assert all_reduce_seconds(size, deep, "hierarchical") == pytest.approx(all_reduce_seconds(size, flat, "ring"))


@every("algorithm", [name for name in ALGORITHMS if name not in PARTIAL])
@given(size=sizes, group=groups())
def test_no_algorithm_beats_the_bound_of_any_level(algorithm: str, size: int, group: Group) -> None:
    """Every child of a level must send at least 2n(f-1)/f bytes over its link."""
    seconds = all_reduce_seconds(size, group, algorithm)
    for level in group.levels:
        bound = 2 * size * (level.fanout - 1) / level.fanout / level.link.sustained_bytes_per_second
        assert seconds >= bound * (1 - 1e-9)


@given(size=sizes, nodes=st.integers(1, 64), each=st.integers(1, 16), inner=links, outer=links)
def test_two_levels_cost_what_they_always_did(size: int, nodes: int, each: int, inner: Link, outer: Link) -> None:
    """NCCL's ring by the formula for boxes alone, and its trees."""
    group = Group(nodes, each, inner, outer)
    if group.ranks == 1:
        return
    crossings = 2 * nodes if nodes > 1 else 0
    hops = max(0, 2 * (group.ranks - 1) - crossings) * inner.latency_seconds + crossings * outer.latency_seconds
    rate = group.slowest.sustained_bytes_per_second
    ring = 8.4e-6 + hops + 2 * size * (group.ranks - 1) / group.ranks / rate
    chain = (each - 1) * inner.latency_seconds + ceil(log2(nodes)) * outer.latency_seconds
    tree = 8.4e-6 + 2 * chain + 2 * size / (0.92 * rate)
    assert all_reduce_seconds(size, group) == pytest.approx(min(ring, tree))


def test_ranks_that_do_not_fill_the_parts_are_refused() -> None:
    with pytest.raises(BadInput, match="5 ranks cannot be divided evenly over 2 parts of a box"):
        Group(1, 5, SWITCH, NETWORK, (Level(2, SOCKET),))
    with pytest.raises(BadInput, match="a level must have at least 1 child, got 0"):
        Level(0, SWITCH)
