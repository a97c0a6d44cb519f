"""Devices, links, groups of ranks, data sets and instances: what data sheets and price lists say, before any
measurement.
"""

from epochcast.hardware.catalogue import datasets, devices, find_dataset, find_device, find_link, links
from epochcast.hardware.cluster import Group
from epochcast.hardware.dataset import Dataset
from epochcast.hardware.device import Device
from epochcast.hardware.host_device import detect_host
from epochcast.hardware.instance import Instance
from epochcast.hardware.link import Link
from epochcast.hardware.machines import find_instance, instances
from epochcast.hardware.price import price_dollars_per_hour

__all__ = [
    "Dataset",
    "Device",
    "Group",
    "Instance",
    "Link",
    "datasets",
    "detect_host",
    "devices",
    "find_dataset",
    "find_device",
    "find_instance",
    "find_link",
    "instances",
    "links",
    "price_dollars_per_hour",
]
