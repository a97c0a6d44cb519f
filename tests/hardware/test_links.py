from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.every import every

from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.catalogue import find_device, find_link, links, load_links
from epochcast.hardware.cluster import Group, Link

NVLINK = Link(latency_seconds=1e-6, bandwidth_bytes_per_second=100e9)
ETHERNET = Link(latency_seconds=1e-5, bandwidth_bytes_per_second=1e9)


# by hand: 10 µs + 1 GB over 1 GB/s
def test_a_message_takes_latency_plus_size_over_bandwidth() -> None:
    assert ETHERNET.seconds(10**9) == pytest.approx(1e-5 + 1.0)
    assert ETHERNET.seconds(0) == 1e-5


@given(size=st.integers(0, 10**12), factor=st.integers(1, 1000))
def test_units_cancel(size: int, factor: int) -> None:
    """Twice the bytes over twice the bandwidth take the same time."""
    wider = Link(NVLINK.latency_seconds, NVLINK.bandwidth_bytes_per_second * factor)
    assert wider.seconds(size * factor) == pytest.approx(NVLINK.seconds(size))


@every(
    ("name", "bytes_per_second"),
    [
        ("pcie3", 15.75e9),
        ("pcie4", 31.5e9),
        ("nvlink1", 80e9),
        ("nvlink2", 150e9),
        ("nvlink3", 300e9),
        ("nvlink4", 450e9),
        ("nvlink5", 900e9),
        ("ethernet_10g", 1.25e9),
        ("infiniband_hdr", 25e9),
        ("efa_400", 50e9),
        ("omni_path", 12.5e9),
    ],
)
def test_the_catalogue_gives_nominal_rates_of_one_direction(name: str, bytes_per_second: float) -> None:
    assert find_link(name).bandwidth_bytes_per_second == pytest.approx(bytes_per_second)


@pytest.mark.parametrize("prefix", ["pcie", "nvlink", "nvswitch"])
def test_a_later_generation_is_faster(prefix: str) -> None:
    generations = [link for link in links() if link.name.removeprefix(prefix).isdigit()]
    assert len(generations) >= 4
    for earlier, later in pairwise(sorted(generations, key=lambda link: link.name)):
        assert earlier.bandwidth_bytes_per_second < later.bandwidth_bytes_per_second


@every("link", links(), ids=lambda link: link.name)
def test_every_link_says_where_its_figures_come_from(link: Link) -> None:
    assert len(link.source) > 10
    assert 1e-7 <= link.latency_seconds <= 1e-4
    assert 1e8 <= link.bandwidth_bytes_per_second <= 1e13


def test_an_unknown_link_is_answered_with_near_ones() -> None:
    with pytest.raises(UnknownName, match="no link called 'nvlnk2'; near: nvlink"):
        find_link("nvlnk2")


def test_a_broken_link_names_file_and_row() -> None:
    text = '[[link]]\nname = "a"\nlatency_seconds = -1\nbandwidth = "1 GB/s"\nsource = "x"\nverified = true\n'
    with pytest.raises(BadInput, match=r"links.toml, \[\[link\]\] row 1 \(a\): latency_seconds must be at least 0"):
        load_links(text)


def test_a_file_that_is_not_toml_is_named() -> None:
    with pytest.raises(BadInput, match=r"links.toml is not TOML: .*line 1"):
        load_links("= 3")


def test_cards_without_peer_access_share_what_a_host_carries() -> None:
    """2.05 GB/s for eight cards, 2.5 times that for two, on PCI Express 3 and 4 alike."""
    for name in ("pcie3_geforce", "pcie4_geforce"):
        link = find_link(name)
        assert link.sustained_bytes_per_second == pytest.approx(2.05e9, rel=0.01)
        assert link.among(2).sustained_bytes_per_second == pytest.approx(5.12e9, rel=0.01)
        assert link.at_rate(0.5).sustained_bytes_per_second == pytest.approx(1.02e9, rel=0.01)
    assert find_device("RTX 2080 Ti").interconnect == "pcie3_geforce"
    assert find_device("RTX A6000").interconnect == "pcie4"


