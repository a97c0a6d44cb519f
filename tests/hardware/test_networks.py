from dataclasses import replace

import pytest
from tests.every import every

from epochcast.errors import BadInput
from epochcast.hardware.catalogue import devices, find_device, find_link
from epochcast.hardware.default_network import joins_nodes, load_networks, usual_network
from epochcast.hardware.device import Device
from epochcast.hardware.topology import topologies

GIGABIT = 1e9 / 8


@every("device", devices(), ids=lambda device: device.name)
def test_every_device_has_a_network_and_says_whose(device: Device) -> None:
    found = usual_network(device, 16, 2)
    assert found.link.source and found.description
    has_fabric = device.interconnect.startswith(("nvlink", "nvswitch", "infinity", "ici", "ipu", "gaudi", "hccs"))
    is_bridge = "bridge" in device.interconnect
    if has_fabric and not is_bridge:  # sold in boxes of many, never with the card of a workstation
        assert found.link.bandwidth_bytes_per_second >= 100 * GIGABIT


@every("box", topologies(), ids=lambda box: box.name)
def test_no_device_takes_the_slowest_network_it_is_known_with_where_there_is_a_usual_one(box: object) -> None:
    """A device that is sold in several boxes is not forecast by the slowest, unless the boxes differ by little."""
    assert hasattr(box, "device")
    device = find_device(box.device)
    sold = [find_link(other.outer_link) for other in topologies() if find_device(other.device) == device]
    rates = sorted(link.bandwidth_bytes_per_second for link in sold)
    if rates[-1] > 4 * rates[0] and device.interconnect.startswith("nv"):
        assert usual_network(device, 16, 2).link.bandwidth_bytes_per_second > rates[0]


@pytest.mark.parametrize(
    ("name", "link", "what"),
    [
        ("V100-SXM2-16GB", "infiniband_edr_x4", "DGX-1 V100"),
        ("A100", "infiniband_hdr_x8", "DGX A100"),
        ("H100", "infiniband_ndr_x8", "DGX H100"),
        ("B200", "infiniband_ndr_x8", "DGX B200"),
        ("B300", "infiniband_xdr_x8", "DGX B300"),
        ("MI300X", "infiniband_ndr_x8", "eight such devices"),
        ("T4", "ena_50g", "g4dn.12xlarge"),
        ("L40S", "ethernet_100g", "servers on PCI Express of its years, assumed"),
        ("RTX 3090", "ethernet_10g", "desktop cards in workstations, assumed"),
        ("RTX 4090", "ethernet_25g", "desktop cards in a rack, assumed"),
        ("RTX 6000 Ada", "ethernet_25g", "workstations of its years, assumed"),
        ("TPU v4", "ici_v4", "the chips themselves"),
    ],
)
def test_boxes_are_joined_by_what_they_are_sold_with(name: str, link: str, what: str) -> None:
    found = usual_network(find_device(name), 16, 2)
    assert (found.link, what in found.description) == (find_link(link), True)


@pytest.mark.parametrize(
    ("like", "change", "link"),
    [
        ("H100", {"name": "H900-SXM", "interconnect": "nvlink4"}, "infiniband_ndr_x8"),
        ("B200", {"name": "R100", "interconnect": "nvlink5", "year": 2027}, "infiniband_ndr_x8"),
        ("MI300X", {"name": "MI325X"}, "infiniband_ndr_x8"),
        ("RTX 5090", {"name": "RTX 5070 Ti"}, "ethernet_25g"),
        ("RTX 5090", {"name": "RTX 5090 Laptop"}, "ethernet_1g"),
        ("RTX 5090", {"name": "RTX PRO 6000 Blackwell Server"}, "ethernet_100g"),
        ("RTX 5090", {"name": "RTX PRO 6000 Blackwell"}, "ethernet_25g"),
        ("RTX 5090", {"name": "RTX PRO 6000 Blackwell Max-Q"}, "ethernet_25g"),
        ("H100", {"name": "H800-SXM5", "interconnect": "nvlink4_h800"}, "infiniband_ndr_x8"),
        ("A100", {"name": "A800-SXM4", "interconnect": "nvlink3_a800"}, "infiniband_hdr_x8"),
        ("H100", {"name": "H200-NVL", "interconnect": "nvlink_bridge_hopper", "year": 2024}, "ethernet_100g"),
        ("RTX 5090", {"name": "M2 Ultra GPU", "interconnect": "shared_memory"}, "ethernet_10g"),
        ("L40", {"name": "L20"}, "ethernet_100g"),
        ("Vega Frontier Edition", {"name": "RX 7900 XTX", "year": 2022}, "ethernet_25g"),
        ("V100", {"name": "my own card", "interconnect": "pcie4", "year": 2024}, "ethernet_100g"),
    ],
)
def test_a_new_device_is_answered_by_its_generation_and_kind(like: str, change: dict[str, object], link: str) -> None:
    device = replace(find_device(like), **change)  # type: ignore[arg-type]
    assert usual_network(device, 16, 2).link == find_link(link)


def test_trays_of_a_rack_are_joined_by_nvlink_and_racks_by_the_card_of_every_gpu() -> None:
    """Trays of four: four times NVLink 5 inside a rack; beyond 72 GPUs four cards of 400 Gbit/s."""
    inside, beyond = (usual_network(find_device("GB200"), gpus, gpus // 4).link for gpus in (72, 144))
    assert inside.bandwidth_bytes_per_second == 4 * find_link("nvlink5").bandwidth_bytes_per_second
    assert beyond.bandwidth_bytes_per_second == pytest.approx(1600 * GIGABIT)
    assert beyond.name == "4x infiniband_ndr"


def test_only_chips_with_a_fabric_of_their_own_join_nodes_by_it() -> None:
    assert joins_nodes(find_device("TPU v3"))
    assert not joins_nodes(find_device("H100"))


LAST = '[[network]]\nname = "all"\nlink = "ethernet_10g"\ndescription = "x"\nsource = "y"\n'


def test_a_broken_rule_names_file_and_row() -> None:
    assert len(load_networks(LAST)) == 1
    with pytest.raises(BadInput, match=r"networks.toml, \[\[network\]\] row 1 \(all\): a network is one of"):
        load_networks(LAST + 'box = "DGX-1"\n')
    with pytest.raises(BadInput, match="the last row must be for every device"):
        load_networks(LAST + "from_year = 2020\n")
    with pytest.raises(BadInput, match="no link called 'string'"):
        load_networks(LAST.replace("ethernet_10g", "string"))
