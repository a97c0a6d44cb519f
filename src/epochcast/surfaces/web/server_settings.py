"""How a server is run: where it listens, what it keeps, and how much anybody may ask of it."""

from dataclasses import dataclass, field, fields
from ipaddress import ip_address
from pathlib import Path

from epochcast.errors import BadInput
from epochcast.units import parse_bytes

PORT = 8642
"""Of those that need no rights; `--port` takes another."""


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """What one request may ask for. Generous for people and scripts; a wrong or hostile one ends early."""

    request_bytes: int = int(parse_bytes("4 MiB"))
    upload_bytes: int = int(parse_bytes("64 MiB"))
    upload_seconds: float = 30.0
    uploads_bytes: int = int(parse_bytes("1 GiB"))
    """Of one project together."""
    uploads_kept_seconds: float = 30 * 86_400.0
    """Since an upload was last asked about."""
    parsers: int = 2
    """Processes that read uploads."""
    header_seconds: float = 10.0
    """Until the head of a request is there."""
    body_part_seconds: float = 10.0
    body_seconds: float = 120.0
    answer_seconds: float = 30.0
    plan_seconds: float = 120.0
    worker_bytes: int = int(parse_bytes("8 GiB"))
    observations: int = 10_000
    requests_per_second: float = 2_000.0
    burst_requests: int = 4_000
    streams: int = 200

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if limit.type is int and value < 1:
                raise BadInput(f"{limit.name} must be at least 1, got {value}")
            if not value > 0:
                raise BadInput(f"{limit.name} must be above 0, got {value}")


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """One server. `needs_token`: nobody gets in without one; by default only whoever comes over loopback does.

    `folder` holds uploaded model files; `workers` are the processes that answer. `public_names` are further names under
    which browsers may call the server, such as that of a proxy in front of it.
    """

    folder: Path
    database: str | None = None
    host: str = "127.0.0.1"
    port: int = PORT
    needs_token: bool = True
    workers: int = 2
    public_names: tuple[str, ...] = ()
    webhooks: tuple[str, ...] = ()
    is_demo: bool = False
    limits: RequestLimits = field(default_factory=RequestLimits)

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise BadInput(f"a port is from 0 to 65535, got {self.port}")
        if self.workers < 1:
            raise BadInput(f"a server needs at least one worker, got {self.workers}")
        if not self.needs_token and not is_loopback(self.host):
            raise BadInput(f"{self.host} can be reached from other machines: a server there needs a token")

    @property
    def names(self) -> frozenset[str]:
        """Names under which it may be called; a page of another site that resolves to this address is refused."""
        names = {"localhost", "127.0.0.1", "[::1]", self.host, *self.public_names}
        return frozenset(name.casefold() for name in names)

    @property
    def is_open_to_any_name(self) -> bool:
        """Behind a token and reachable from elsewhere, a server is called by names that it does not know."""
        return self.needs_token and not is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host.casefold() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
