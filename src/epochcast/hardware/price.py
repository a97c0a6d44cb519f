"""What an hour of a device costs, from the catalogue's instances.

Boxes are rented whole, and every node is one: its devices are joined as those of one box are. Where no box is large
enough for a node, it is as many of the largest as it takes. Prices are on-demand list prices of the day the row names;
an in-house box costs what its owner states. A device without an offer has no price: None, never zero.
"""

from math import ceil

from epochcast.base.caching import remembered
from epochcast.errors import BadInput
from epochcast.hardware.catalogue import devices, family, find_device
from epochcast.hardware.device import Device
from epochcast.hardware.instance import Instance
from epochcast.hardware.machines import State, instances, price_state

# Hosts of anybody, at what they ask at the moment, and auctions: their prices do not last, so they count only by name.
MARKETS = frozenset({"vast", "mithril"})
OWNED = frozenset({"in-house", "own"})


# A machine with less is sold for other work: four processors are the fewest per GPU that clouds sell for training
# (g4dn.xlarge, n1-standard-32 with eight K80s), and a checkpoint passes through the host's memory.
LEAST_CPUS_PER_GPU, LEAST_MEMORY_PART = 4, 0.5


def has_enough_host(machine: Instance) -> bool:
    """Whether a machine has four processors per GPU, and half of its GPUs' memory."""
    return (
        machine.cpus >= LEAST_CPUS_PER_GPU * machine.gpus
        and machine.host_memory_bytes >= LEAST_MEMORY_PART * machine.gpus * find_device(machine.device).memory_bytes
    )


def price_dollars_per_hour(device_name: str, gpus: int = 1, nodes: int = 1) -> tuple[float, Instance] | None:
    """The least dollars per hour for `gpus` of this device in whole boxes of one kind, and the box; None if unknown.
    They are shared out over `nodes`, as evenly as can be.

    A family name is priced as its default variant; only if that one has no offer, as any of its variants.
    """
    if gpus < 1:
        raise BadInput(f"gpus must be at least 1, got {gpus}")
    if not 1 <= nodes <= gpus:
        raise BadInput(f"nodes must be at least 1 and no more than the {gpus} GPUs, got {nodes}")
    return _least_dollars_per_hour(device_name, gpus, nodes, price_state())


@remembered(1024)
def _least_dollars_per_hour(device_name: str, gpus: int, nodes: int, _state: State) -> tuple[float, Instance] | None:
    canonical_name = find_device(device_name).name
    variants = {variant.name for variant in family(device_name)}
    return _cheapest({canonical_name}, gpus, nodes) or _cheapest(variants, gpus, nodes)


def listed_dollars_per_hour(device: Device, gpus: int = 1, nodes: int = 1) -> tuple[float, Instance] | None:
    """The same for a data sheet; one that is not the catalogue's has no price."""
    return price_dollars_per_hour(device.name, gpus, nodes) if device.name in _listed_names() else None


def usual_box(device: Device, gpus: int) -> Instance | None:
    """The machine whose host is the usual one for so many GPUs of a device: the middle one by processors per GPU."""
    return _usual_box(device.name, gpus, price_state())


@remembered(1024)
def _usual_box(device_name: str, gpus: int, _state: State) -> Instance | None:
    boxes = [box for box in instances() if box.device == device_name and box.cloud not in MARKETS]
    boxes = [box for box in boxes if box.cloud in OWNED or has_enough_host(box)]
    enough = min(gpus, max((box.gpus for box in boxes), default=0))
    fitting = sorted((box.cpus / box.gpus, box.cloud, box.name, box) for box in boxes if box.gpus >= enough)
    return fitting[len(fitting) // 2][-1] if fitting else None


@remembered(1)
def _listed_names() -> frozenset[str]:
    return frozenset(each.name for each in devices())


def _cheapest(device_names: set[str], gpus: int, nodes: int) -> tuple[float, Instance] | None:
    boxes = [box for box in instances() if box.device in device_names and box.cloud not in MARKETS]
    boxes = [box for box in boxes if box.cloud in OWNED or has_enough_host(box)]
    fullest = min(ceil(gpus / nodes), max((box.gpus for box in boxes), default=0))
    offers = [(_count(gpus, nodes, box.gpus) * box.dollars_per_hour, box) for box in boxes if box.gpus >= fullest]
    # To the cent: equal prices go to the larger box, where the devices sit closer together.
    return min(offers, key=lambda offer: (round(offer[0], 2), -offer[1].gpus, offer[1].name), default=None)


def _count(gpus: int, nodes: int, box_gpus: int) -> int:
    """Boxes of so many GPUs under `nodes`, some of which have one GPU more than the others."""
    least, fuller = divmod(gpus, nodes)
    return fuller * ceil((least + 1) / box_gpus) + (nodes - fuller) * ceil(least / box_gpus)
