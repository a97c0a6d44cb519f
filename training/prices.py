"""`make prices`: the shipped list of machines and prices, from the table of offers.

    python -m training.prices

Reads EPOCHCAST_DATA/offers.parquet (rows of SkyPilot's public catalogue: cloud, machine, accelerator, region, price on
demand and spot, the day it was read) through the code of `epochcast instances import`, writes hardware/offers.csv and
takes machines out of hardware/instances.toml that the table has: no recalled price stands where one was read. Prints
what was left out, and why.
"""

import os
import re
import sys
from collections import Counter
from pathlib import Path

import polars

from epochcast.base.atomic_files import write_text
from epochcast.hardware.price_list import price_list_text
from epochcast.hardware.skypilot_catalogue import SOURCE, Listing, machines
from training.files import say

FOLDER = Path(__file__).parents[1] / "src" / "epochcast" / "hardware"


def listings(table: Path) -> list[Listing]:
    """The rows of the table."""
    rows = polars.read_parquet(table).iter_rows(named=True)
    return [
        Listing(
            row["cloud"],
            row["instance"] or "",
            row["accelerator"],
            row["accelerators"],
            row["region"] or "",
            row["dollars_per_hour"],
            row["spot_dollars_per_hour"],
            row["cpus"],
            round((row["host_memory_gib"] or 0) * 2**30) or None,
            row["read_on"],
        )
        for row in rows
    ]


def without(text: str, names: set[tuple[str, str]]) -> str:
    """The rows of an instances.toml, less those of these clouds and names."""

    def is_kept(row: str) -> bool:
        cells = dict(re.findall(r'^(cloud|name) = "(.*)"$', row, re.MULTILINE))
        return (cells.get("cloud"), cells.get("name")) not in names

    head, *rows = re.split(r"(?=^\[\[instance\]\]$)", text, flags=re.MULTILINE)
    return head + "".join(row for row in rows if is_kept(row))


def main() -> int:
    """Write both files."""
    found, skipped = machines(listings(Path(os.environ["EPOCHCAST_DATA"]) / "offers.parquet"), SOURCE)
    write_text(FOLDER / "offers.csv", price_list_text(found))
    own = FOLDER / "instances.toml"
    write_text(own, without(own.read_text(encoding="utf-8"), {(one.cloud, one.name) for one in found}))
    say(f"{len(found)} machines of {len({one.cloud for one in found})} clouds")
    for reason, count in Counter(one.reason for one in skipped).most_common():
        say(f"{count:4} skipped: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
