"""Boxes by name: which devices a box has, how they are joined inside, and what leaves it.

`DGX A100`, `p4d.24xlarge`, `ND96asr_v4`: rows of topologies.toml. The name of a box stands for its device and
its links. A box may have parts (switches, quads, sockets,
trays): then the inner link joins the GPUs of the smallest part, and each entry of `parts` is the link between parts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, prod

from epochcast.base import catalogue_rows as rows
from epochcast.base.caching import remembered
from epochcast.base.name_matching import plain
from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.catalogue import find_device, find_link
from epochcast.hardware.cluster import Level
from epochcast.hardware.link import Link

TOPOLOGIES_FILE = "topologies.toml"
# The default if neither a box nor a number is given: most boxes in data centres.
GPUS_PER_NODE = 8


@dataclass(frozen=True, slots=True)
class Part:
    """`count` of what is called `name` (a quad, a socket) are joined by `link`: one for each of them, which its GPUs
    share (`is_shared`), or one for each GPU.
    """

    name: str
    count: int
    link: str
    is_shared: bool = True

    def __post_init__(self) -> None:
        if self.count < 2:
            raise BadInput(f"a box has at least 2 of each of its parts, got {self.count} of {self.name!r}")
        find_link(self.link)


@dataclass(frozen=True, slots=True)
class Topology:
    """One box. `device` and links are names in the catalogue; the outer link is all network cards together. `parts` are
    named from the smallest to the largest.
    """

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
    parts: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        for name in ("gpus", "network_cards", "cpus"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} must be at least 1, got {getattr(self, name)}")
        find_device(self.device)
        find_link(self.inner_link)
        find_link(self.outer_link)
        if self.gpus % prod(part.count for part in self.parts):
            raise BadInput(f"{self.gpus} GPUs cannot be divided evenly over the parts of a box")

    @property
    def part_gpus(self) -> int:
        """GPUs of the smallest part: all of the box where it has none."""
        return self.gpus // prod(part.count for part in self.parts)

    @property
    def levels(self) -> tuple[tuple[str, int | None, str], ...]:
        """(what, how many, joined by which link) from the GPUs outwards; the number of boxes is not limited."""
        inside = ((part.name, part.count, part.link) for part in self.parts)
        return ("GPU", self.part_gpus, self.inner_link), *inside, ("box", None, self.outer_link)

    def boxes(self, gpus: int) -> int:
        """How many such boxes hold `gpus`."""
        return ceil(gpus / self.gpus)

    def check(self, gpus: int, nodes: int) -> None:
        """Refuse more GPUs than `nodes` such boxes have."""
        if gpus > nodes * self.gpus:
            raise BadInput(f"{nodes} × {self.name} have {nodes * self.gpus} GPUs, not {gpus}")

    def inside(self, gpus: int) -> tuple[Link, tuple[Level, ...]]:
        """What joins `gpus` of a box: the link between GPUs, and the levels above it.

        They use as few parts as possible, evenly; if they cannot be divided evenly, all count as joined by the slowest
        link between them.
        """
        links, levels = [find_link(self.inner_link)], []
        needed = ceil(gpus / self.part_gpus)
        is_even = gpus % needed == 0
        for part in self.parts:
            if needed == 1:
                break
            link, above = find_link(part.link), ceil(needed / part.count)
            if not part.is_shared:
                part_bytes_per_second = link.bandwidth_bytes_per_second * (gpus // needed)
                link = replace(link, bandwidth_bytes_per_second=part_bytes_per_second)
            links.append(link)
            levels.append(Level(ceil(needed / above), link))
            is_even = is_even and needed % above == 0
            needed = above
        if is_even:
            return links[0], tuple(levels)
        return min(links, key=lambda link: link.sustained_bytes_per_second), ()


def find_topology(name: str) -> Topology:
    """The box called `name`."""
    box = known_topology(name)
    if box is None:
        raise UnknownName("topology", name, {box.name for box in _topologies().values()})
    return box


def known_topology(name: str) -> Topology | None:
    """The box called `name`, None where there is none."""
    return _topologies().get(plain(name))


def topologies() -> tuple[Topology, ...]:
    """Every box of the catalogue."""
    return tuple(dict.fromkeys(_topologies().values()))


@remembered(256)
def largest_box(device: str) -> int:
    """The most GPUs of a device that a box of the catalogue has; those of most boxes where none has it."""
    return max((box.gpus for box in topologies() if find_device(box.device).name == device), default=GPUS_PER_NODE)


def load_topologies(text: str, file: str = TOPOLOGIES_FILE) -> Mapping[str, Topology]:
    """The boxes in a TOML text by plain name and alias."""
    return rows.index_by_name(rows.read(rows.parse(text, file), "topology", file, _topology), file)


@remembered(1)
def _topologies() -> Mapping[str, Topology]:
    return load_topologies(rows.shipped(TOPOLOGIES_FILE, __file__))


def _topology(row: rows.CatalogueRow) -> Topology:
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
        parts=row.tables("parts", _part),
    )


def _part(row: rows.CatalogueRow) -> Part:
    return Part(
        name=row.text("name"), count=row.count("count"), link=row.text("link"), is_shared=row.flag("is_shared", True)
    )
