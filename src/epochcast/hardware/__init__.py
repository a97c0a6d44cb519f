"""Devices, links, groups of ranks and instances: what data sheets and price lists say, before any measurement."""

from epochcast.hardware.catalogue import devices, find_device, find_link, links
from epochcast.hardware.cluster import Group
from epochcast.hardware.device import Device
from epochcast.hardware.host_device import detect_host
from epochcast.hardware.instance import Instance
from epochcast.hardware.link import Link
from epochcast.hardware.machines import find_instance, instances
from epochcast.hardware.price import price_dollars_per_hour

__all__ = [
    "Device",
    "Group",
    "Instance",
    "Link",
    "detect_host",
    "devices",
    "find_device",
    "find_instance",
    "find_link",
    "instances",
    "links",
    "price_dollars_per_hour",
]
