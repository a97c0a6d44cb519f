"""A machine one can rent or own: which devices, how many, at what price per hour, joined by which links."""

import re
from dataclasses import dataclass
from math import isfinite

from epochcast.errors import BadInput


@dataclass(frozen=True, slots=True)
class Instance:
    """One box. `device`, `inner_link` and `outer_link` are names in the catalogue; `gpus` counts such devices."""

    name: str
    cloud: str
    device: str
    gpus: int
    dollars_per_hour: float
    cpus: int
    host_memory_bytes: int
    inner_link: str
    outer_link: str
    source: str
    priced_on: str
    verified: bool
    aliases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.name or not self.source:
            raise BadInput(f"an instance needs a name and a source, got {self.name!r} and {self.source!r}")
        if self.gpus < 1:
            raise BadInput(f"gpus must be at least 1, got {self.gpus}")
        if self.cpus < 1:
            raise BadInput(f"cpus must be at least 1, got {self.cpus}")
        if not (isfinite(self.dollars_per_hour) and 0 < self.dollars_per_hour < 10_000):
            raise BadInput(f"dollars_per_hour must be above 0 and below 10000, got {self.dollars_per_hour}")
        if self.host_memory_bytes < 2**28:
            raise BadInput(f"host_memory_bytes must be at least {2**28}, got {self.host_memory_bytes}")
        if not re.fullmatch(r"\d{4}(-\d{2}){0,2}", self.priced_on):
            raise BadInput(f"priced_on must be a date like 2023, 2023-05 or 2023-05-31, got {self.priced_on!r}")

    @property
    def dollars_per_gpu_hour(self) -> float:
        """The price of the box divided by its devices."""
        return self.dollars_per_hour / self.gpus
