"""A list of machines and prices as one table, a row for each machine and a cell for all of its regions.

    cloud,name,device,gpus,cpus,host_memory_gib,inner_link,outer_link,board,priced_on,source,prices
    aws,p4d.24xlarge,A100-SXM4-40GB,8,96,1152,nvswitch2,efa_400,,2026-08-22,SkyPilot …,us-east-1;us-west-2:21.9576:7.5|…

`board` is "assumed" where the seller lists only the GPU family; `prices` are per hour, on demand and spot
(`instance.region_prices`). The table is read with every forecast that has a price, so it is kept quick to read: TOML of
this size takes a fifth of a second.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO

from epochcast.base.catalogue_rows import BadRow
from epochcast.errors import BadInput, EpochcastError
from epochcast.hardware.instance import Instance, RegionPrice, region_prices

COLUMNS = (
    "cloud",
    "name",
    "device",
    "gpus",
    "cpus",
    "host_memory_gib",
    "inner_link",
    "outer_link",
    "board",
    "priced_on",
    "source",
    "prices",
)
ASSUMED = "assumed"


def read_price_list(text: str, file: str) -> Iterator[Instance]:
    """The machines of a table; errors name file, line and column."""
    table = csv.DictReader(StringIO(text), strict=True)
    try:
        missing = [name for name in COLUMNS if name not in (table.fieldnames or ())]
        if missing:
            raise BadInput(f"{file}, line 1: column {missing[0]!r} is missing")
        for row in table:
            yield _instance(row, f"{file}, line {table.line_num}")
    except csv.Error as error:
        raise BadInput(f"{file}, line {table.line_num}: {error}") from None


def price_list_text(machines: Iterable[Instance]) -> str:
    """The table of machines, by cloud and name."""
    text = StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for machine in sorted(machines, key=lambda machine: (machine.cloud, machine.device, machine.gpus, machine.name)):
        table.writerow(
            (
                *(
                    machine.cloud,
                    machine.name,
                    machine.device,
                    machine.gpus,
                    machine.cpus,
                    f"{machine.host_memory_bytes / 2**30:g}",
                ),
                *(machine.inner_link, machine.outer_link, ASSUMED if machine.board_is_assumed else ""),
                *(machine.priced_on, machine.source, machine.price_cells),
            )
        )
    return text.getvalue()


def cheapest(prices: Iterable[RegionPrice], *, spot: bool = False) -> RegionPrice | None:
    """The region with the least price on demand, or as spot; of equals the first by name."""

    def dollars_per_hour(price: RegionPrice) -> float | None:
        return price.spot_dollars_per_hour if spot else price.dollars_per_hour

    sold = [price for price in prices if dollars_per_hour(price) is not None]
    return min(sold, key=lambda price: (dollars_per_hour(price) or 0.0, price.region), default=None)


def _instance(row: Mapping[str, str | None], where: str) -> Instance:
    def cell(name: str) -> str:
        text = row[name]
        if text is None:
            raise BadRow(where, f"{name!r} is missing")
        return text

    def number(name: str) -> float:
        try:
            return float(cell(name))
        except ValueError:
            raise BadRow(where, f"{name!r} must be a number, got {row[name]!r}") from None

    key = "prices"
    try:
        # The first group is the cheapest: the rest is read when somebody asks for regions.
        first = cheapest(region_prices(cell(key).partition("|")[0]))
        if first is None or first.dollars_per_hour is None:
            raise BadInput("no price on demand")
        spots = [group.rpartition(":")[2] for group in cell(key).split("|")]
        spot = min((float(text) for text in spots if text), default=None)
        key = "row"
        return Instance(
            name=cell("name"),
            cloud=cell("cloud"),
            device=cell("device"),
            gpus=int(number("gpus")),
            dollars_per_hour=first.dollars_per_hour,
            cpus=int(number("cpus")),
            host_memory_bytes=round(number("host_memory_gib") * 2**30),
            inner_link=cell("inner_link"),
            outer_link=cell("outer_link"),
            source=cell("source"),
            priced_on=cell("priced_on"),
            verified=True,
            region=first.region,
            spot_dollars_per_hour=spot,
            price_cells=cell("prices"),
            board_is_assumed=cell("board") == ASSUMED,
        )
    except BadRow:
        raise
    except (EpochcastError, ValueError) as error:
        raise BadRow(where, f"{key!r}: {error}" if key == "prices" else error) from None
