"""What can be rented for a job: so many boxes of one kind, with their GPUs, their wires and their price.

Boxes are rented whole and all of their GPUs are used: k boxes of g GPUs are k·g GPUs at k times the price of a box.
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

# Up to two of the largest boxes that most clouds have.
OFFERED_GPUS = (1, 2, 4, 8, 16)
# Boxes of one owner, at what they cost that owner: nobody else can have them, so they are offered only by name.
PRIVATE = frozenset({"in-house"})


@dataclass(frozen=True, slots=True)
class Offer:
    """`nodes` boxes of one kind."""

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
        """Of all boxes."""
        return self.nodes * self.instance.gpus

    @property
    def dollars_per_hour(self) -> float:
        """Of all boxes."""
        return self.nodes * self.instance.dollars_per_hour

    @property
    def device(self) -> Device:
        """The GPU, joined as this box joins its GPUs."""
        return _device(self.instance)

    def placement(self, strategy: str | Strategy | None = None) -> Placement:
        """A job on all GPUs of the offer; the wires are those of the box where `topology` knows it by its name."""
        box = known_topology(self.instance.name)
        return placed(
            self.device,
            self.gpus,
            self.nodes,
            strategy,
            link=self.instance.outer_link if box is None and self.nodes > 1 else None,
            topology=None if box is None else box.name,
            price=Price(self.dollars_per_hour, f"{self.instance.cloud} {self.instance.name}"),
        )


@remembered(1024)
def _device(instance: Instance) -> Device:
    return replace(find_device(instance.device), interconnect=instance.inner_link)


def offers(gpus: Sequence[int], *, clouds: Sequence[str] = (), devices: Sequence[str] = ()) -> tuple[Offer, ...]:
    """Everything in the catalogue with one of these numbers of GPUs, fewest GPUs first; no names mean all of them."""
    counts = sorted(set(gpus))
    if not counts or counts[0] < 1:
        raise BadInput(
            f"numbers of GPUs must be at least 1, such as 1,2,4,8; got {', '.join(map(str, gpus)) or 'none'}"
        )
    wanted_clouds, wanted_devices = _clouds(clouds), _devices(devices)
    boxes = [box for box in instances() if box.cloud in wanted_clouds]
    boxes = [box for box in boxes if not wanted_devices or box.device in wanted_devices]
    found = [Offer(box, count // box.gpus) for count in counts for box in boxes if count % box.gpus == 0]
    if not found:
        raise BadInput(_absent(counts, boxes, clouds, devices))
    return tuple(found)


def _clouds(names: Sequence[str]) -> set[str]:
    known = {box.cloud for box in instances()}
    for name in names:
        if name.casefold() not in known:
            raise UnknownName("cloud", name, known)
    return {name.casefold() for name in names} or known - PRIVATE


def _devices(names: Sequence[str]) -> set[str]:
    """A bare family name means all of its variants."""
    return {device.name for name in names for device in family(name) or (find_device(name),)}


def _absent(counts: Sequence[int], boxes: Sequence[Instance], clouds: Sequence[str], devices: Sequence[str]) -> str:
    where = f" at {', '.join(clouds)}" if clouds else ""
    what = f" of {', '.join(devices)}" if devices else ""
    sizes = sorted({box.gpus for box in boxes})
    asked = ", ".join(map(str, counts))
    offered = f"boxes have {', '.join(map(str, sizes))}" if sizes else "such boxes are not in `epochcast instances`"
    return f"no offer{what}{where} with {asked} GPUs: {offered}"
