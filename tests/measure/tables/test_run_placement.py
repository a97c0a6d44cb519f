from typing import Any

import pytest

from epochcast.hardware.catalogue import find_device, find_link
from epochcast.measure.tables.run_placement import (
    INNER,
    MACHINES,
    inner_link,
    nearest_link,
    outer_link,
    run_placement,
    strategy_of,
)
from epochcast.measure.tables.run_table import MeasuredRun, read_runs

DGX_NET = (
    "NVLINK 3.0, NVSWITCH 2.0 600GB/s | net: Management: 1x Ethernet 40Gb/Sec, Compute: 8x ConnectX-6 IB HDR 200Gb/Sec"
)
CUT = "NVLINK 3.0, NVSWITCH 2.0 | net: Storage: 2x ConnectX-6 IB HDR 200Gb/sec, Management: 1x Ethernet, Compute: 8x C"


def run(**cells: Any) -> MeasuredRun:
    row = {"model": "resnet50", "device": "V100", "batch_per_gpu": 32, "step_seconds": 0.1, "gpus": 8, **cells}
    runs, failures = read_runs([row])
    assert failures == []
    return runs[0]


def test_every_link_named_here_is_in_the_catalogue() -> None:
    names = {link for _, link in (*INNER, *MACHINES)}
    assert all(find_link(name) for name in names if name)


@pytest.mark.parametrize(
    ("text", "link"),
    [
        (DGX_NET, "infiniband_hdr_x8"),
        (CUT, "infiniband_hdr_x8"),
        ("NVLink 3.0 600GB/s | net: 2x ConnectX-6 IB HDR 200Gb/Sec", "infiniband_ndr"),
        ("AWS g4dn.12xlarge: PCIe intra, 50 Gb/s Ethernet inter", "ena_50g"),
        ("EC2 p2.8xlarge x k, 10 Gb/s Ethernet, TF parameter servers", "ethernet_10g"),
        ("NVSwitch (DGX A100)", "infiniband_hdr_x8"),
        ("NVLink; 4 x 100 Gb/s RoCE", "infiniband_ndr"),
        ("NVSwitch; InfiniBand NDR", None),  # a port of 400 Gbit/s, but not how many
        ("800 Gb/s per node", "infiniband_xdr"),
        ("2x Mellanox, 100Gb/s Ethernet", "ethernet_200g"),
        ("<NA> | net: <NA>", None),
        (None, None),
    ],
)
def test_what_joins_boxes_is_read_from_the_text(text: str | None, link: str | None) -> None:
    assert outer_link(text) == link


@pytest.mark.parametrize(
    ("text", "device", "link"),
    [
        ("NVLINK BRIDGE | net: 1x ConnectX-5 IB EDR 100Gb/Sec", "A100-PCIE-80GB", "NVLink bridge"),
        ("PCIe 4.0 | net: <NA>", "A100-SXM4-40GB", "pcie4"),
        ("GCE PCIe", "P100-SXM2-16GB", "pcie3"),
        ("GCE PCIe", "P100-PCIE-16GB", None),
        ("NVLink (DGX-1)", "V100", None),
    ],
)
def test_what_joins_gpus_of_a_box_is_read_from_the_text(text: str, device: str, link: str | None) -> None:
    assert inner_link(text, find_device(device)) == link


def test_a_bridge_joins_two_and_the_others_go_by_pcie() -> None:
    a100 = find_device("A100-PCIE-80GB")
    assert inner_link("NVLink bridge", a100, 2) == "NVLink bridge"
    assert inner_link("NVLink bridge", a100, 8) == a100.host_link


def test_the_nearest_link_is_nearest_by_ratio() -> None:
    assert find_link(nearest_link(11e9)).bandwidth_bytes_per_second == 12.5e9


@pytest.mark.parametrize(("gpus", "nodes", "each"), [(8, 1, 8), (8, 2, 4), (10, 4, 3), (5, 2, 3), (2, 4, 1)])
def test_uneven_boxes_have_places_for_the_mean_rounded_up_and_some_are_empty(gpus: int, nodes: int, each: int) -> None:
    group = run_placement(run(gpus=gpus, nodes=nodes)).group
    assert (group.ranks, group.nodes, group.ranks_per_node) == (gpus, min(gpus, nodes), each)


def test_frameworks_have_their_habits() -> None:
    assert strategy_of(run()) == "ddp"
    assert strategy_of(run(framework="tensorflow")) == "mirrored"
    assert strategy_of(run(framework="tensorflow (NGC)")) == "horovod"
    assert strategy_of(run(framework="tensorflow", nodes=2)) == "horovod"
    assert strategy_of(run(strategy="dp4")) == "ddp"
    assert strategy_of(run(interconnect="10 Gb/s Ethernet, TF parameter servers", nodes=2)) == "horovod"


def test_one_gpu_has_no_wires() -> None:
    assert run_placement(run(gpus=1)).strategy.name == "single"
    assert run_placement(run(), gpus=1).gpus == 1


def test_a_product_is_placed_as_it_was_laid_out() -> None:
    cells = {"device": "GB200", "gpus": 256, "batch_per_gpu": 1, "global_batch": 1536, "precision": "bf16"}
    asked = run(**cells, note="TP=4; PP=16; CP=1; VP=4; EP=n/a; 8 GPU per node DGX; NVL72 for GB")
    placed = run_placement(asked)
    assert (placed.strategy.name, placed.nodes) == ("dp4,tp4,pp16,vp4,zero1", 4)
    assert placed.link_assumed == "64x infiniband_ndr"
    assert placed.replicas == 4


@pytest.mark.parametrize(
    ("cells", "strategy"),
    [
        ({"strategy": "nn.DataParallel"}, "data_parallel"),
        ({"strategy": "DistributedDataParallel"}, "ddp"),
        ({"strategy": "Horovod"}, "horovod"),
        ({"strategy": "MirroredStrategy"}, "mirrored"),
        ({"strategy": "ZeRO-2"}, "zero2"),
        ({"strategy": "zero3"}, "zero3"),
        ({"strategy": "dp8"}, "ddp"),
        ({"strategy": "dp2,tp4"}, "dp2,tp4"),
        ({"framework": "pytorch (nn.DataParallel)"}, "data_parallel"),
        ({"framework": "Horovod, PyTorch 1.8"}, "horovod"),
        ({"framework": "pytorch", "dp": 2, "tp": 4}, "dp2,tp4"),
    ],
)
def test_a_strategy_is_read_by_its_other_names(cells: dict[str, Any], strategy: str) -> None:
    asked = run(**cells)
    assert strategy_of(asked) == strategy
    assert run_placement(asked).gpus == 8
