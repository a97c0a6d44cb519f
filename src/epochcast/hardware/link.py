"""One hop between two endpoints, after Hockney (1994), "The communication challenge for MPP": T(n) = α + n/B.

Bandwidths in the catalogue are nominal: what the wire carries in one direction after line coding, before protocol.
How much of it a collective sustains is measured elsewhere.
"""

from dataclasses import dataclass
from math import isfinite

from epochcast.errors import BadInput


@dataclass(frozen=True, slots=True)
class Link:
    """One hop between two endpoints, in one direction."""

    latency_seconds: float
    bandwidth_bytes_per_second: float
    name: str = ""
    source: str = ""
    verified: bool = False
    aliases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (isfinite(self.latency_seconds) and self.latency_seconds >= 0):
            raise BadInput(f"latency_seconds must be at least 0, got {self.latency_seconds}")
        if not (isfinite(self.bandwidth_bytes_per_second) and self.bandwidth_bytes_per_second > 0):
            raise BadInput(f"bandwidth_bytes_per_second must be above 0, got {self.bandwidth_bytes_per_second}")

    def seconds(self, size_bytes: float) -> float:
        """Time for one message: T(n) = α + n/B."""
        return self.latency_seconds + size_bytes / self.bandwidth_bytes_per_second
