"""Boxes by name: which devices a box has, how they are joined inside, and what leaves it.

`DGX A100`, `p4d.24xlarge`, `ND96asr_v4`: rows of topologies.toml. Its name stands for device and both links, so that
`--topology` says in a word what `--device` and `--link` say in pieces.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import ceil

from epochcast.errors import BadInput, UnknownName
from epochcast.hardware import rows
from epochcast.hardware.catalogue import find_device, find_link
from epochcast.hardware.names import plain

TOPOLOGIES_FILE = "topologies.toml"


@dataclass(frozen=True, slots=True)
class Topology:
    """One box. `device` and both links are names in the catalogue; the outer link is all network cards together."""

    name: str
    device: str
    gpus: int
    inner_link: str
    outer_link: str
    network_cards: int
    cpus: int
    source: str
    verified: bool
    aliases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for what in ("gpus", "network_cards", "cpus"):
            if getattr(self, what) < 1:
                raise BadInput(f"{what} must be at least 1, got {getattr(self, what)}")
        find_device(self.device)
        find_link(self.inner_link)
        find_link(self.outer_link)

    def boxes(self, gpus: int) -> int:
        """How many such boxes hold `gpus`."""
        return ceil(gpus / self.gpus)

    def check(self, gpus: int, nodes: int) -> None:
        """Refuse more GPUs than `nodes` such boxes have."""
        if gpus > nodes * self.gpus:
            raise BadInput(f"{nodes} × {self.name} have {nodes * self.gpus} GPUs, not {gpus}")


def find_topology(name: str) -> Topology:
    """The box called `name`."""
    try:
        return _topologies()[plain(name)]
    except KeyError:
        raise UnknownName("topology", name, {known.name for known in _topologies().values()}) from None


def topologies() -> tuple[Topology, ...]:
    """Every box of the catalogue."""
    return tuple(dict.fromkeys(_topologies().values()))


def load_topologies(text: str, file: str = TOPOLOGIES_FILE) -> Mapping[str, Topology]:
    """The boxes in a TOML text by plain name and alias."""
    found: dict[str, Topology] = {}
    for box in rows.read(rows.parse(text, file), "topology", file, _topology):
        for name in (box.name, *box.aliases):
            other = found.setdefault(plain(name), box)
            if other is not box:
                raise BadInput(f"{file}: {name!r} names both {other.name!r} and {box.name!r}")
    return found


@cache
def _topologies() -> Mapping[str, Topology]:
    return load_topologies(rows.shipped(TOPOLOGIES_FILE))


def _topology(row: rows.Row) -> Topology:
    return Topology(
        name=row.text("name"),
        device=row.text("device"),
        gpus=row.count("gpus"),
        inner_link=row.text("inner_link"),
        outer_link=row.text("outer_link"),
        network_cards=row.count("network_cards"),
        cpus=row.count("cpus"),
        source=row.text("source"),
        verified=row.flag("verified"),
        aliases=row.texts("aliases"),
    )
