from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from tests.every import every

from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.catalogue import devices, find_device, find_link
from epochcast.hardware.device import Device
from epochcast.hardware.instance import RegionPrice, price_cells, region_prices
from epochcast.hardware.machines import find_instance, instances, load_instances
from epochcast.hardware.price import MARKETS, has_enough_host, price_dollars_per_hour


# The table of offers (SkyPilot's catalogue, read on the day of the row), and the Politecnico di Milano talk.
@pytest.mark.parametrize(
    ("name", "device", "gpus", "dollars_per_hour", "priced_on"),
    [
        ("NC6", "K80", 1, 0.9, "2025-09-11"),
        ("p4d.24xlarge", "A100-SXM4-40GB", 8, 21.9576, "2026-08-22"),
        ("gpu_8x_a100", "A100-SXM4-40GB", 8, 15.92, "2026-08-03"),
        ("ND96isr_H100_v5", "H100-SXM5-80GB", 8, 98.32, "2025-09-11"),
        ("inhouse-2xp600", "Quadro P600", 2, 0.11, "2019"),
        ("inhouse-8xgtx1080ti", "GTX 1080 Ti", 8, 1.13, "2019"),
    ],
)
def test_prices_are_those_of_their_source(
    name: str, device: str, gpus: int, dollars_per_hour: float, priced_on: str
) -> None:
    box = find_instance(name)
    assert (box.device, box.gpus, box.dollars_per_hour, box.priced_on) == (device, gpus, dollars_per_hour, priced_on)


def test_every_instance_is_made_of_catalogued_parts() -> None:
    for instance in instances():
        assert find_device(instance.device).name == instance.device
        assert find_link(instance.inner_link).name == instance.inner_link
        assert not instance.outer_link or find_link(instance.outer_link).name == instance.outer_link
        assert len(instance.source) > 10
        assert instance.verified or "recalled" in instance.source


def test_a_gpu_hour_costs_between_a_cent_and_twenty_dollars() -> None:
    for instance in instances():
        assert 0.01 < instance.dollars_per_gpu_hour < 20


def test_hundreds_of_machines_of_two_dozen_clouds_have_a_date_and_a_source() -> None:
    dated = [one for one in instances() if len(one.priced_on) == 10]
    assert len(dated) > 700
    assert len({one.cloud for one in dated}) == 24
    assert {one.source for one in dated} == {"github.com/skypilot-org/skypilot-catalog"}


@pytest.mark.needs_data
def test_no_recalled_price_stands_where_the_table_has_one(data: Path) -> None:
    import polars

    table = polars.read_parquet(data / "offers.parquet").select("cloud", "instance").drop_nulls().unique()
    listed = {(cloud, name.removeprefix("Standard_")) for cloud, name in table.iter_rows()}
    assert not [one for one in instances() if not one.verified and (one.cloud, one.name) in listed]


# by hand: p4d.24xlarge is 21.9576 in the United States, 23.7157 in Stockholm and Ireland
def test_a_machine_has_a_price_in_each_region() -> None:
    prices = {one.region: one for one in find_instance("p4d.24xlarge").regions}
    assert prices["eu-north-1"].dollars_per_hour == 23.7157
    assert prices["eu-north-1"].spot_dollars_per_hour == 8.1611
    assert min(one.dollars_per_hour or 99 for one in prices.values()) == 21.9576


@pytest.mark.parametrize(
    ("priced_on", "days"), [("2026-08-22", 87), ("2026-08", 78), ("2025", 321), ("2026-11-17", 0), ("2027", 0)]
)
def test_the_age_of_a_price_is_counted_in_days(priced_on: str, days: int) -> None:
    box = replace(find_instance("p4d.24xlarge"), priced_on=priced_on)
    assert box.age(date(2026, 11, 17)).days == days
    assert box.is_stale(date(2026, 11, 17)) == (days > 90)


def test_prices_by_region_are_written_and_read_back() -> None:
    prices = (
        RegionPrice("a", 1.5, 0.5),
        RegionPrice("b", 1.5, 0.5),
        RegionPrice("c:|;d", 1.25),
        RegionPrice("", None, 2),
    )
    cells = price_cells(prices)
    assert cells == "c---d:1.25:|a;b:1.5:0.5|::2"
    assert set(region_prices(cells)) == {*prices[:2], RegionPrice("c---d", 1.25), prices[3]}


# by hand: the cheapest machines of the list that have four processors per GPU
def test_the_cheapest_whole_boxes_are_chosen() -> None:
    priced = price_dollars_per_hour("A100", gpus=8)
    assert priced is not None and (priced[0], priced[1].name) == (11.2, "denvr_A100-sxm4x8")
    priced = price_dollars_per_hour("K80", gpus=8)
    assert priced is not None and (priced[0], priced[1].name) == (5.12, "n1-standard-32+8xK80")


