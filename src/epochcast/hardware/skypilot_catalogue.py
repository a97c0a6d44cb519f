"""SkyPilot's catalogue of cloud prices (skypilot-org/skypilot-catalog, catalogs/v*/CLOUD/vms.csv) as machines.

A row is a machine in a region or zone, with the columns InstanceType, AcceleratorName, AcceleratorCount, vCPUs,
MemoryGiB, Price, SpotPrice, Region (AvailabilityZone, GpuInfo and others are not needed). Rows without a type price
accelerators alone; they are added to the hosts that machines.toml joins them to. Of several zones the cheapest counts.

Rows that are no offer are skipped and reported: a GPU without a data sheet, a part of a GPU, no price on demand, and a
price below a tenth of the median for the same device (auctions list the least bid).
"""

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from math import isfinite
from statistics import median

from epochcast.errors import BadInput, EpochcastError
from epochcast.hardware.boards import Built, built_of, machine_rules
from epochcast.hardware.instance import Instance, RegionPrice, price_cells
from epochcast.hardware.price_list import cheapest

SOURCE = "github.com/skypilot-org/skypilot-catalog"
NEEDED = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "Region")
# Below this part of the median price of a device no seller lists one: the least bid of an auction, or a mistake.
LEAST_PART_OF_MEDIAN = 0.1


