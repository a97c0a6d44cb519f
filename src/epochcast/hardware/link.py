"""One hop between two endpoints, after Hockney (1994), "The communication challenge for MPP": T(n) = α + n/B.

Bandwidths in the catalogue are nominal: what the wire carries in one direction after line coding, before protocol.
`sustained_fraction` is the share of it that large messages of a collective were measured to reach, and B above is the
sustained rate. `medium` says what kind of wire it is, which decides which of NCCL's protocols it takes
(`predict.comm.protocol`); `pair_fraction` is the fraction of the sustained rate that two boxes alone reach, and
`crowding` is the c in B/(1 + c√p), by which the slowest flow slows down with the number of ranks, as the largest of p
draws from a heavy-tailed distribution does. `rank_fractions` says what fewer ranks of a box get of the sustained rate:
in a mesh without switches two GPUs are joined by some of their links only, and two cards under one root do not cross
sockets.
`sums_in_switch` is NVLink SHARP. `host_factor` is the factor, either way, within which the rate is on 90 % of
hosts: what goes through a host's memory depends on its sockets and switches, which nobody names.
"""

from dataclasses import dataclass, replace
from math import isfinite

from epochcast.base.caching import remembered
from epochcast.errors import BadInput, UnknownName
from epochcast.units import parse_rate, parse_seconds

MEDIA = ("", "pcie", "nvlink", "rdma", "tcp", "fabric", "memory", "xgmi")
"""Kinds of wires; the empty one is a link given by latency and bandwidth only."""


@dataclass(frozen=True, slots=True)
class Link:
    """One hop between two endpoints, in one direction."""

    latency_seconds: float
    bandwidth_bytes_per_second: float
    name: str = ""
    source: str = ""
    verified: bool = False
    aliases: tuple[str, ...] = ()
    sustained_fraction: float = 1.0
    medium: str = ""
    pair_fraction: float = 1.0
    crowding: float = 0.0
    rank_fractions: tuple[tuple[int, float], ...] = ()
    sums_in_switch: bool = False
    host_factor: float = 1.0

    def __post_init__(self) -> None:
        if not (isfinite(self.latency_seconds) and self.latency_seconds >= 0):
            raise BadInput(f"latency_seconds must be at least 0, got {self.latency_seconds}")
        if not (isfinite(self.bandwidth_bytes_per_second) and self.bandwidth_bytes_per_second > 0):
            raise BadInput(f"bandwidth_bytes_per_second must be above 0, got {self.bandwidth_bytes_per_second}")
        if not 0 < self.sustained_fraction <= 1:
            raise BadInput(f"sustained_fraction must be above 0 and at most 1, got {self.sustained_fraction}")
        if not 0 < self.pair_fraction <= 1:
            raise BadInput(f"pair_fraction must be above 0 and at most 1, got {self.pair_fraction}")
        if not 0 <= self.crowding < 1:
            raise BadInput(f"crowding must be at least 0 and below 1, got {self.crowding}")
        if any(not (ranks > 0 and fraction > 0) for ranks, fraction in self.rank_fractions):
            raise BadInput(f"rank_fractions must be above 0, got {self.rank_fractions}")
        if not (isfinite(self.host_factor) and self.host_factor >= 1):
            raise BadInput(f"host_factor must be at least 1, got {self.host_factor}")
        if self.medium not in MEDIA:
            raise UnknownName("medium of a link", self.medium, MEDIA)

    @property
    def sustained_bytes_per_second(self) -> float:
        """What large messages reach."""
        return self.bandwidth_bytes_per_second * self.sustained_fraction

    def among(self, ranks: int) -> "Link":
        """The link as so many ranks of a box have it."""
        fraction = dict(self.rank_fractions).get(ranks, 1.0)
        return self if fraction == 1 else _slowed(self, fraction)

    def at_rate(self, factor: float) -> "Link":
        """The link at so many times its sustained rate, at most what the wire carries."""
        return replace(self, sustained_fraction=min(1.0, self.sustained_fraction * factor))

    def seconds(self, size_bytes: float) -> float:
        """Time for one message: T(n) = α + n/B."""
        return self.latency_seconds + size_bytes / self.sustained_bytes_per_second


@remembered(256)
def _slowed(link: Link, fraction: float) -> Link:
    return replace(link, sustained_fraction=min(1.0, link.sustained_fraction * fraction), rank_fractions=())


def to_text(link: Link) -> str:
    """Latency and sustained bandwidth as one word that `from_text` reads: 4.1e-05s+2.3e+09B/s."""
    return f"{link.latency_seconds:.6g}s+{link.sustained_bytes_per_second:.6g}B/s"


def from_text(text: str) -> Link | None:
    """The link that a text such as 40us+2.5GB/s describes; None if it is not such a text."""
    latency, plus, bandwidth = text.replace(" ", "").rpartition("s+")
    if not plus or not bandwidth.endswith("B/s"):
        return None
    return Link(parse_seconds(f"{latency}s"), parse_rate(bandwidth), name=text, source="given")
