import pytest

from epochcast.decide.plan.offers import BY_NAME_ONLY, Offer, offers
from epochcast.decide.plan.plan_request import OFFERED_GPUS
from epochcast.errors import BadInput, EpochcastError, UnknownName
from epochcast.hardware.catalogue import find_link
from epochcast.hardware.machines import find_instance, instances
from epochcast.hardware.price import has_enough_host
from epochcast.hardware.topology import topologies


def test_boxes_are_rented_whole() -> None:
    two = Offer(find_instance("p3.8xlarge"), 2)
    assert (two.name, two.gpus, two.dollars_per_hour) == ("2 × p3.8xlarge", 8, 2 * 12.24)


def test_every_number_of_gpus_is_some_boxes_of_a_kind() -> None:
    found = offers((4, 8), clouds=["azure"], devices=["T4"])
    assert [(offer.instance.name, offer.nodes) for offer in found] == [
        ("NC4as_T4_v3", 4),
        ("NC64as_T4_v3", 1),
        ("NC4as_T4_v3", 8),
        ("NC64as_T4_v3", 2),
    ]


def test_everything_for_rent_is_offered_and_nothing_private() -> None:
    rented = {offer.instance for offer in offers(OFFERED_GPUS)}
    private = {box for box in instances() if box.cloud in BY_NAME_ONLY}
    assert private and not rented & private
    sizes = {1, 2, 4, 8, 16}
    assert rented == {box for box in instances() if box not in private and box.gpus in sizes and has_enough_host(box)}


def test_private_boxes_are_offered_by_name() -> None:
    assert {offer.instance.cloud for offer in offers((8,), clouds=["in-house"])} == {"in-house"}


def test_a_family_means_all_its_variants() -> None:
    assert len({offer.instance.device for offer in offers((8,), devices=["A100"])}) >= 3


def test_boxes_of_unknown_topology_have_their_own_links() -> None:
    group = Offer(find_instance("gpu_4x_a6000"), 2).placement().group
    assert (group.nodes, group.ranks_per_node) == (2, 4)
    assert (group.inner, group.outer) == (find_link("pcie4"), find_link("ethernet_10g"))


def test_boxes_of_known_topology_have_its_links() -> None:
    placement = Offer(find_instance("p4d.24xlarge"), 2).placement()
    assert placement.topology == "p4d.24xlarge"
    assert placement.group.outer == find_link("efa_400")


def test_topologies_of_the_same_name_are_the_same_boxes() -> None:
    boxes = {box.name: (box.device, box.gpus) for box in topologies()}
    for instance in instances():
        assert boxes.get(instance.name, (instance.device, instance.gpus)) == (instance.device, instance.gpus)


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"clouds": ["gpc"]}, UnknownName, "no cloud called 'gpc'; near: gcp"),
        ({"devices": ["A1000"]}, UnknownName, "no device called 'A1000'; near: "),
        ({"devices": ["TITAN V"]}, BadInput, "no offer of TITAN V with 1, 2, 4, 8, 16 GPUs: no such machine is in"),
        (
            {"gpus": (3,), "devices": ["H100"], "clouds": ["aws"]},
            BadInput,
            "no offer of H100 at aws with 3 GPUs: machines",
        ),
        ({"gpus": (0, 2)}, BadInput, "numbers of GPUs must be at least 1"),
        ({"gpus": ()}, BadInput, "numbers of GPUs must be at least 1, such as 1,2,4,8; got none"),
    ],
)
def test_what_is_not_there_is_said(asked: dict[str, list[str]], error: type[EpochcastError], message: str) -> None:
    with pytest.raises(error) as caught:
        offers(**{"gpus": OFFERED_GPUS, **asked})  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)
