"""Writing the user's own prices: a server of one's own, and SkyPilot's catalogue files.

A server that was bought costs per hour of use (utilisation u of all hours of its years):

    dollars per hour = purchase ÷ (years · 8766 h · u) + kilowatts · dollars per kilowatt-hour

Power is counted for hours of use alone; rent of the room, cooling and administration belong into the purchase price or
into the price of electricity (data centres tell a PUE: multiply).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from math import isfinite
from pathlib import Path

from epochcast.base.atomic_files import write_text
from epochcast.base.documents import read_text
from epochcast.errors import BadInput
from epochcast.hardware.catalogue import find_device, find_link
from epochcast.hardware.instance import Instance
from epochcast.hardware.machines import OWN_FILE, own_instances, price_folder
from epochcast.hardware.price_list import price_list_text
from epochcast.hardware.skypilot_catalogue import SOURCE, Skipped, machines, read_listings

HOURS_PER_YEAR = 8766.0  # 365.25 days
OWN_CLOUD = "own"


@dataclass(frozen=True, slots=True)
class Purchase:
    """What a server cost and needs."""

    dollars: float
    years: float
    watts: float = 0.0
    dollars_per_kilowatt_hour: float = 0.0
    utilization: float = 1.0

    def __post_init__(self) -> None:
        for name in ("dollars", "years", "utilization"):
            if not (isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise BadInput(f"{name} of a purchase must be above 0, got {getattr(self, name):g}")
        for name in ("watts", "dollars_per_kilowatt_hour"):
            if not (isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise BadInput(f"{name} of a purchase must be at least 0, got {getattr(self, name):g}")
        if self.utilization > 1:
            raise BadInput(f"utilization is a fraction of all hours, at most 1, got {self.utilization:g}")

    @property
    def dollars_per_hour(self) -> float:
        """The equation above."""
        capital = self.dollars / (self.years * HOURS_PER_YEAR * self.utilization)
        return capital + self.watts / 1000 * self.dollars_per_kilowatt_hour


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import found: the file of each cloud, its machines, and what was left out."""

    paths: tuple[Path, ...]
    machines: tuple[Instance, ...]
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True, slots=True)
class Description:
    """A machine as its owner describes it. Its host defaults to eight processors and 64 GiB per GPU; without a `link`
    the connection of several machines is unknown.
    """

    name: str
    device: str
    gpus: int = 1
    cpus: int | None = None
    host_memory_bytes: int | None = None
    link: str | None = None
    inner_link: str | None = None
    cloud: str = OWN_CLOUD


def own_machine(description: Description, paid: float | Purchase, today: date) -> Instance:
    """The machine at a price per hour or at what it cost to buy."""
    sheet = find_device(description.device)
    hourly = paid.dollars_per_hour if isinstance(paid, Purchase) else paid
    source = (
        f"own: bought for {paid.dollars:g} dollars over {paid.years:g} years, {paid.watts:g} W at "
        f"{paid.dollars_per_kilowatt_hour:g} dollars per kWh, {paid.utilization:g} of all hours used"
        if isinstance(paid, Purchase)
        else "own: price as given"
    )
    return Instance(
        name=description.name,
        cloud=description.cloud,
        device=sheet.name,
        gpus=description.gpus,
        dollars_per_hour=hourly,
        cpus=8 * description.gpus if description.cpus is None else description.cpus,
        host_memory_bytes=description.gpus * 2**36
        if description.host_memory_bytes is None
        else description.host_memory_bytes,
        inner_link=find_link(description.inner_link).name if description.inner_link else sheet.interconnect,
        outer_link=find_link(description.link).name if description.link else "",
        source=source,
        priced_on=today.isoformat(),
        verified=True,
    )


def add_machine(machine: Instance) -> Path:
    """Write a machine to the user's file, in place of one of its name."""
    path = price_folder() / OWN_FILE
    others = (
        [] if not path.exists() else [instance for instance in own_instances(path) if instance.name != machine.name]
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "\n".join(_toml(instance) for instance in (*others, machine)))
    return path


def remove_machine(name: str) -> Path:
    """Take a machine out of the user's file."""
    path = price_folder() / OWN_FILE
    own_machines = own_instances(path) if path.exists() else ()
    others = [machine for machine in own_machines if machine.name != name]
    if len(others) == len(own_machines):
        names = ", ".join(machine.name for machine in own_machines) or "none"
        raise BadInput(f"no own instance called {name!r}; own: {names}")
    write_text(path, "\n".join(map(_toml, others)))
    return path


def import_catalogues(files: Sequence[Path], *, cloud: str | None = None, read_on: str | None = None) -> Imported:
    """SkyPilot's CSV files into the user's folder, one file for each cloud; nothing is written where one is at fault.

    The cloud is the folder of `vms.csv` (catalogs/v7/aws/vms.csv), or the name of the file; the date that of the file.
    """
    if cloud is not None and len(files) > 1:
        raise BadInput("one cloud has one file: import them one by one where `cloud` is given")
    listings = []
    for file in files:
        day = read_on or datetime.fromtimestamp(_changed(file), UTC).date().isoformat()
        check_day(day)
        listings += list(read_listings(read_text(file), str(file), cloud or _cloud(file), day))
    imported, skipped = machines(listings, f"{SOURCE}, imported")
    if not imported:
        raise BadInput(f"{files[0]}: no machine with a known GPU and a price ({len(skipped)} skipped)")
    folder = price_folder()
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in sorted({machine.cloud for machine in imported}):
        paths.append(folder / f"{name}.csv")
        write_text(paths[-1], price_list_text(machine for machine in imported if machine.cloud == name))
    return Imported(tuple(paths), imported, skipped)


def skipped_counts(skipped: Iterable[Skipped]) -> dict[str, int]:
    """How many were left out, by reason, the most frequent first."""
    counts: dict[str, int] = {}
    for machine in skipped:
        counts[machine.reason] = counts.get(machine.reason, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def _cloud(file: Path) -> str:
    name = (file.resolve().parent.name if file.stem.casefold() == "vms" else file.stem).casefold()
    if not name.replace("-", "").replace("_", "").isalnum():
        raise BadInput(f"{file}: its name does not say which cloud it belongs to: give `cloud`")
    return name


def _changed(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror or error}") from None


def check_day(day: str) -> None:
    """Refuse what is no day."""
    try:
        date.fromisoformat(day)
    except ValueError:
        raise BadInput(f"read_on must be a date like 2026-08-22, got {day!r}") from None


def _toml(machine: Instance) -> str:
    """One [[instance]] row."""
    machine = replace(machine, price_cells="")
    cells: dict[str, object] = {
        "name": machine.name,
        "cloud": machine.cloud,
        "device": machine.device,
        "gpus": machine.gpus,
        "dollars_per_hour": machine.dollars_per_hour,
        "cpus": machine.cpus,
        "host_memory": f"{machine.host_memory_bytes / 2**30:g} GiB",
        "inner_link": machine.inner_link,
        "outer_link": machine.outer_link,
        "source": machine.source,
        "priced_on": machine.priced_on,
        "verified": machine.verified,
    }
    if machine.spot_dollars_per_hour is not None:
        cells["spot_dollars_per_hour"] = machine.spot_dollars_per_hour
    return "[[instance]]\n" + "".join(f"{name} = {_value(value)}\n" for name, value in cells.items())


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        from json import dumps  # a TOML basic string is a JSON one

        return dumps(value, ensure_ascii=False)
    return repr(value)
