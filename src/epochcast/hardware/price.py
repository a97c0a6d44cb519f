"""What an hour of a device costs, from the catalogue's instances.

Boxes are rented whole, and every node is one: its devices are joined as those of one box are. Where no box is large
enough for a node, it is as many of the largest as it takes. Prices are on-demand list prices of the day the row names;
an in-house box costs what its owner states. A device without an offer has no price: None, never zero.
"""

from math import ceil

from epochcast.caching import remembered
from epochcast.errors import BadInput
from epochcast.hardware.catalogue import devices, family, find_device, instances
from epochcast.hardware.device import Device
from epochcast.hardware.instance import Instance


@remembered(1024)
def price_dollars_per_hour(device_name: str, gpus: int = 1, nodes: int = 1) -> tuple[float, Instance] | None:
    """The least dollars per hour for `gpus` of this device in whole boxes of one kind, and the box; None if unknown.
    They are shared out over `nodes`, as evenly as can be.

    A family name is priced as its default variant; only if that one has no offer, as any of its variants.
    """
    if gpus < 1:
        raise BadInput(f"gpus must be at least 1, got {gpus}")
    if not 1 <= nodes <= gpus:
        raise BadInput(f"nodes must be at least 1 and no more than the {gpus} GPUs, got {nodes}")
    canonical_name = find_device(device_name).name
    variants = {variant.name for variant in family(device_name)}
    return _cheapest({canonical_name}, gpus, nodes) or _cheapest(variants, gpus, nodes)


@remembered(1024)
def listed_dollars_per_hour(device: Device, gpus: int = 1, nodes: int = 1) -> tuple[float, Instance] | None:
    """The same for a data sheet; one that is not the catalogue's has no price."""
    is_listed = device.name in {each.name for each in devices()}
    return price_dollars_per_hour(device.name, gpus, nodes) if is_listed else None


def _cheapest(device_names: set[str], gpus: int, nodes: int) -> tuple[float, Instance] | None:
    boxes = [instance for instance in instances() if instance.device in device_names]
    fullest = min(ceil(gpus / nodes), max((box.gpus for box in boxes), default=0))
    offers = [(_count(gpus, nodes, box.gpus) * box.dollars_per_hour, box) for box in boxes if box.gpus >= fullest]
    # To the cent: equal prices go to the larger box, where the devices sit closer together.
    return min(offers, key=lambda offer: (round(offer[0], 2), -offer[1].gpus, offer[1].name), default=None)


def _count(gpus: int, nodes: int, box_gpus: int) -> int:
    """Boxes of so many GPUs under `nodes`, some of which have one GPU more than the others."""
    least, fuller = divmod(gpus, nodes)
    return fuller * ceil((least + 1) / box_gpus) + (nodes - fuller) * ceil(least / box_gpus)
