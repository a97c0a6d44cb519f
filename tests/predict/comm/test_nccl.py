"""The lines of NCCL by hand with round constants, and the laws that hold with the shipped ones on every link."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.every import every

from epochcast.hardware.catalogue import find_link, links
from epochcast.hardware.cluster import Group
from epochcast.hardware.link import MEDIA, Link
from epochcast.predict.comm import nccl
from epochcast.predict.comm.collectives import (
    all_gather_seconds,
    all_reduce_seconds,
    all_to_all_seconds,
    reduce_scatter_seconds,
)
from epochcast.predict.comm.protocol import Protocol, ProtocolLine, Tuning, fitted, tuning

NVLINK = Link(1e-6, 100e9, medium="nvlink")
SWITCH = replace(NVLINK, sums_in_switch=True)
NETWORK = Link(1e-5, 10e9, medium="rdma")
ROUND = Tuning(
    protocols=(
        Protocol("simple", {"nvlink": ProtocolLine(10e-6, 2.0, 1.0), "rdma": ProtocolLine(20e-6, 1.0, 0.5)}),
        Protocol("ll", {"nvlink": ProtocolLine(5e-6, 0.5, 0.25)}),
    ),
    pairwise=(Protocol("simple", {"nvlink": ProtocolLine(10e-6, 0.5, 0.8), "rdma": ProtocolLine(20e-6, 0.1, 1.0)}),),
    own_fractions={"nvlink": 0.5},
    switch_line=ProtocolLine(30e-6, 2.0, 0.5),
    tree_fraction=0.5,
)
FOUR = Group(1, 4, NVLINK, NETWORK)
TWO_BY_FOUR = replace(FOUR, nodes=2)
GIGABYTE = 10**9
SECONDS = (all_reduce_seconds, all_gather_seconds, reduce_scatter_seconds, all_to_all_seconds)

every_collective = every("seconds", SECONDS, ids=lambda each: each.__name__)
sizes = st.integers(0, 10**11)
inner_links = st.sampled_from([link for link in links() if link.medium in ("pcie", "nvlink", "xgmi", "fabric")])
networks = st.sampled_from([link for link in links() if link.medium in ("rdma", "tcp") and link.pair_fraction == 1])


def test_a_ring_copies_its_own_part_and_takes_the_lowest_line() -> None:
    """Four ranks: six hops and six parts in two rounds, three in one; a rank's own part costs half of one by wire."""
    assert nccl.ring(GIGABYTE, FOUR, 2, ROUND) == pytest.approx(10e-6 + 6 * 2e-6 + 6.5 / 4 * 0.01)
    assert nccl.ring(GIGABYTE, FOUR, 1, ROUND) == pytest.approx(10e-6 + 3 * 2e-6 + 3.5 / 4 * 0.01)
    assert nccl.ring(1000, FOUR, 1, ROUND) == pytest.approx(5e-6 + 3 * 0.5e-6 + 3.5 / 4 * 1000 / 25e9)


def test_each_message_has_the_line_of_its_wire() -> None:
    """Eight ranks in two boxes, once around: two crossings and five hops inside; LL does not run on the network."""
    hops = 2 * 1e-5 + 5 * 2e-6
    assert nccl.ring(GIGABYTE, TWO_BY_FOUR, 1, ROUND) == pytest.approx(20e-6 + hops + 7 / 8 / 5)
    chain = 2 * (3 * 2e-6 + 1e-5)
    assert nccl.trees(GIGABYTE, TWO_BY_FOUR, ROUND) == pytest.approx(20e-6 + chain + 2 / (0.5 * 5))


def test_a_switch_sums_in_two_doublings_and_at_a_rate_of_the_bytes() -> None:
    four = Group(1, 4, SWITCH, NETWORK)
    assert nccl.switch_sum(GIGABYTE, four, ROUND) == pytest.approx(30e-6 + 2 * 2e-6 + 0.02)
    faster = replace(ROUND, switch_line=ProtocolLine(0.0, 0.0, 1.0))
    assert nccl.all_reduce(GIGABYTE, four, faster) == pytest.approx(0.01)
    assert nccl.all_reduce(GIGABYTE, FOUR, faster) > 0.015  # no such switch
    assert nccl.all_reduce(GIGABYTE, Group(2, 4, SWITCH, NETWORK), faster) > 0.1  # nor between boxes


