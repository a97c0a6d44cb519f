"""What a price list does not say of a machine: its board, its links, and what is no offer at all (machines.toml)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeVar

from epochcast.base import catalogue_rows as rows
from epochcast.base.caching import remembered
from epochcast.errors import EpochcastError, UnknownDevice
from epochcast.hardware.catalogue import find_device, find_link
from epochcast.hardware.topology import known_topology

MACHINES_FILE = "machines.toml"
SAME_NAME = "*"


@dataclass(frozen=True, slots=True)
class InstancePattern:
    """Which machines a row is for; empty means any."""

    cloud: str = ""
    instances: tuple[str, ...] = ()
    accelerators: tuple[str, ...] = ()

    def matches(self, cloud: str, instance: str, accelerator: str) -> bool:
        """Whether it is for this machine; capitals do not count in names of machines."""
        return (
            self.cloud in ("", cloud)
            and (not self.instances or _is_like(instance, self.instances))
            and (not self.accelerators or _is_like(accelerator, self.accelerators))
        )


@dataclass(frozen=True, slots=True)
class Board:
    """The device of a machine, and what joins its GPUs; `gpus` where the list counts them wrongly."""

    pattern: InstancePattern
    device: str
    inner_link: str = ""
    gpus: int | None = None
    is_assumed: bool = False


@dataclass(frozen=True, slots=True)
class Skip:
    """Machines that are no offer, and why."""

    pattern: InstancePattern
    reason: str


@dataclass(frozen=True, slots=True)
class MachineNetwork:
    """What joins machines."""

    pattern: InstancePattern
    link: str


@dataclass(frozen=True, slots=True)
class Joined:
    """Hosts whose accelerators are priced apart, with the number of them."""

    cloud: str
    accelerator: str
    instances: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class MachineRules:
    """The rows of machines.toml."""

    skips: tuple[Skip, ...]
    boards: tuple[Board, ...]
    networks: tuple[MachineNetwork, ...]
    joined: tuple[Joined, ...]
    regions: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Built:
    """What a machine is made of, by names of the catalogue."""

    device: str
    inner_link: str
    outer_link: str
    gpus: int | None
    is_assumed: bool


def built_of(cloud: str, instance: str, accelerator: str) -> Built | str:
    """What a machine of a price list is made of, or the reason why it is no offer."""
    rules = machine_rules()
    machine = cloud, instance, accelerator
    skip = _first(rules.skips, *machine)
    if skip is not None:
        return skip.reason
    board = _first(rules.boards, *machine)
    if board is None:
        return f"no data sheet of {accelerator!r}"
    try:
        device = find_device(accelerator if board.device == SAME_NAME else board.device)
    except EpochcastError as error:
        return str(error)
    network = _first(rules.networks, *machine)
    topology = known_topology(instance)
    if topology is not None and topology.device == device.name:
        outer = topology.outer_link
    else:
        outer = "" if network is None else network.link
    return Built(device.name, board.inner_link or device.interconnect, outer, board.gpus, board.is_assumed)


def region_patterns(names: Sequence[str]) -> tuple[str, ...]:
    """Patterns of the regions that names mean: those of a group ("europe"), else the name and what begins with it."""
    groups = machine_rules().regions
    return tuple(
        pattern for name in names for pattern in groups.get(name.casefold(), (name.casefold(), f"{name.casefold()}-*"))
    )


def is_region(region: str, patterns: Sequence[str]) -> bool:
    """Whether a region is one of those asked for."""
    return any(fnmatchcase(region.casefold(), pattern) for pattern in patterns)


@remembered(1)
def machine_rules() -> MachineRules:
    """The shipped rows."""
    return load_rules(rows.shipped(MACHINES_FILE, __file__))


def load_rules(text: str, file: str = MACHINES_FILE) -> MachineRules:
    """The rows of a TOML text, checked."""
    document = rows.parse(text, file)
    regions = rows.section(document, "regions", file)
    return MachineRules(
        tuple(rows.read(document, "skip", file, _skip)),
        tuple(rows.read(document, "board", file, _board)),
        tuple(rows.read(document, "network", file, _network)),
        tuple(rows.read(document, "joined", file, _joined)),
        {name: rows.texts_in(patterns, f"{file}, [regions] {name}") for name, patterns in regions.items()},
    )


_Rule = TypeVar("_Rule", Skip, Board, MachineNetwork)


def _first(rules: Sequence[_Rule], cloud: str, instance: str, accelerator: str) -> _Rule | None:
    return next((rule for rule in rules if rule.pattern.matches(cloud, instance, accelerator)), None)


def _pattern(row: rows.CatalogueRow) -> InstancePattern:
    row.text("source")
    return InstancePattern(row.text("cloud", ""), row.texts("instances"), row.texts("accelerators"))


def _skip(row: rows.CatalogueRow) -> Skip:
    return Skip(_pattern(row), row.text("reason"))


def _board(row: rows.CatalogueRow) -> Board:
    device, link = row.text("device"), row.text("inner_link", "")
    if device != SAME_NAME and find_device(device).name != device:
        raise UnknownDevice(device, ())
    if link:
        find_link(link)
    gpus = row.count("gpus") if row.has("gpus") else None
    return Board(_pattern(row), device, link, gpus, row.flag("is_assumed", False))


def _network(row: rows.CatalogueRow) -> MachineNetwork:
    row.flag("verified")
    return MachineNetwork(_pattern(row), find_link(row.text("link")).name)


def _joined(row: rows.CatalogueRow) -> Joined:
    row.text("source")
    return Joined(row.text("cloud"), row.text("accelerator"), row.numbers("instances"))


def _is_like(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name.casefold(), pattern.casefold()) for pattern in patterns)
