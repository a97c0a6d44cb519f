"""gpuhunt's catalogue of cloud prices (github.com/dstackai/gpuhunt) as listings.

The library downloads the catalogue that its project publishes, one file per provider with a version that begins with
the day. A row is a machine in a region, on demand or as spot; both become one listing. Its files have the same
columns and are read without the library. Names of accelerators become those of `machines.toml`: "A100" with 80 GB is
"A100-80GB".
"""

import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from math import isfinite
from typing import Any

from epochcast.errors import BadInput, MissingExtra
from epochcast.hardware.skypilot_catalogue import Listing

GPUHUNT_SOURCE = "github.com/dstackai/gpuhunt"
GPUHUNT_COLUMNS = (
    *("instance_name", "location", "price", "cpu", "memory", "gpu_count", "gpu_name", "gpu_memory", "spot"),
)
# Providers whose name in epochcast is another.
_CLOUDS: Mapping[str, str] = {"lambdalabs": "lambda", "vastai": "vast", "digitalocean": "do"}
GIBIBYTE = 2**30
# Families with several sizes, in which SkyPilot's lists write the larger one into the name.
_LARGER: Mapping[str, float] = {"A100": 80, "V100": 32}


@dataclass(frozen=True, slots=True)
class HuntedItem:
    """A row of the catalogue."""

    provider: str
    instance_name: str
    location: str
    dollars_per_hour: float
    cpus: float
    host_memory_bytes: int
    gpu_count: float
    gpu_name: str
    gpu_memory_bytes: int
    spot: bool


def published_items(today: str) -> tuple[tuple[HuntedItem, ...], Mapping[str, str]]:
    """The rows that gpuhunt's project publishes, and the day of each provider's version (today where it names none)."""
    try:
        from gpuhunt import Catalog, GPUHuntError
    except ImportError:
        raise MissingExtra("prices", "gpuhunt") from None
    catalog = Catalog(auto_reload=False)
    try:
        catalog.load()
    except (GPUHuntError, OSError) as error:
        reason = error.__cause__ or error
        raise BadInput(f"gpuhunt's catalogue cannot be downloaded: {reason}; prices stay as they are") from None
    days = {provider: _day(loaded.version, today) for provider, loaded in catalog.catalog.items()}
    items = (_item(item) for loaded in catalog.catalog.values() for item in loaded.items if item.gpu_count)
    return tuple(items), days


def read_items(text: str, file: str, provider: str) -> Iterator[HuntedItem]:
    """The rows of a file of the catalogue; errors name file and line."""
    table = csv.DictReader(StringIO(text), strict=True)
    try:
        for row in table:
            where = f"{file}, line {table.line_num}"
            if None in row or None in row.values():
                raise BadInput(f"{where}: the row and the header differ in their number of cells")
            if _number(row, "gpu_count", where):
                yield _read_item(row, provider, where)
    except csv.Error as error:
        raise BadInput(f"{file}, line {table.line_num}: {error}") from None


def hunted_listings(items: Iterable[HuntedItem], days: Mapping[str, str]) -> Iterator[Listing]:
    """A listing per machine and region, with its price on demand and as spot."""
    together: dict[tuple[str, str, str], list[HuntedItem]] = defaultdict(list)
    for item in items:
        together[item.provider, item.instance_name, item.location].append(item)
    for (provider, name, location), rows in together.items():
        first = rows[0]
        yield Listing(
            cloud=_CLOUDS.get(provider, provider),
            instance=name,
            accelerator=_accelerator(first),
            accelerators=first.gpu_count,
            region=location,
            dollars_per_hour=_least(rows, spot=False),
            spot_dollars_per_hour=_least(rows, spot=True),
            cpus=first.cpus,
            host_memory_bytes=first.host_memory_bytes,
            read_on=days[provider],
        )


def _least(rows: Iterable[HuntedItem], *, spot: bool) -> float | None:
    """The least price; 0 is none."""
    return min((row.dollars_per_hour for row in rows if row.spot is spot and row.dollars_per_hour > 0), default=None)


def _accelerator(item: HuntedItem) -> str:
    larger = _LARGER.get(item.gpu_name)
    is_larger = larger is not None and item.gpu_memory_bytes >= larger * GIBIBYTE
    return f"{item.gpu_name}-{larger:g}GB" if is_larger else item.gpu_name


def _item(item: Any) -> HuntedItem:
    """The row of an object of the library."""
    return HuntedItem(
        *(item.provider, item.instance_name, item.location, float(item.price), float(item.cpu)),
        *(round(item.memory * GIBIBYTE), float(item.gpu_count), item.gpu_name or ""),
        *(round((item.gpu_memory or 0.0) * GIBIBYTE), bool(item.spot)),
    )


def _read_item(row: Mapping[str, str], provider: str, where: str) -> HuntedItem:
    numbers = {name: _number(row, name, where) for name in ("price", "cpu", "memory", "gpu_count", "gpu_memory")}
    if row["spot"].casefold() not in ("true", "false"):
        raise BadInput(f"{where}: 'spot' must be True or False, got {row['spot']!r}")
    return HuntedItem(
        *(provider, row["instance_name"], row["location"], numbers["price"], numbers["cpu"]),
        *(round(numbers["memory"] * GIBIBYTE), numbers["gpu_count"], row["gpu_name"]),
        *(round(numbers["gpu_memory"] * GIBIBYTE), row["spot"].casefold() == "true"),
    )


def _number(row: Mapping[str, str], column: str, where: str) -> float:
    try:
        value = float(row[column] or 0)
    except ValueError:
        raise BadInput(f"{where}: {column!r} must be a number, got {row[column]!r}") from None
    if not isfinite(value) or value < 0:
        raise BadInput(f"{where}: {column!r} must be at least 0, got {row[column]!r}")
    return value


def _day(version: str, today: str) -> str:
    """2026-11-18 of a version like 20261118 or 20261118-42."""
    match = re.match(r"(20\d{2})(\d{2})(\d{2})(?!\d)", version)
    return "-".join(match.groups()) if match else today
