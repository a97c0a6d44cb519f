"""Machines by name, with their prices: the shipped list, what the user imported, and the user's own.

    offers.csv          shipped: from SkyPilot's catalogue, with source and date (`price_list`)
    instances.toml      shipped: what that catalogue does not have
    FOLDER/CLOUD.csv    imported by the user (`epochcast instances update`)
    FOLDER/own.toml     the user's own servers and prices

FOLDER is `prices` in the user's data folder (EPOCHCAST_PRICES names another). Later files replace machines of the same
cloud and name; a list of a cloud also replaces other machines of that cloud with the same
GPUs and number. Files are read again where they have changed.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from epochcast.base import catalogue_rows as rows
from epochcast.base.caching import remembered
from epochcast.base.documents import read_text
from epochcast.base.name_matching import plain
from epochcast.errors import AmbiguousName, BadInput, UnknownName
from epochcast.hardware.catalogue import find_device, find_link
from epochcast.hardware.instance import Instance
from epochcast.hardware.price_list import read_price_list

INSTANCES_FILE, OFFERS_FILE, OWN_FILE = "instances.toml", "offers.csv", "own.toml"

State = tuple[tuple[str, int, int], ...]


def instances() -> tuple[Instance, ...]:
    """Every machine of the catalogue."""
    return _read(price_state())


def find_instance(name: str) -> Instance:
    """The machine called `name`; where two clouds have one of that name, `cloud/name`."""
    index = _index(price_state())
    machines = index.get(plain(name)) or index.get(_with_cloud(*name.split("/", 1)) if "/" in name else "")
    if not machines:
        raise UnknownName("instance", name, {row.name for row in instances()})
    if len(machines) > 1:
        raise AmbiguousName("instance", name, [f"{row.cloud}/{row.name}" for row in machines])
    return machines[0]


def price_folder() -> Path:
    """The folder of the user's own prices."""
    folder = os.environ.get("EPOCHCAST_PRICES")
    return Path(folder) if folder else _default_folder()


def price_state() -> State:
    """What tells that the user's prices changed: their files, with size and time."""
    try:
        with os.scandir(price_folder()) as entries:
            files = [entry for entry in entries if entry.name.endswith((".csv", ".toml")) and entry.is_file()]
            return tuple(sorted((entry.path, entry.stat().st_mtime_ns, entry.stat().st_size) for entry in files))
    except OSError:
        return ()


def load_instances(text: str, file: str = INSTANCES_FILE) -> Mapping[str, Instance]:
    """The machines in a TOML text by plain name."""
    numbered = text if file != INSTANCES_FILE else ""
    return rows.index_by_name(rows.read(rows.parse(text, file), "instance", file, _instance, numbered), file)


def own_instances(path: Path) -> tuple[Instance, ...]:
    """The machines of a user's file, whose devices and links must be known."""
    text = read_text(path)
    for key in rows.parse(text, str(path)).keys() - {"instance"}:
        raise BadInput(f"{path}: unknown key {key!r}; machines are [[instance]] rows")
    machines = tuple(dict.fromkeys(load_instances(text, str(path)).values()))
    lines = rows.header_lines(text, "instance")
    for number, machine in enumerate(machines, start=1):
        line = lines[number - 1] if len(lines) >= number else 1
        where = f"{path}, line {line}, [[instance]] row {number} ({machine.name})"
        for key, look_up in (("device", find_device), ("inner_link", find_link), ("outer_link", find_link)):
            name = getattr(machine, key)
            try:
                if name:
                    look_up(name)
            except (UnknownName, AmbiguousName) as error:
                raise BadInput(f"{where}: {key!r}: {error}") from None
    return machines


@remembered(1)
def _default_folder() -> Path:
    from platformdirs import user_data_path

    return user_data_path("epochcast") / "prices"


@remembered(4)
def _read(state: State) -> tuple[Instance, ...]:
    machines: dict[tuple[str, str], Instance] = {}

    def put(instances: Iterable[Instance]) -> None:
        machines.update({(machine.cloud, machine.name): machine for machine in instances})

    put(read_price_list(rows.shipped(OFFERS_FILE, __file__), OFFERS_FILE))
    put(load_instances(rows.shipped(INSTANCES_FILE, __file__)).values())
    paths = [Path(name) for name, _, _ in state]
    for path in (each for each in paths if each.suffix == ".csv"):
        listed = tuple(read_price_list(read_text(path), str(path)))
        kinds = {(machine.cloud, machine.device, machine.gpus) for machine in listed}
        for key, machine in tuple(machines.items()):
            if (machine.cloud, machine.device, machine.gpus) in kinds:
                del machines[key]
        put(listed)
    for path in (each for each in paths if each.name == OWN_FILE):
        put(own_instances(path))
    return tuple(machines.values())


@remembered(4)
def _index(state: State) -> Mapping[str, tuple[Instance, ...]]:
    index: dict[str, tuple[Instance, ...]] = {}
    for row in _read(state):
        for name in {plain(row.name), *map(plain, row.aliases), _with_cloud(row.cloud, row.name)}:
            index[name] = (*index.get(name, ()), row)
    return index


def _with_cloud(cloud: str, name: str) -> str:
    return f"{plain(cloud)}/{plain(name)}"


def _instance(row: rows.CatalogueRow) -> Instance:
    return Instance(
        name=row.text("name"),
        cloud=row.text("cloud"),
        device=row.text("device"),
        gpus=row.count("gpus"),
        dollars_per_hour=row.number("dollars_per_hour"),
        cpus=row.count("cpus"),
        host_memory_bytes=row.size_bytes("host_memory"),
        inner_link=row.text("inner_link"),
        outer_link=row.text("outer_link"),
        source=row.text("source"),
        priced_on=row.text("priced_on"),
        verified=row.flag("verified"),
        aliases=row.texts("aliases"),
        region=row.text("region", ""),
        spot_dollars_per_hour=row.number("spot_dollars_per_hour") if row.has("spot_dollars_per_hour") else None,
    )
