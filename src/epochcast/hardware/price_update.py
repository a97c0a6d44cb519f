"""Refreshing the user's prices, and what changed by it.

Sources: gpuhunt's published catalogue, SkyPilot's published files, or files and URLs. A file says by its columns what
it is: SkyPilot's `vms.csv`, gpuhunt's `PROVIDER.csv` (also zipped), or a list of epochcast itself. Nothing is written
where one source is at fault, and no forecast ever needs an update.
"""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from epochcast.base.atomic_files import write_text
from epochcast.base.documents import decoded
from epochcast.base.record import Record
from epochcast.errors import BadInput
from epochcast.hardware.gpuhunt_catalogue import (
    GPUHUNT_COLUMNS,
    GPUHUNT_SOURCE,
    hunted_listings,
    published_items,
    read_items,
)
from epochcast.hardware.instance import Instance
from epochcast.hardware.machines import instances, price_folder
from epochcast.hardware.price_list import COLUMNS, price_list_text, read_price_list
from epochcast.hardware.skypilot_catalogue import NEEDED, SOURCE, Skipped, machines, read_listings

GPUHUNT, SKYPILOT = "gpuhunt", "skypilot"
SKYPILOT_URL = "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs/v7/{cloud}/vms.csv"
# Those of SkyPilot's catalogue that sell GPUs by published prices (catalogs/v7).
SKYPILOT_CLOUDS = (
    *("aws", "azure", "cudo", "do", "fluidstack", "gcp", "hyperbolic", "hyperstack", "ibm", "lambda", "nebius", "oci"),
    *("paperspace", "primeintellect", "runpod", "scp", "seeweb", "shadeform", "vast", "verda", "yotta"),
)
MOST_LIST_BYTES, TIMEOUT_SECONDS = 64 * 2**20, 30.0

Fetch = Callable[[str], bytes]


@dataclass(frozen=True, slots=True)
class PriceChange(Record):
    """An offer whose price is another now; None where it is new."""

    cloud: str
    name: str
    device: str
    gpus: int
    before_dollars_per_hour: float | None
    dollars_per_hour: float

    @property
    def ratio(self) -> float:
        """Now divided by before; 1 where it is new."""
        return 1.0 if self.before_dollars_per_hour is None else self.dollars_per_hour / self.before_dollars_per_hour


@dataclass(frozen=True, slots=True)
class PriceUpdate(Record):
    """What an update read and changed. `replaced` offers had the same cloud and GPUs and are no longer listed."""

    source: str
    files: tuple[str, ...]
    instances: int
    oldest: str
    newest: str
    new: int
    cheaper: int
    dearer: int
    unchanged: int
    replaced: int
    changes: tuple[PriceChange, ...]
    skipped: tuple[Skipped, ...]


def update_prices(
    sources: Sequence[str],
    today: str,
    *,
    cloud: str | None = None,
    read_on: str | None = None,
    fetch: Fetch | None = None,
) -> PriceUpdate:
    """Prices of the sources into the user's folder; the first source of an offer counts."""
    listed: dict[tuple[str, str], Instance] = {}
    skipped: list[Skipped] = []
    for source in sources or (GPUHUNT,):
        for machine in _read(source, today, cloud, read_on, fetch or downloaded, skipped):
            listed.setdefault((machine.cloud, machine.name), machine)
    if not listed:
        raise BadInput(f"{', '.join(sources)}: no machine with a known GPU and a price ({len(skipped)} skipped)")
    before = {(machine.cloud, machine.name): machine for machine in instances()}
    paths = _written(listed.values())
    after = {(machine.cloud, machine.name) for machine in instances()}
    changes = tuple(_changes(before, listed.values()))
    days = sorted(machine.priced_on for machine in listed.values())
    return PriceUpdate(
        source=", ".join(sources or (GPUHUNT,)),
        files=tuple(map(str, paths)),
        instances=len(listed),
        oldest=days[0],
        newest=days[-1],
        new=sum(change.before_dollars_per_hour is None for change in changes),
        cheaper=sum(change.ratio < 1 for change in changes),
        dearer=sum(change.ratio > 1 for change in changes),
        unchanged=len(listed) - len(changes),
        replaced=len(before.keys() - after),
        changes=changes,
        skipped=tuple(skipped),
    )


