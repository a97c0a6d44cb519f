"""What can be rented for a job: one or several machines of one kind, with their GPUs, links and price.

Machines are rented whole and all of their GPUs are used: k machines of g GPUs are k·g GPUs at k times the price of one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from epochcast.base.caching import remembered
from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.boards import is_region, machine_rules, region_patterns
from epochcast.hardware.catalogue import family, find_device
from epochcast.hardware.device import Device
from epochcast.hardware.instance import Instance
from epochcast.hardware.machines import State, instances, price_state
from epochcast.hardware.price import MARKETS, OWNED, has_enough_host
from epochcast.hardware.price_list import cheapest
from epochcast.hardware.seller_names import seller_name
from epochcast.hardware.topology import known_topology
from epochcast.predict.forecast.placement import Placement, Price, placed
from epochcast.predict.forecast.strategies.strategy import Strategy
from epochcast.units import show_gpus

# Machines of one owner, at what they cost that owner, are offered only by name; so are markets (`hardware.price`).
PRIVATE = frozenset({"in-house"})
BY_NAME_ONLY = PRIVATE | MARKETS


@dataclass(frozen=True, slots=True)
class Offer:
    """`nodes` machines of one kind."""

    instance: Instance
    nodes: int = 1
    spot_dollars_per_hour: float | None = None
    """Of one machine, where it is rented as spare capacity."""

    def __post_init__(self) -> None:
        if self.nodes < 1:
            raise BadInput(f"nodes must be at least 1, got {self.nodes}")

    @property
    def name(self) -> str:
        """2 × p4d.24xlarge"""
        return self.instance.name if self.nodes == 1 else f"{self.nodes} × {self.instance.name}"

    @property
    def title(self) -> str:
        """8 × RTX 4090 on RunPod; 2 machines × 8 H100-SXM5-80GB on AWS"""
        return f"{self.gpus_title} on {seller_name(self.instance.cloud)}"

    @property
    def gpus_title(self) -> str:
        """8 × RTX 4090; 2 machines × 8 H100-SXM5-80GB"""
        return show_gpus(self.instance.device, self.gpus, self.nodes)

    @property
    def gpus(self) -> int:
        """GPUs of all machines."""
        return self.nodes * self.instance.gpus

    @property
    def dollars_per_hour(self) -> float:
        """Price of all machines, on demand or as spot."""
        return self.nodes * (self.spot_dollars_per_hour or self.instance.dollars_per_hour)

    @property
    def on_demand_dollars_per_hour(self) -> float:
        """Of all machines, where they are not taken back."""
        return self.nodes * self.instance.dollars_per_hour

    @property
    def is_spot(self) -> bool:
        """Whether it is rented as spare capacity."""
        return self.spot_dollars_per_hour is not None

    @property
    def where(self) -> str:
        """aws us-east-1"""
        return f"{self.instance.cloud} {self.instance.region}".rstrip()

    def feel(self, *, with_host: bool = True) -> tuple[object, ...]:
        """What a job notices of an offer: two that agree in it take the same time, whatever they cost."""
        box, topology = self.instance, known_topology(self.instance.name)
        links: tuple[str, ...] = ()  # one GPU has none
        if self.gpus > 1 and topology is not None:
            links = (topology.name,)
        elif self.gpus > 1:
            links = box.inner_link, box.outer_link if self.nodes > 1 else ""
        return (box.device, box.gpus, self.nodes, box.cpus if with_host else None, *links)

    @property
    def device(self) -> Device:
        """The GPU, with the link that joins the GPUs of this machine."""
        return _device(self.instance)

    def placement(self, strategy: str | Strategy | None = None) -> Placement:
        """A job on all GPUs of the offer, with the links of the machine where its topology is in the catalogue."""
        topology = known_topology(self.instance.name)
        return placed(
            self.device,
            self.gpus,
            self.nodes,
            strategy,
            link=self.instance.outer_link if topology is None and self.nodes > 1 else None,
            topology=None if topology is None else topology.name,
            price=Price(self.dollars_per_hour, f"{self.instance.cloud} {self.instance.name}"),
        )


@remembered(1024)
def _device(instance: Instance) -> Device:
    return replace(find_device(instance.device), interconnect=instance.inner_link)


def offers(
    gpus: Sequence[int],
    *,
    clouds: Sequence[str] = (),
    devices: Sequence[str] = (),
    regions: Sequence[str] = (),
    spot: bool = False,
    any_host: bool = False,
) -> tuple[Offer, ...]:
    """All offers of the catalogue with one of these numbers of GPUs, fewest GPUs first.

    No names mean all names; `spot` is spare capacity that may be taken back.
    """
    counts = sorted(set(gpus))
    if not counts or counts[0] < 1:
        raise BadInput(
            f"numbers of GPUs must be at least 1, such as 1,2,4,8; got {', '.join(map(str, gpus)) or 'none'}"
        )
    machines = rentable(clouds=clouds, devices=devices, regions=regions, spot=spot, any_host=any_host)
    matching = [
        Offer(machine, count // machine.gpus, machine.spot_dollars_per_hour if spot else None)
        for count in counts
        for machine in machines
        if count % machine.gpus == 0 and (count == machine.gpus or is_joinable(machine))
    ]
    if not matching:
        names = (("of", devices), ("at", clouds), ("in", regions), ("as", ["spot"] if spot else []))
        sought = "".join(f" {word} {', '.join(listed)}" for word, listed in names if listed)
        sizes = ", ".join(map(str, sorted({machine.gpus for machine in machines})))
        offered = f"machines have {sizes}" if sizes else "no such machine is in `epochcast instances`"
        raise BadInput(f"no offer{sought} with {', '.join(map(str, counts))} GPUs: {offered}")
    return tuple(matching)


def rentable(
    *,
    clouds: Sequence[str] = (),
    devices: Sequence[str] = (),
    regions: Sequence[str] = (),
    spot: bool = False,
    any_host: bool = False,
) -> tuple[Instance, ...]:
    """The machines that match, each at the least price of the regions.

    `any_host` has those, too, whose host is too small for its GPUs (`has_enough_host`).
    """
    wanted_clouds, wanted_devices = _clouds(clouds), _devices(devices)
    machines = [machine for machine in instances() if machine.cloud in wanted_clouds]
    machines = [machine for machine in machines if not wanted_devices or machine.device in wanted_devices]
    machines = [machine for machine in machines if any_host or machine.cloud in OWNED or has_enough_host(machine)]
    if not regions and not spot:
        return tuple(machines)
    patterns = region_patterns(regions)
    _check_regions(regions)
    return tuple(at for machine in machines if (at := _in_regions(machine, patterns, spot)) is not None)


def is_joinable(machine: Instance) -> bool:
    """Whether several can work together: what joins them is known."""
    return bool(machine.outer_link) or known_topology(machine.name) is not None


@dataclass(frozen=True, slots=True)
class OffersInOrder:
    """Offers to look at first, and those of several machines for where the first meet no limit."""

    first: tuple[Offer, ...]
    reserve: tuple[Offer, ...] = ()


def one_machine_first(offered: Sequence[Offer], nodes: Sequence[int], asked_gpus: Sequence[int]) -> OffersInOrder:
    """One machine, unless a number of machines is asked for, or a number of GPUs that no single machine has."""
    if nodes:
        matching = tuple(offer for offer in offered if offer.nodes in nodes)
        if not matching:
            numbers = ", ".join(map(str, sorted({offer.nodes for offer in offered})))
            raise BadInput(f"no offer with {', '.join(map(str, nodes))} machines: they have {numbers}")
        return OffersInOrder(matching)
    single = {offer.gpus for offer in offered if offer.nodes == 1}

    def is_first(offer: Offer) -> bool:
        return offer.nodes == 1 or (offer.gpus in asked_gpus and offer.gpus not in single)

    first = tuple(offer for offer in offered if is_first(offer))
    if not first:
        return OffersInOrder(tuple(offered))
    return OffersInOrder(first, tuple(offer for offer in offered if not is_first(offer)))


def _in_regions(machine: Instance, patterns: Sequence[str], spot: bool) -> Instance | None:
    prices = [price for price in machine.regions if not patterns or is_region(price.region, patterns)]
    least = cheapest((price for price in prices if price.dollars_per_hour is not None), spot=spot)
    return None if least is None else machine.at(least)


def _check_regions(names: Sequence[str]) -> None:
    """Refuse a name that no region has: it is misspelt."""
    for name in names:
        patterns = region_patterns([name])
        if not any(is_region(region, patterns) for region in _all_regions(price_state())):
            raise UnknownName("region", name, {*_all_regions(price_state()), *machine_rules().regions})


@remembered(4)
def _all_regions(_state: State) -> frozenset[str]:
    return frozenset(price.region for machine in instances() for price in machine.regions if price.region)


def _clouds(names: Sequence[str]) -> set[str]:
    all_clouds = {machine.cloud for machine in instances()}
    for name in names:
        if name.casefold() not in all_clouds:
            raise UnknownName("cloud", name, all_clouds)
    return {name.casefold() for name in names} or all_clouds - BY_NAME_ONLY


def _devices(names: Sequence[str]) -> set[str]:
    """A bare family name means all of its variants."""
    return {device.name for name in names for device in family(name) or (find_device(name),)}