def test_pairs_send_by_all_levels_at_once() -> None:
    """Eight ranks: 7.5 parts of eight leave a rank, 16 of a box's 32 its card; three peers inside, four outside."""
    assert nccl.pairwise(GIGABYTE, FOUR, ROUND) == pytest.approx(10e-6 + 3 * 0.5e-6 + 3.5 / 4 / 80)
    found = nccl.pairwise(GIGABYTE, TWO_BY_FOUR, ROUND)
    assert found == pytest.approx(20e-6 + 3 * 0.5e-6 + 4 * 1e-6 + 16 / 8 / 10)


@every_collective
@given(size=sizes, more=sizes, inner=inner_links, outer=networks, nodes=st.integers(1, 32), each=st.integers(1, 16))
def test_more_bytes_are_never_faster(
    seconds: object, size: int, more: int, inner: Link, outer: Link, nodes: int, each: int
) -> None:
    assert callable(seconds)
    group = Group(nodes, each, inner, outer)
    assert seconds(size, group) <= seconds(size + more, group)


@every_collective
@given(size=sizes, inner=inner_links, outer=networks, nodes=st.integers(1, 32), each=st.integers(1, 16))
def test_more_nodes_are_never_faster_at_equal_bytes(
    seconds: object, size: int, inner: Link, outer: Link, nodes: int, each: int
) -> None:
    assert callable(seconds)
    fewer, more = (Group(count, each, inner, outer) for count in (nodes, nodes + 1))
    assert seconds(size, fewer) <= seconds(size, more) * (1 + 1e-12)


@every_collective
@given(size=sizes, ranks=st.integers(2, 72), inner=inner_links)
def test_more_ranks_of_a_box_are_never_faster_unless_the_link_says_so(
    seconds: object, size: int, ranks: int, inner: Link
) -> None:
    """In a mesh without switches fewer GPUs have fewer links."""
    assert callable(seconds)
    plain = replace(inner, rank_fractions=())
    fewer, more = (Group(1, count, plain, plain) for count in (ranks, ranks + 1))
    assert seconds(size, fewer) <= seconds(size, more) * (1 + 1e-12)


def test_only_amazon_s_flows_get_less_between_two_boxes_than_among_more() -> None:
    """There the law of nodes does not hold: measured so, one flow for each pair of boxes."""
    assert {link.name.partition("_")[0] for link in links() if link.pair_fraction < 1} == {"ena"}


def test_every_kind_of_wire_has_a_line_and_its_source() -> None:
    known = tuning()
    assert set(known.protocols[0].lines) == set(known.pairwise[0].lines) == set(MEDIA)
    assert all(0 <= own < 1 for own in known.own_fractions.values())
    assert all(len(row["source"]) > 10 for kind in ("protocol", "pairwise") for row in fitted()[kind])


# Published figures of nccl-tests and aiconfigurator, bytes per second of the bus: 2(p-1)/p of the bytes.
@pytest.mark.parametrize(
    ("link", "ranks", "gigabytes_per_second"),
    [("nvswitch2", 8, 225), ("nvswitch3", 4, 350), ("nvswitch3", 8, 445), ("nvswitch4", 8, 700), ("pcie5", 8, 24.7)],
)
def test_large_all_reduces_reach_what_boxes_reach(link: str, ranks: int, gigabytes_per_second: float) -> None:
    wire = find_link(link)
    seconds = all_reduce_seconds(2**29, Group(1, ranks, wire, wire))
    assert 2 * (ranks - 1) / ranks * 2**29 / seconds / 1e9 == pytest.approx(gigabytes_per_second, rel=0.2)


def test_two_cards_of_a_mesh_have_a_part_of_their_links_and_two_under_a_root_more() -> None:
    mesh, pcie = find_link("nvlink2"), find_link("pcie4")
    assert mesh.among(2).sustained_bytes_per_second < 0.5 * mesh.among(8).sustained_bytes_per_second
    assert pcie.among(2).sustained_bytes_per_second > 1.2 * pcie.among(8).sustained_bytes_per_second
    assert Group(1, 2, mesh, pcie).slowest == mesh.among(2)