def test_markets_and_hosts_too_small_for_their_gpus_do_not_set_the_price() -> None:
    for device in ("H100-SXM5-80GB", "RTX 4090", "A100-SXM4-80GB"):
        priced = price_dollars_per_hour(device)
        assert priced is not None
        assert priced[1].cloud not in ("vast", "mithril")
        assert priced[1].cpus >= 4


def test_a_box_is_rented_whole() -> None:
    priced = price_dollars_per_hour("GTX 1080 Ti", gpus=9)
    assert priced is not None and priced[0] == pytest.approx(2 * 1.13)


# by hand: a node of four A100s is a box of eight at 11.20, however many of its GPUs are used; a node of one is 1.40
@pytest.mark.parametrize(
    ("gpus", "nodes", "dollars"), [(8, 2, 2 * 11.2), (8, 8, 8 * 1.4), (24, 3, 3 * 11.2), (9, 2, 2 * 11.2)]
)
def test_every_node_is_a_box_that_is_paid_for(gpus: int, nodes: int, dollars: float) -> None:
    priced = price_dollars_per_hour("A100", gpus, nodes)
    assert priced is not None and priced[0] == pytest.approx(dollars)


@every("device", devices(), ids=lambda device: device.name)
def test_no_node_shares_a_box_with_another(device: Device) -> None:
    """Over all devices and shapes of a cluster: at least a box for each node, and a larger one where its GPUs fit."""
    for nodes in (1, 2, 3, 4, 8):
        for ranks in (1, 2, 3, 4, 8):
            priced = price_dollars_per_hour(device.name, nodes * ranks, nodes)
            if priced is None:
                return
            boxes = priced[0] / priced[1].dollars_per_hour
            assert boxes >= nodes * (1 - 1e-9)
            sizes = [
                each.gpus
                for each in instances()
                if each.device == priced[1].device and each.cloud not in MARKETS and has_enough_host(each)
            ]
            assert priced[1].gpus >= ranks or priced[1].gpus == max(sizes)


def test_more_nodes_than_gpus_have_no_price() -> None:
    with pytest.raises(BadInput, match="nodes must be at least 1 and no more than the 2 GPUs, got 3"):
        price_dollars_per_hour("A100", gpus=2, nodes=3)


def test_a_bare_family_name_is_priced_as_another_variant_only_if_nobody_offers_the_default() -> None:
    priced = price_dollars_per_hour("P100")
    assert priced is not None and priced[1].device == "P100-PCIE-16GB"
    assert price_dollars_per_hour("P100-SXM2-16GB") is None


def test_an_unknown_price_is_none_and_never_zero() -> None:
    assert price_dollars_per_hour("TITAN V") is None


@every("device", devices(), ids=lambda device: device.name)
def test_more_gpus_never_cost_less(device: Device) -> None:
    prices = [price_dollars_per_hour(device.name, gpus) for gpus in (1, 2, 3, 4, 8, 16, 17)]
    dollars = [priced[0] for priced in prices if priced is not None]
    assert dollars == sorted(dollars)


def test_no_gpus_have_no_price() -> None:
    with pytest.raises(BadInput, match="gpus must be at least 1, got 0"):
        price_dollars_per_hour("A100", gpus=0)


def test_an_unknown_instance_is_answered_with_near_ones() -> None:
    with pytest.raises(UnknownName, match=r"no instance called 'p4d.24xlrge'; near: p4d.24xlarge"):
        find_instance("p4d.24xlrge")


def test_a_price_that_makes_no_sense_names_file_and_row() -> None:
    text = (
        '[[instance]]\nname = "free"\ncloud = "c"\ndevice = "T4"\ngpus = 1\ndollars_per_hour = 0\ncpus = 1\n'
        'host_memory = "1 GiB"\ninner_link = "pcie3"\nouter_link = "pcie3"\n'
        'source = "s"\npriced_on = "2023"\nverified = true\n'
    )
    with pytest.raises(
        BadInput, match=r"instances.toml, \[\[instance\]\] row 1 \(free\): dollars_per_hour must be above 0"
    ):
        load_instances(text)
    with pytest.raises(BadInput, match="a name of an instance is one line of letters"):
        load_instances(text.replace('"free"', '"two\\nlines"'))
    with pytest.raises(BadInput, match="priced_on must be a date like 2023"):
        load_instances(text.replace("dollars_per_hour = 0", "dollars_per_hour = 1").replace('"2023"', '"last year"'))
