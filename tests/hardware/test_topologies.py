import pytest
from tests.every import every

from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.catalogue import find_device, find_link
from epochcast.hardware.cluster import Level
from epochcast.hardware.topology import Topology, find_topology, load_topologies, topologies
from epochcast.predict.forecast.placement import place


@every("box", topologies(), ids=lambda box: box.name)
def test_every_box_says_where_its_figures_come_from(box: Topology) -> None:
    assert len(box.source) > 10
    assert find_device(box.device).name == box.device
    assert find_link(box.inner_link).sustained_bytes_per_second > 0


@pytest.mark.parametrize(
    ("name", "gpus", "inner", "outer"),
    [
        ("dgx-1", 8, "nvlink2", "infiniband_edr_x4"),
        ("HGX H100", 8, "nvswitch3", "infiniband_ndr_x8"),
        ("p3.16xlarge", 8, "nvlink2", "ena_25g"),
        ("aws g4dn", 4, "pcie3", "ena_50g"),
        ("ND96asr_v4", 8, "nvswitch2", "infiniband_hdr_x8"),
        ("a2-megagpu-16g", 16, "nvswitch2", "ethernet_100g"),
    ],
)
def test_boxes_are_found_by_name_and_alias(name: str, gpus: int, inner: str, outer: str) -> None:
    box = find_topology(name)
    assert (box.gpus, box.inner_link, box.outer_link) == (gpus, inner, outer)


def test_an_unknown_box_is_answered_with_near_ones() -> None:
    with pytest.raises(UnknownName, match="no topology called 'DGX A10'; near: DGX A100"):
        find_topology("DGX A10")


def test_a_placement_takes_the_wires_of_its_box() -> None:
    group = place("A100", gpus=16, topology="p4d.24xlarge").group
    assert (group.nodes, group.ranks_per_node, group.inner.name, group.outer.name) == (2, 8, "nvswitch2", "efa_400")


def test_a_link_that_is_given_counts_before_the_boxs() -> None:
    placement = place("V100", gpus=16, topology="DGX-1", link="ethernet_100g")
    assert (placement.group.inner.name, placement.group.outer.name) == ("nvlink2", "ethernet_100g")


def test_a_box_does_not_hold_more_than_it_has() -> None:
    with pytest.raises(BadInput, match="2 × DGX-1 V100 have 16 GPUs, not 32"):
        place("V100", gpus=32, nodes=2, topology="DGX-1")


def test_boxes_of_a_named_topology_need_no_warning() -> None:
    assert place("V100", gpus=16, topology="DGX-1").link_assumed is None
    assert place("V100", gpus=16, nodes=2).link_assumed is not None


ROW = """
[[topology]]
name = "a"
device = "V100-SXM2-16GB"
gpus = 8
inner_link = "nvlink2"
outer_link = "ethernet_10g"
network_cards = 1
cpus = 8
source = "by hand"
verified = true
"""


def test_a_broken_box_names_file_and_row() -> None:
    with pytest.raises(BadInput, match=r"topologies.toml, \[\[topology\]\] row 1 \(a\): gpus must be at least 1"):
        load_topologies(ROW.replace("gpus = 8", "gpus = 0"))
    with pytest.raises(BadInput, match="names both"):
        load_topologies(ROW + ROW.replace("cpus = 8", "cpus = 9"))


# ---- parts of a box -----------------------------------------------------------------------------


def test_a_quad_is_a_level_of_a_dgx1() -> None:
    box = find_topology("DGX-1")
    assert box.levels == (("GPU", 4, "nvlink2"), ("quad", 2, "nvlink2"), ("box", None, "infiniband_edr_x4"))
    assert box.inside(4) == (find_link("nvlink2"), ())
    assert box.inside(8) == (find_link("nvlink2"), (Level(2, find_link("nvlink2")),))


def test_gpus_fill_as_few_parts_as_hold_them() -> None:
    """Sixteen dies: two on a board, four boards a socket, two sockets."""
    box = find_topology("p2.16xlarge")
    pcie = find_link("pcie3")
    assert box.inside(2) == (find_link("pcie3_switch"), ())
    assert box.inside(8) == (find_link("pcie3_switch"), (Level(4, pcie),))
    assert box.inside(16) == (find_link("pcie3_switch"), (Level(4, pcie), Level(2, pcie)))


def test_gpus_that_do_not_share_out_evenly_count_as_joined_by_the_slowest() -> None:
    assert find_topology("p2.16xlarge").inside(5) == (find_link("pcie3"), ())


def test_a_rack_gives_every_gpu_its_whole_link() -> None:
    """Sixteen trays of four GPUs, each with a link of its own: a tray leaves by four."""
    inner, (trays,) = find_topology("NVL72").inside(64)
    assert trays.fanout == 16
    assert trays.link.bandwidth_bytes_per_second == 4 * inner.bandwidth_bytes_per_second


def test_a_placement_has_the_levels_of_its_box_unless_a_link_is_given() -> None:
    assert [level.fanout for level in place("V100", gpus=16, topology="DGX-1").group.levels] == [4, 2, 2]
    assert place("V100", gpus=8, topology="DGX-1", link="pcie3").group.within == ()


def test_a_broken_part_names_its_place() -> None:
    broken = ROW.replace("outer_link", 'parts = [{ name = "quad", count = 1, link = "nvlink2" }]\nouter_link')
    with pytest.raises(BadInput, match=r"row 1 \(a\): a box has at least 2 of each of its parts, got 1 of 'quad'"):
        load_topologies(broken)
    with pytest.raises(BadInput, match=r"row 1 \(a\), parts 1: unknown key 'links'"):
        load_topologies(broken.replace("count = 1", "count = 2, links = 1"))
    with pytest.raises(BadInput, match="8 GPUs cannot be divided evenly over the parts of a box"):
        load_topologies(broken.replace("count = 1", "count = 3"))
