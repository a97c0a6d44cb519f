"""What can be rented for a job: one or several machines of one kind, with their GPUs, links and price.

Machines are rented whole and all of their GPUs are used: k machines of g GPUs are k·g GPUs at k times the price of one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from epochcast.caching import remembered
from epochcast.errors import BadInput, UnknownName
from epochcast.forecasting.placement import Placement, Price, placed
from epochcast.forecasting.strategies.strategy import Strategy
from epochcast.hardware.catalogue import family, find_device, instances
from epochcast.hardware.device import Device
from epochcast.hardware.instance import Instance
from epochcast.hardware.topology import known_topology

# Up to two of the largest machines that most clouds have.
OFFERED_GPUS = (1, 2, 4, 8, 16)
# Machines of one owner, at what they cost that owner: nobody else can rent them, so they are offered only by name.
PRIVATE = frozenset({"in-house"})


@dataclass(frozen=True, slots=True)
class Offer:
    """`nodes` machines of one kind."""

    instance: Instance
    nodes: int = 1

    def __post_init__(self) -> None:
        if self.nodes < 1:
            raise BadInput(f"nodes must be at least 1, got {self.nodes}")

    @property
    def name(self) -> str:
        """2 × p4d.24xlarge"""
        return self.instance.name if self.nodes == 1 else f"{self.nodes} × {self.instance.name}"

    @property
    def gpus(self) -> int:
        """GPUs of all machines."""
        return self.nodes * self.instance.gpus

    @property
    def dollars_per_hour(self) -> float:
        """Price of all machines."""
        return self.nodes * self.instance.dollars_per_hour

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


def offers(gpus: Sequence[int], *, clouds: Sequence[str] = (), devices: Sequence[str] = ()) -> tuple[Offer, ...]:
    """All offers of the catalogue with one of these numbers of GPUs, fewest GPUs first. No names mean all names."""
    counts = sorted(set(gpus))
    if not counts or counts[0] < 1:
        raise BadInput(
            f"numbers of GPUs must be at least 1, such as 1,2,4,8; got {', '.join(map(str, gpus)) or 'none'}"
        )
    wanted_clouds, wanted_devices = _clouds(clouds), _devices(devices)
    machines = [machine for machine in instances() if machine.cloud in wanted_clouds]
    machines = [machine for machine in machines if not wanted_devices or machine.device in wanted_devices]
    matching = [
        Offer(machine, count // machine.gpus) for count in counts for machine in machines if count % machine.gpus == 0
    ]
    if not matching:
        raise BadInput(_no_offer_message(counts, machines, clouds, devices))
    return tuple(matching)


def _clouds(names: Sequence[str]) -> set[str]:
    all_clouds = {machine.cloud for machine in instances()}
    for name in names:
        if name.casefold() not in all_clouds:
            raise UnknownName("cloud", name, all_clouds)
    return {name.casefold() for name in names} or all_clouds - PRIVATE


def _devices(names: Sequence[str]) -> set[str]:
    """A bare family name means all of its variants."""
    return {device.name for name in names for device in family(name) or (find_device(name),)}


def _no_offer_message(
    counts: Sequence[int], machines: Sequence[Instance], clouds: Sequence[str], devices: Sequence[str]
) -> str:
    at_clouds = f" at {', '.join(clouds)}" if clouds else ""
    of_devices = f" of {', '.join(devices)}" if devices else ""
    sizes = sorted({machine.gpus for machine in machines})
    wanted = ", ".join(map(str, counts))
    offered = f"machines have {', '.join(map(str, sizes))}" if sizes else "no such machine is in `epochcast instances`"
    return f"no offer{of_devices}{at_clouds} with {wanted} GPUs: {offered}"
