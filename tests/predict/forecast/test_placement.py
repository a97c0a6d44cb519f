import json
import pickle
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from tests.every import every

from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.catalogue import find_device, find_link
from epochcast.hardware.cluster import Group
from epochcast.hardware.device import Device
from epochcast.hardware.link import Link
from epochcast.hardware.machines import instances
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import Placement, Price, place, placed
from epochcast.predict.forecast.strategies.strategy_table import DDP, find_strategy


def test_several_gpus_are_ddp_and_one_is_single() -> None:
    assert place("V100").strategy.name == "single"
    assert place("V100", gpus=4).strategy.name == "ddp"


def test_gpus_are_shared_out_over_boxes(v100: Device) -> None:
    group = place(v100, gpus=16, nodes=2).group
    assert (group.nodes, group.ranks_per_node, group.ranks) == (2, 8, 16)
    assert group.inner == find_link(v100.interconnect)


def test_a_link_joins_the_boxes_or_the_gpus_of_one_box(v100: Device) -> None:
    across = place(v100, gpus=4, nodes=2, link="ethernet_10g").group
    inside = place(v100, gpus=4, link="pcie3").group
    assert (across.inner, across.outer) == (find_link(v100.interconnect), find_link("ethernet_10g"))
    assert inside.inner == find_link("pcie3")


def test_an_assumed_link_is_admitted(v100: Device) -> None:
    assert place(v100, gpus=16, nodes=2).link_assumed == "infiniband_edr_x4"
    assert place(v100, gpus=16, nodes=2).group.outer == find_link("infiniband_edr_x4")
    assert place(v100, gpus=4, nodes=2, link="ethernet_10g").link_assumed is None
    assert place(v100, gpus=4).link_assumed is None


def test_another_device_has_the_network_of_its_own_boxes() -> None:
    placement = place("A100", gpus=16, nodes=2)
    assert placement.link_assumed == "infiniband_hdr_x8"
    assert placement.with_device(find_device("H100")).link_assumed == "infiniband_ndr_x8"
    rack = placement.with_device(find_device("GB200"))
    assert Placement.from_dict(rack.as_dict()) == rack


def test_a_given_price_is_per_gpu_and_hour() -> None:
    placement = place("V100", gpus=4, dollars_per_gpu_hour=2.5)
    assert (placement.dollars_per_hour, placement.price_source) == (10, "given")


def test_a_catalogue_price_names_its_instance() -> None:
    placement = place("V100")
    assert placement.dollars_per_hour is not None
    assert placement.price_source is not None and len(placement.price_source.split()) == 2


def test_the_price_pays_for_every_box_that_the_job_has() -> None:
    one, four = (place("A100", gpus=8 * nodes, nodes=nodes).dollars_per_hour for nodes in (1, 4))
    assert one is not None and four == pytest.approx(4 * one)
    spread = place("A100", gpus=8, nodes=4)
    assert spread.dollars_per_hour is not None and spread.dollars_per_hour > one
    filled = place("A100", gpus=16, topology="dgx_a100")
    assert filled.nodes == 2 and filled.dollars_per_hour == pytest.approx(2 * one)


def test_a_device_of_one_s_own_has_no_price(v100: Device) -> None:
    mine = replace(v100, name="mine")
    assert place(mine, gpus=4).price is None
    assert place(mine, gpus=4, dollars_per_gpu_hour=2.0).price == Price(8.0, "given")


def test_another_device_brings_its_own_links_where_none_was_named(v100: Device) -> None:
    h100 = find_device("H100")
    assert place(v100, gpus=16, nodes=2).with_device(h100) == replace(
        place(h100, gpus=16, nodes=2), price=place(v100, gpus=16).price
    )
    named = place(v100, gpus=16, nodes=2, link="ethernet_10g").with_device(h100)
    assert (named.group.outer, named.group.inner) == (find_link("ethernet_10g"), find_link(h100.interconnect))


BY_HAND = Placement(find_device("V100"), Group(1, 4, Link(1e-6, 1e9), Link(1e-5, 1e8)), DDP)
PLACEMENTS = {
    "one": place("V100"),
    "box": place("A100", gpus=8, topology="p4d.24xlarge", strategy="fsdp"),
    "boxes": place("V100", gpus=16, nodes=2, strategy="mirrored:hierarchical_copy", link="ethernet_10g"),
    "assumed": place("V100", gpus=16, nodes=2, allreduce="tree", dollars_per_gpu_hour=2.5),
    "product": place("H100", gpus=16, nodes=2, strategy="tp2,dp4,pp2,zero1"),
    "own device": place(replace(find_device("V100"), name="mine", aliases=("my own",)), gpus=2),
    "uneven": placed(find_device("V100"), 5, 2, "horovod", link="ethernet_10g", empty=1),
    "by hand": BY_HAND,
}


