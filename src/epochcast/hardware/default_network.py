"""The network between machines of a device where nobody names one: that which such machines are sold with.

Rows of networks.toml, in order: boards that are sold in one machine, then generations of NVLink and other fabrics,
then cards on PCI Express by kind and year. Every device gets an answer, new ones by their generation.

Where machines of one size are not the rule (trays of a rack, superchips), every GPU has a network card of its own, and
a rack's fabric joins its trays.
"""

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from epochcast.base import catalogue_rows as rows
from epochcast.base.caching import remembered
from epochcast.errors import BadInput
from epochcast.hardware.catalogue import find_link
from epochcast.hardware.device import Device
from epochcast.hardware.link import Link
from epochcast.hardware.topology import find_topology

NETWORKS_FILE = "networks.toml"


@dataclass(frozen=True, slots=True)
class AssumedNetwork:
    """The link of one machine; `description` completes "the network of …"."""

    link: Link
    description: str


@dataclass(frozen=True, slots=True)
class NetworkRule:
    """Which devices a row is for (empty means any), and what it gives: a box, a link (of each GPU where it is
    `per_gpu`), or the device's own link. Up to `fabric_gpus` are joined by the device's own link in any case.
    """

    name: str
    description: str
    source: str
    box: str = ""
    link: str = ""
    own_link: bool = False
    per_gpu: bool = False
    fabric_gpus: int = 0
    devices: tuple[str, ...] = ()
    not_devices: tuple[str, ...] = ()
    interconnects: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    from_year: int = 0

    def __post_init__(self) -> None:
        if [bool(self.box), bool(self.link), self.own_link].count(True) != 1:
            raise BadInput("a network is one of `box`, `link` and `own_link`")
        if self.link:
            find_link(self.link)
        if self.box:
            find_topology(self.box)

    def matches(self, device: Device) -> bool:
        """Whether it is for this device."""
        return (
            (not self.devices or _is_like(device.name, self.devices))
            and not _is_like(device.name, self.not_devices)
            and (not self.interconnects or _is_like(device.interconnect, self.interconnects))
            and (not self.kinds or device.kind in self.kinds)
            and device.year >= self.from_year
        )

    def network(self, device: Device, gpus: int, nodes: int) -> AssumedNetwork:
        """What it gives for GPUs of a device that it matches."""
        if self.own_link:
            return AssumedNetwork(find_link(device.interconnect), self.description)
        if gpus <= self.fabric_gpus:
            fabric = _of_each(find_link(device.interconnect), gpus // nodes)
            return AssumedNetwork(fabric, f"{self.description}, inside which NVLink joins the nodes")
        link = find_link(find_topology(self.box).outer_link if self.box else self.link)
        return AssumedNetwork(_of_each(link, gpus // nodes) if self.per_gpu else link, self.description)


@remembered(1024)
def usual_network(device: Device, gpus: int, nodes: int) -> AssumedNetwork:
    """What joins `nodes` machines of a device, with `gpus` in all, as they are sold."""
    return next(rule for rule in _rules() if rule.matches(device)).network(device, gpus, nodes)


def joins_nodes(device: Device) -> bool:
    """Whether the device's own fabric goes on between machines."""
    return next(rule for rule in _rules() if rule.matches(device)).own_link


def load_networks(text: str, file: str = NETWORKS_FILE) -> tuple[NetworkRule, ...]:
    """The rows of a TOML text; the last one must be for every device."""
    rules = tuple(rows.read(rows.parse(text, file), "network", file, _rule))
    last = rules[-1] if rules else None
    if last is None or last.devices or last.not_devices or last.interconnects or last.kinds or last.from_year:
        raise BadInput(f"{file}: the last row must be for every device")
    return rules


@remembered(1)
def _rules() -> tuple[NetworkRule, ...]:
    return load_networks(rows.shipped(NETWORKS_FILE, __file__))


def _of_each(link: Link, gpus: int) -> Link:
    """The links of all GPUs of a machine together."""
    if gpus == 1:
        return link
    rate = gpus * link.bandwidth_bytes_per_second
    return replace(link, bandwidth_bytes_per_second=rate, name=f"{gpus}x {link.name}", aliases=())


def _is_like(name: str, patterns: tuple[str, ...]) -> bool:
    """Capitals do not count."""
    return any(fnmatchcase(name.casefold(), pattern.casefold()) for pattern in patterns)


def _rule(row: rows.CatalogueRow) -> NetworkRule:
    return NetworkRule(
        name=row.text("name"),
        description=row.text("description"),
        source=row.text("source"),
        box=row.text("box", ""),
        link=row.text("link", ""),
        own_link=row.flag("own_link", False),
        per_gpu=row.flag("per_gpu", False),
        fabric_gpus=row.count("fabric_gpus") if row.has("fabric_gpus") else 0,
        devices=row.texts("devices"),
        not_devices=row.texts("not_devices"),
        interconnects=row.texts("interconnects"),
        kinds=row.texts("kinds"),
        from_year=row.count("from_year") if row.has("from_year") else 0,
    )
