"""NCCL's protocols: the encoding of a message determines its latency and which fraction of the bandwidth is data.

LL sends every four bytes with a flag, which needs no fence and has low latency, but halves the rate. LL128 does so per
128 bytes and relies on NVLink keeping their order. Simple uses fences between large pieces. Small messages use LL,
large ones Simple.
"""

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from epochcast.caching import remembered
from epochcast.hardware.cluster import Group


@dataclass(frozen=True, slots=True)
class Protocol:
    """`start_seconds` once per collective, `hop_factor` of a link's latency per message, a fraction of its rate."""

    name: str
    start_seconds: float
    hop_factor: float
    bandwidth_fraction: float
    media: tuple[str, ...]
    source: str

    def runs_on(self, group: Group) -> bool:
        """Whether every link that the group uses supports it."""
        return all(link.medium in self.media for link in group.used_links)


@remembered(1)
def fitted() -> dict[str, Any]:
    """The tables of fitted.toml."""
    return tomllib.loads(files("epochcast.comm").joinpath("fitted.toml").read_text(encoding="utf-8"))


@remembered(1)
def protocols() -> tuple[Protocol, ...]:
    """Every protocol; the first runs everywhere."""
    return tuple(Protocol(**{**row, "media": tuple(row["media"])}) for row in fitted()["protocol"])