def test_a_rate_depends_on_the_host_where_ranks_share_a_box() -> None:
    link = find_link("pcie4_geforce")
    assert Group(1, 4, link, ETHERNET).rate_factor == link.host_factor > 1
    assert Group(4, 1, link, ETHERNET).rate_factor == Group(1, 4, NVLINK, ETHERNET).rate_factor == 1


def test_one_box_uses_its_inner_link_only() -> None:
    assert Group(1, 8, NVLINK, ETHERNET).slowest is NVLINK


def test_boxes_of_one_rank_use_the_outer_link_only() -> None:
    assert Group(8, 1, ETHERNET, NVLINK).slowest is NVLINK


def test_otherwise_the_slower_of_both_counts() -> None:
    assert Group(2, 4, NVLINK, ETHERNET).slowest is ETHERNET
    assert Group(2, 4, ETHERNET, NVLINK).slowest is ETHERNET


def test_ranks_are_boxes_times_ranks_per_box() -> None:
    assert Group(nodes=3, ranks_per_node=4, inner=NVLINK, outer=ETHERNET).ranks == 12


@pytest.mark.parametrize(("nodes", "ranks_per_node"), [(0, 1), (1, 0), (-1, 2)])
def test_an_empty_group_is_refused(nodes: int, ranks_per_node: int) -> None:
    with pytest.raises(BadInput, match="must be at least 1"):
        Group(nodes, ranks_per_node, NVLINK, ETHERNET)


@pytest.mark.parametrize("bandwidth_bytes_per_second", [0.0, -1.0, float("nan"), float("inf")])
def test_a_link_without_bandwidth_is_refused(bandwidth_bytes_per_second: float) -> None:
    with pytest.raises(BadInput, match="bandwidth_bytes_per_second must be above 0"):
        Link(0.0, bandwidth_bytes_per_second)


def test_a_link_sustains_its_fraction() -> None:
    """Half of 1 GB/s: a gigabyte takes two seconds."""
    half = Link(0.0, 1e9, sustained_fraction=0.5)
    assert half.seconds(10**9) == pytest.approx(2.0)


def test_flows_crowd_and_two_boxes_alone_get_less() -> None:
    """1 GB/s, 0.5 of it between two boxes, 1 + 0.1√p times as slow with p ranks."""
    flow = Link(0.0, 1e9, pair_fraction=0.5, crowding=0.1)
    assert Group(2, 8, NVLINK, flow).across.sustained_bytes_per_second == pytest.approx(0.5e9 / 1.4)
    assert Group(8, 2, NVLINK, flow).across.sustained_bytes_per_second == pytest.approx(1e9 / 1.4)
    assert Group(3, 1, NVLINK, ETHERNET).across is ETHERNET


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sustained_fraction": 1.5}, "sustained_fraction must be above 0 and at most 1"),
        ({"pair_fraction": 0.0}, "pair_fraction must be above 0 and at most 1"),
        ({"crowding": -1.0}, "crowding must be at least 0"),
    ],
)
def test_a_fraction_that_is_none_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Link(0.0, 1e9, **change)


def test_an_unknown_medium_is_refused() -> None:
    with pytest.raises(UnknownName, match="no medium of a link called 'string'"):
        Link(0.0, 1e9, medium="string")


def test_boxes_that_are_not_filled_alike_have_the_ranks_they_have() -> None:
    """2 + 2 + 1."""
    assert Group(3, 2, NVLINK, ETHERNET, empty=1).ranks == 5
    with pytest.raises(BadInput, match="every box needs a rank, but 4 of 3 × 2 places are empty"):
        Group(3, 2, NVLINK, ETHERNET, empty=4)