@dataclass(frozen=True, slots=True)
class Listing:
    """A row of a price list. An empty `instance` means accelerators without a host, an empty accelerator a host."""

    cloud: str
    instance: str
    accelerator: str
    accelerators: float
    region: str
    dollars_per_hour: float | None
    spot_dollars_per_hour: float | None
    cpus: float | None
    host_memory_bytes: int | None
    read_on: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A machine of a list that is no offer, and why."""

    cloud: str
    instance: str
    accelerator: str
    reason: str


def read_listings(text: str, file: str, cloud: str, read_on: str) -> Iterator[Listing]:
    """The rows of a CSV file that have to do with accelerators; errors name file, line and column."""
    table = csv.DictReader(StringIO(text), strict=True)
    try:
        missing = [name for name in NEEDED if name not in (table.fieldnames or ())]
        if missing:
            raise BadInput(f"{file}, line 1: column {missing[0]!r} is missing, a SkyPilot catalogue has it")
        hosts = {name for joined in machine_rules().joined if joined.cloud == cloud for name in joined.instances}
        for row in table:
            where = f"{file}, line {table.line_num}"
            if None in row or None in row.values():
                raise BadInput(f"{where}: has {len([v for v in row.values() if v])} cells, the header another number")
            if row["AcceleratorName"] or row["InstanceType"] in hosts:
                yield _listing(row, where, cloud, read_on)
    except csv.Error as error:
        raise BadInput(f"{file}, line {table.line_num}: {error}") from None


def machines(listings: Iterable[Listing], source: str = SOURCE) -> tuple[tuple[Instance, ...], tuple[Skipped, ...]]:
    """The machines of lists, and what was left out with its reason."""
    by_machine: dict[tuple[str, str, str], list[Listing]] = defaultdict(list)
    for listing in _joined(list(listings)):
        by_machine[listing.cloud, listing.instance, listing.accelerator].append(listing)
    offers: list[Instance] = []
    skipped: list[Skipped] = []
    for key, same in by_machine.items():
        offer_or_reason = _machine(same, source)
        if isinstance(offer_or_reason, Instance):
            offers.append(offer_or_reason)
        else:
            skipped.append(Skipped(*key, offer_or_reason))
    plausible, implausible = _plausible(offers)
    return plausible, (*skipped, *implausible)


def _listing(row: Mapping[str, str], where: str, cloud: str, read_on: str) -> Listing:
    def number(column: str) -> float | None:
        text = row.get(column) or ""
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            raise BadInput(f"{where}: {column!r} must be a number, got {text!r}") from None
        if not isfinite(value) or value < 0:
            raise BadInput(f"{where}: {column!r} must be at least 0, got {text!r}")
        return value

    return Listing(
        cloud,
        row["InstanceType"],
        row["AcceleratorName"],
        number("AcceleratorCount") or 0.0,
        row["Region"],
        number("Price") or None,
        number("SpotPrice") or None,  # some lists write 0 where there is none
        number("vCPUs"),
        round((number("MemoryGiB") or 0) * 2**30) or None,
        read_on,
    )


def _joined(listings: Sequence[Listing]) -> Iterator[Listing]:
    """Hosts with the accelerators that are priced apart, in the same region; the rest as it is."""
    hosts: dict[str, tuple[str, float]] = {}
    for rule in machine_rules().joined:
        hosts |= {f"{rule.cloud} {name}": (rule.accelerator, count) for name, count in rule.instances.items()}
    apart: dict[tuple[str, str, float, str], list[Listing]] = defaultdict(list)
    for listing in listings:
        if not listing.instance:
            apart[listing.cloud, listing.accelerator, listing.accelerators, listing.region].append(listing)
    used = set()
    for listing in listings:
        if listing.accelerator:
            continue
        accelerator, count = hosts[f"{listing.cloud} {listing.instance}"]
        key = listing.cloud, accelerator, count, listing.region
        for gpu in apart.get(key, ())[:1]:
            used.add(key[:3])
            yield replace(
                listing,
                accelerator=accelerator,
                accelerators=count,
                dollars_per_hour=_both(listing.dollars_per_hour, gpu.dollars_per_hour),
                spot_dollars_per_hour=_both(listing.spot_dollars_per_hour, gpu.spot_dollars_per_hour),
            )
    for listing in listings:
        if listing.accelerator and (
            listing.instance or (listing.cloud, listing.accelerator, listing.accelerators) not in used
        ):
            yield listing


def _both(host: float | None, gpus: float | None) -> float | None:
    return None if host is None or gpus is None else host + gpus


def _machine(same: Sequence[Listing], source: str) -> Instance | str:
    """One machine of its rows, or why it is none."""
    first = same[0]
    if not first.instance:
        return "accelerators without a host: the machine around them costs extra"
    if not first.cpus or not first.host_memory_bytes:
        return "the list does not say its processors and memory"
    if first.accelerators != int(first.accelerators) or first.accelerators < 1:
        return "a part of a GPU"
    name = first.instance.removeprefix("Standard_")
    built = built_of(first.cloud, name, first.accelerator)
    if not isinstance(built, Built):
        return built
    prices = _by_region(same)
    least, spot = cheapest(prices), cheapest(prices, spot=True)
    if least is None or least.dollars_per_hour is None:
        return "no price on demand"
    try:
        return Instance(
            name=name,
            cloud=first.cloud,
            device=built.device,
            gpus=built.gpus or int(first.accelerators),
            dollars_per_hour=least.dollars_per_hour,
            cpus=max(1, int(first.cpus)),
            host_memory_bytes=first.host_memory_bytes,
            inner_link=built.inner_link,
            outer_link=built.outer_link,
            source=source,
            priced_on=max(listing.read_on for listing in same),
            verified=True,
            aliases=() if name == first.instance else (first.instance,),
            region=least.region,
            spot_dollars_per_hour=None if spot is None else spot.spot_dollars_per_hour,
            price_cells=price_cells(prices),
            board_is_assumed=built.is_assumed,
        )
    except EpochcastError as error:
        return str(error)


def _by_region(same: Sequence[Listing]) -> tuple[RegionPrice, ...]:
    """The least price of each region's zones."""
    regions: dict[str, list[Listing]] = defaultdict(list)
    for listing in same:
        regions[listing.region].append(listing)

    def least(prices: Iterable[float | None]) -> float | None:
        return min((price for price in prices if price is not None), default=None)

    return tuple(
        RegionPrice(
            region,
            least(listing.dollars_per_hour for listing in zones),
            least(listing.spot_dollars_per_hour for listing in zones),
        )
        for region, zones in sorted(regions.items())
    )


def _plausible(offers: Sequence[Instance]) -> tuple[tuple[Instance, ...], tuple[Skipped, ...]]:
    """Those that do not cost next to nothing beside others with the same device."""
    by_device: dict[str, list[float]] = defaultdict(list)
    for offer in offers:
        by_device[offer.device].append(offer.dollars_per_gpu_hour)
    least = {device: LEAST_PART_OF_MEDIAN * median(prices) for device, prices in by_device.items()}
    plausible = tuple(offer for offer in offers if offer.dollars_per_gpu_hour >= least[offer.device])
    low = tuple(
        Skipped(
            offer.cloud, offer.name, offer.device, "costs less than a tenth of the median for its device: no list price"
        )
        for offer in offers
        if offer.dollars_per_gpu_hour < least[offer.device]
    )
    return plausible, low
