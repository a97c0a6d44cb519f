"""NCCL's protocols: the encoding of a message determines its latency and which fraction of the bandwidth is data.

LL sends every four bytes with a flag, which needs no fence and has low latency, but halves the rate. LL128 does so per
128 bytes and relies on NVLink keeping their order. Simple uses fences between large pieces. Small messages use LL,
large ones Simple. On a wire a protocol is a line α + n/B; a collective takes the lowest of its lines, and over several
kinds of wires each message has the line of its wire, so that a wire more never makes it faster.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from epochcast.base.caching import remembered
from epochcast.hardware.cluster import Group
from epochcast.hardware.link import Link


@dataclass(frozen=True, slots=True)
class ProtocolLine:
    """`start_seconds` once per collective, `hop_factor` of a link's latency per message, a fraction of its rate."""

    start_seconds: float
    hop_factor: float
    bandwidth_fraction: float

    def hop_seconds(self, link: Link) -> float:
        """Latency of one message."""
        return self.hop_factor * link.latency_seconds

    def bytes_per_second(self, link: Link) -> float:
        """What is left for data."""
        return self.bandwidth_fraction * link.sustained_bytes_per_second


@dataclass(frozen=True)
class Protocol:
    """The lines of a protocol by kind of wire (`Link.medium`)."""

    name: str
    lines: Mapping[str, ProtocolLine]

    def runs_on(self, group: Group) -> bool:
        """Whether every link that the group uses supports it."""
        return all(link.medium in self.lines for link in group.used_links)

    def start_seconds(self, group: Group) -> float:
        """Of the wire that takes longest to begin."""
        return max(self.lines[link.medium].start_seconds for link in group.used_links)

    def hop_seconds(self, link: Link) -> float:
        """Latency of one message over a link."""
        return self.lines[link.medium].hop_seconds(link)

    def bytes_per_second(self, link: Link) -> float:
        """What is left of a link for data."""
        return self.lines[link.medium].bytes_per_second(link)


@dataclass(frozen=True)
class Tuning:
    """The constants of NCCL's collectives, from fitted.toml.

    `own_fractions`: a rank also copies its own part, at that fraction of the seconds of a part that comes by wire; on
    kinds of wires that are not named copies hide behind it.
    `switch_line` is a sum made in the switch, whose hops are doublings of the ranks and whose rate is of the bytes.
    """

    protocols: tuple[Protocol, ...]
    pairwise: tuple[Protocol, ...]
    own_fractions: Mapping[str, float]
    switch_line: ProtocolLine
    tree_fraction: float


@remembered(1)
def fitted() -> dict[str, Any]:
    """The tables of fitted.toml."""
    return tomllib.loads(files("epochcast.predict.comm").joinpath("fitted.toml").read_text(encoding="utf-8"))


@remembered(1)
def tuning() -> Tuning:
    """The shipped constants; the first protocol of each kind runs everywhere."""
    tables = fitted()
    return Tuning(
        protocols=_protocols(tables["protocol"]),
        pairwise=_protocols(tables["pairwise"]),
        own_fractions=tables["own_part"]["fraction"],
        switch_line=_line(tables["switch_sum"]),
        tree_fraction=float(tables["double_tree"]["bandwidth_fraction"]),
    )


def _protocols(rows: Iterable[Mapping[str, Any]]) -> tuple[Protocol, ...]:
    lines: dict[str, dict[str, ProtocolLine]] = {}
    for row in rows:
        lines.setdefault(row["name"], {}).update(dict.fromkeys(row["media"], _line(row)))
    return tuple(Protocol(name, by_medium) for name, by_medium in lines.items())


def _line(row: Mapping[str, Any]) -> ProtocolLine:
    return ProtocolLine(float(row["start_seconds"]), float(row["hop_factor"]), float(row["bandwidth_fraction"]))
