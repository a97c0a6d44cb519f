from typing import Any

import pytest

from epochcast.comm.allreduce import ALGORITHMS
from epochcast.errors import BadInput, UnknownName
from epochcast.forecasting.placement import DEFAULT_OUTER_LINK, STRATEGIES, Placement, place
from epochcast.hardware.catalogue import find_link
from epochcast.hardware.device import Device


def test_several_gpus_are_ddp_and_one_is_single() -> None:
    assert place("V100").strategy == "single"
    assert place("V100", gpus=4).strategy == "ddp"


def test_gpus_are_shared_out_over_boxes(v100: Device) -> None:
    group = place(v100, gpus=16, nodes=2).group()
    assert (group.nodes, group.ranks_per_node, group.ranks) == (2, 8, 16)
    assert group.inner == find_link(v100.interconnect)


def test_a_link_joins_the_boxes_or_the_gpus_of_one_box(v100: Device) -> None:
    across = place(v100, gpus=4, nodes=2, link="ethernet_10g").group()
    inside = place(v100, gpus=4, link="pcie3").group()
    assert (across.inner, across.outer) == (find_link(v100.interconnect), find_link("ethernet_10g"))
    assert inside.inner == find_link("pcie3")


def test_an_assumed_link_is_admitted(v100: Device) -> None:
    assert place(v100, gpus=4, nodes=2).assumes_outer_link
    assert place(v100, gpus=4, nodes=2).group().outer == find_link("ena_10g")  # p3.8xlarge, the slowest of its boxes
    assert place("H100", gpus=16, nodes=2).group().outer == find_link("ethernet_100g")
    assert place("MI210", gpus=4, nodes=2).group().outer == find_link(DEFAULT_OUTER_LINK)  # in no box we know
    assert not place(v100, gpus=4, nodes=2, link="ethernet_10g").assumes_outer_link
    assert not place(v100, gpus=4).assumes_outer_link


def test_a_given_price_is_per_gpu_and_hour() -> None:
    placement = place("V100", gpus=4, dollars_per_gpu_hour=2.5)
    assert (placement.dollars_per_hour, placement.price_source) == (10, "given")


def test_a_catalogue_price_names_its_instance() -> None:
    placement = place("V100")
    assert placement.dollars_per_hour is not None
    assert placement.price_source is not None and len(placement.price_source.split()) == 2


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_uses_a_known_collective(strategy: str) -> None:
    assert STRATEGIES[strategy].algorithm in {*ALGORITHMS, "fastest"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gpus": 6, "nodes": 4}, "6 GPUs do not share out evenly over 4 nodes"),
        ({"gpus": 2, "nodes": 4, "strategy": "ddp"}, "2 GPUs do not share out evenly over 4 nodes"),
        ({"gpus": 0}, "gpus and nodes must be at least 1, got 0 and 1"),
        ({"gpus": -8, "nodes": -2}, "gpus and nodes must be at least 1, got -8 and -2"),
        ({"gpus": 2}, "strategy 'single' runs on one GPU, not 2; try ddp, horovod or mirrored"),
        ({"dollars_per_hour": -1.0}, "a price cannot be negative, got -1.0"),
        ({"dollars_per_hour": float("nan")}, "a price cannot be negative, got nan"),
    ],
)
def test_a_placement_that_makes_no_sense_is_refused(v100: Device, options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Placement(v100, **options)


def test_unknown_names_list_the_known_ones(v100: Device) -> None:
    with pytest.raises(UnknownName, match="no strategy called 'mirorred'; near: mirrored"):
        place(v100, gpus=2, strategy="mirorred")
    with pytest.raises(UnknownName, match="no link called 'string'"):
        place(v100, gpus=2, link="string")
    with pytest.raises(UnknownName, match="no device called 'V1000'"):
        place("V1000")