def downloaded(url: str) -> bytes:
    """The content of a URL of http or https."""
    from http.client import HTTPException
    from urllib.error import URLError
    from urllib.request import urlopen

    try:
        with urlopen(url, timeout=TIMEOUT_SECONDS) as answer:
            content: bytes = answer.read(MOST_LIST_BYTES + 1)
    except (URLError, HTTPException, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise BadInput(f"{url} cannot be read: {reason}; prices stay as they are") from None
    if len(content) > MOST_LIST_BYTES:
        raise BadInput(f"{url} has more than {MOST_LIST_BYTES:,} bytes, too many for a price list")
    return content


def _read(
    source: str, today: str, cloud: str | None, read_on: str | None, fetch: Fetch, skipped: list[Skipped]
) -> Iterator[Instance]:
    """The machines of one source; what is no offer is added to `skipped`."""
    if source == GPUHUNT:
        items, days = published_items(today)
        listed, left_out = machines(hunted_listings(items, days), GPUHUNT_SOURCE)
    elif source == SKYPILOT:
        listings = [
            listing
            for each in SKYPILOT_CLOUDS
            for url in (SKYPILOT_URL.format(cloud=each),)
            for listing in read_listings(decoded(fetch(url), url), url, each, read_on or today)
        ]
        listed, left_out = machines(listings, SOURCE)
    else:
        listed, left_out = _of_file(source, cloud, read_on or today, fetch)
    skipped += left_out
    yield from listed


def _of_file(
    source: str, cloud: str | None, day: str, fetch: Fetch
) -> tuple[tuple[Instance, ...], tuple[Skipped, ...]]:
    content = fetch(source) if "://" in source else _file_bytes(source)
    if "://" in source and not source.startswith(("http://", "https://")):
        raise BadInput(f"{source}: prices are read from files, http:// and https://")
    name = Path(source).name
    if content.startswith(b"PK"):
        name, content = _unzipped(content, source)
    text = decoded(content, source)
    columns = set(next(csv.reader(StringIO(text)), ()))
    seller = (cloud or _seller(source, name)).casefold()
    if columns.issuperset(NEEDED):
        return machines(read_listings(text, source, seller, day), source)
    if columns.issuperset(GPUHUNT_COLUMNS):
        items = read_items(text, source, seller)
        return machines(hunted_listings(items, {seller: day}), f"{GPUHUNT_SOURCE}, {source}")
    if columns.issuperset(COLUMNS):
        return tuple(read_price_list(text, source)), ()
    raise BadInput(
        f"{source} is no price list of a known version: expected the columns of SkyPilot "
        f"({', '.join(NEEDED[:2])}, …) or of gpuhunt ({', '.join(GPUHUNT_COLUMNS[:2])}, …)"
    )


def _file_bytes(source: str) -> bytes:
    try:
        with Path(source).open("rb") as stream:
            content = stream.read(MOST_LIST_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{source}: {error.strerror or error}; give {GPUHUNT}, {SKYPILOT}, a file or a URL") from None
    if len(content) > MOST_LIST_BYTES:
        raise BadInput(f"{source} has more than {MOST_LIST_BYTES:,} bytes, too many for a price list")
    return content


def _unzipped(content: bytes, source: str) -> tuple[str, bytes]:
    """The one CSV file of an archive."""
    try:
        with ZipFile(BytesIO(content)) as archive:
            files = [entry for entry in archive.infolist() if entry.filename.endswith(".csv")]
            if len(files) != 1 or files[0].file_size > MOST_LIST_BYTES:
                raise BadInput(f"{source} must hold one price list (.csv), it holds {len(files)}")
            return files[0].filename, archive.read(files[0])
    except (BadZipFile, NotImplementedError, RuntimeError) as error:
        raise BadInput(f"{source} is no readable archive: {error}") from None


def _seller(source: str, name: str) -> str:
    """Whose prices they are: the folder of `vms.csv`, else the name of the file."""
    path = Path(name)
    seller = Path(source).parent.name if path.stem.casefold() == "vms" else path.stem
    if not seller.replace("-", "").replace("_", "").isalnum():
        raise BadInput(f"{source}: its name does not say which cloud it is of: add --cloud")
    return seller


def _written(listed: Iterable[Instance]) -> list[Path]:
    folder, rows = price_folder(), list(listed)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in sorted({machine.cloud for machine in rows}):
        paths.append(folder / f"{name}.csv")
        write_text(paths[-1], price_list_text(machine for machine in rows if machine.cloud == name))
    return paths


def _changes(before: Mapping[tuple[str, str], Instance], listed: Iterable[Instance]) -> Iterator[PriceChange]:
    """Offers whose price is another, the largest change first; new ones last."""
    rows = []
    for machine in listed:
        old = before.get((machine.cloud, machine.name))
        price = None if old is None else old.dollars_per_hour
        if price != machine.dollars_per_hour:
            at = machine.cloud, machine.name, machine.device, machine.gpus
            rows.append(PriceChange(*at, price, machine.dollars_per_hour))
    yield from sorted(rows, key=lambda row: (row.before_dollars_per_hour is None, -abs(row.ratio - 1), row.name))
