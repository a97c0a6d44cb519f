"""What an hour of a device costs, from the catalogue's instances.

Boxes are rented whole: g devices on boxes of b cost ⌈g/b⌉ boxes. Prices are on-demand list prices of the day the row
names; an in-house box costs what its owner states. A device without an offer has no price: None, never zero.
"""

from math import ceil

from epochcast.caching import remembered
from epochcast.errors import BadInput
from epochcast.hardware.catalogue import devices, family, find_device, instances
from epochcast.hardware.device import Device
from epochcast.hardware.instance import Instance


@remembered(1024)
def price_dollars_per_hour(device_name: str, gpus: int = 1) -> tuple[float, Instance] | None:
    """The least dollars per hour for `gpus` of this device in whole boxes of one kind, and the box; None if unknown.

    A family name is priced as its default variant; only if that one has no offer, as any of its variants.
    """
    if gpus < 1:
        raise BadInput(f"gpus must be at least 1, got {gpus}")
    canonical_name = find_device(device_name).name
    variants = {variant.name for variant in family(device_name)}
    return _cheapest({canonical_name}, gpus) or _cheapest(variants, gpus)


@remembered(1024)
def listed_dollars_per_hour(device: Device, gpus: int = 1) -> tuple[float, Instance] | None:
    """The same for a data sheet; one that is not the catalogue's has no price."""
    return price_dollars_per_hour(device.name, gpus) if device.name in {each.name for each in devices()} else None


def _cheapest(device_names: set[str], gpus: int) -> tuple[float, Instance] | None:
    offers = [
        (ceil(gpus / instance.gpus) * instance.dollars_per_hour, instance)
        for instance in instances()
        if instance.device in device_names
    ]
    # To the cent: equal prices go to the larger box, where the devices sit closer together.
    return min(offers, key=lambda offer: (round(offer[0], 2), -offer[1].gpus, offer[1].name), default=None)
