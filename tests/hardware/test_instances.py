import pytest

from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.catalogue import devices, find_device, find_instance, find_link, instances, load_instances
from epochcast.hardware.device import Device
from epochcast.hardware.instance import Instance
from epochcast.hardware.price import price_dollars_per_hour

every_instance = pytest.mark.parametrize("instance", instances(), ids=lambda instance: instance.name)


# The table of the Politecnico di Milano talk.
@pytest.mark.parametrize(
    ("name", "device", "gpus", "dollars_per_hour"),
    [
        ("NC6", "K80", 1, 0.56),
        ("NC12", "K80", 2, 1.13),
        ("NC24", "K80", 4, 2.25),
        ("NV6", "M60", 1, 0.62),
        ("NV12", "M60", 2, 1.24),
        ("NV24", "M60", 4, 2.48),
        ("inhouse-2xp600", "Quadro P600", 2, 0.11),
        ("inhouse-8xgtx1080ti", "GTX 1080 Ti", 8, 1.13),
        ("inhouse-8xp600", "Quadro P600", 8, 0.44),
        ("p4d.24xlarge", "A100-SXM4-40GB", 8, 32.7726),
    ],
)
def test_prices_are_those_of_their_source(name: str, device: str, gpus: int, dollars_per_hour: float) -> None:
    instance = find_instance(name)
    assert (instance.device, instance.gpus, instance.dollars_per_hour) == (device, gpus, dollars_per_hour)


@every_instance
def test_every_instance_is_made_of_catalogued_parts(instance: Instance) -> None:
    assert find_device(instance.device).name == instance.device
    assert find_link(instance.inner_link).name == instance.inner_link
    assert find_link(instance.outer_link).name == instance.outer_link
    assert len(instance.source) > 10
    assert instance.verified or "recalled" in instance.source


@every_instance
def test_a_gpu_hour_costs_between_a_cent_and_twenty_dollars(instance: Instance) -> None:
    assert 0.01 < instance.dollars_per_gpu_hour < 20


def test_every_cloud_is_there() -> None:
    assert {instance.cloud for instance in instances()} == {"aws", "azure", "gcp", "lambda", "in-house"}


# by hand: eight A100s are one gpu_8x_a100 at 10.32; one H100 SXM is 3.29 (a whole p5 would be 98.32)
def test_the_cheapest_whole_boxes_are_chosen() -> None:
    priced = price_dollars_per_hour("A100", gpus=8)
    assert priced is not None and (priced[0], priced[1].name) == (10.32, "gpu_8x_a100")
    priced = price_dollars_per_hour("H100-SXM5-80GB")
    assert priced is not None and priced[0] == 3.29


def test_a_box_is_rented_whole() -> None:
    priced = price_dollars_per_hour("GTX 1080 Ti", gpus=9)
    assert priced is not None and priced[0] == pytest.approx(2 * 1.13)


# by hand: a node of four A100s is a gpu_8x_a100 at 10.32, however many of its GPUs are used; a node of one is 1.29
@pytest.mark.parametrize(
    ("gpus", "nodes", "dollars"), [(8, 2, 2 * 10.32), (8, 8, 8 * 1.29), (24, 3, 3 * 10.32), (9, 2, 2 * 10.32)]
)
def test_every_node_is_a_box_that_is_paid_for(gpus: int, nodes: int, dollars: float) -> None:
    priced = price_dollars_per_hour("A100", gpus, nodes)
    assert priced is not None and priced[0] == pytest.approx(dollars)


@pytest.mark.parametrize("device", devices(), ids=lambda device: device.name)
def test_no_node_shares_a_box_with_another(device: Device) -> None:
    """Over all devices and shapes of a cluster: at least a box for each node, and a larger one where its GPUs fit."""
    for nodes in (1, 2, 3, 4, 8):
        for ranks in (1, 2, 3, 4, 8):
            priced = price_dollars_per_hour(device.name, nodes * ranks, nodes)
            if priced is None:
                return
            boxes = priced[0] / priced[1].dollars_per_hour
            assert boxes >= nodes * (1 - 1e-9)
            sizes = [each.gpus for each in instances() if each.device == priced[1].device]
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


@pytest.mark.parametrize("device", devices(), ids=lambda device: device.name)
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
    with pytest.raises(BadInput, match="priced_on must be a date like 2023"):
        load_instances(text.replace("dollars_per_hour = 0", "dollars_per_hour = 1").replace('"2023"', '"last year"'))