@every("placement", PLACEMENTS.values(), ids=PLACEMENTS)
def test_a_placement_survives_being_written_down(placement: Placement) -> None:
    written = json.dumps(placement.as_dict())
    read = Placement.from_dict(json.loads(written))
    assert read == placement and hash(read) == hash(placement)
    assert pickle.loads(pickle.dumps(placement)) == placement


def test_what_is_written_by_hand_may_leave_out_all_but_the_device() -> None:
    assert Placement.from_dict({"device": "V100"}) == placed(find_device("V100"))
    with pytest.raises(BadInput, match="device must be given"):
        Placement.from_dict({"gpus": 2})
    with pytest.raises(BadInput, match="placement has no field 'boxes'"):
        Placement.from_dict({"device": "V100", "boxes": 2})


def test_a_strategy_by_hand_cannot_be_written_down() -> None:
    with pytest.raises(BadInput, match="'ddp' is not the one of that name, and cannot be written down"):
        replace(BY_HAND, strategy=replace(DDP, cycle_seconds=1.0)).as_dict()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gpus": 6, "nodes": 4}, "6 GPUs do not share out evenly over 4 nodes"),
        ({"gpus": 2, "nodes": 4, "strategy": "ddp"}, "2 GPUs do not share out evenly over 4 nodes"),
        ({"gpus": 0}, "gpus and nodes must be at least 1, got 0 and 1"),
        ({"gpus": -8, "nodes": -2}, "gpus and nodes must be at least 1, got -8 and -2"),
        ({"gpus": 2, "strategy": "single"}, "strategy 'single' runs on one GPU, not 2; try ddp, horovod or mirrored"),
        ({"strategy": DDP}, "strategy 'ddp' is for several GPUs, not 1; one alone is 'single'"),
        ({"gpus": 4, "strategy": find_strategy("dp2,tp4", 8)}, "strategy 'dp2,tp4' is for 8 GPUs, and there are 4"),
    ],
)
def test_a_placement_that_makes_no_sense_is_refused(v100: Device, options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        placed(v100, **options)


@pytest.mark.parametrize("dollars_per_hour", [-1.0, float("nan")])
def test_a_price_is_not_negative(dollars_per_hour: float) -> None:
    with pytest.raises(BadInput, match=f"a price cannot be negative, got {dollars_per_hour}"):
        Price(dollars_per_hour, "given")


def test_unknown_names_list_the_known_ones(v100: Device) -> None:
    with pytest.raises(UnknownName, match="no strategy called 'mirorred'; near: mirrored"):
        place(v100, gpus=2, strategy="mirorred")
    with pytest.raises(UnknownName, match="no link called 'string'"):
        place(v100, gpus=2, link="string")
    with pytest.raises(UnknownName, match="no device called 'V1000'"):
        place("V1000")


def drawn_clusters(count: int) -> list[tuple[str, int, int]]:
    """Devices that somebody rents out, GPUs and nodes: two and more nodes with one to eight GPUs in each."""
    chosen = random.Random(20)
    rented = sorted({each.device for each in instances() if place(each.device).price is not None})
    shapes = [(chosen.choice(rented), chosen.randint(2, 16), chosen.randint(1, 8)) for _ in range(count)]
    return [(device, nodes * ranks, nodes) for device, nodes, ranks in shapes]


def test_three_hundred_random_jobs_pay_for_every_box() -> None:
    """Counted anew, GPU by GPU: each goes to the next node in turn, and a node begins a box whenever one is full."""
    prices = {f"{box.cloud} {box.name}": box for box in instances()}
    job = Job("mnist_cnn", batch=32, samples=60_000, epochs=2)
    for device, gpus, nodes in drawn_clusters(300):
        answer = forecast_job(job, place(device, gpus=gpus, nodes=nodes))
        assert answer.price_source is not None and answer.dollars is not None and answer.total_seconds is not None
        box = prices[answer.price_source]
        used = Counter(gpu % nodes for gpu in range(gpus))
        begun = sum(1 for ranks in used.values() for rank in range(ranks) if rank % box.gpus == 0)
        assert begun >= nodes
        hours = answer.total_seconds.mid / 3600
        assert answer.dollars.mid == pytest.approx(hours * begun * box.dollars_per_hour)
