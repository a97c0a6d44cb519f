"""The catalogue: devices and links by name, read from the `.toml` files in this folder.

Files are read on first use, checked row by row and cached. Names are compared by `name_matching.plain`.

A device name is resolved in this order:

1. a path that ends in `.toml`: the user's own data sheet (`data_sheet`); `cpu`, `host`, `local`: this machine;
2. `[alias_by_source]`: what a name means in a source of measurements ("TITAN X" is Pascal in one, Maxwell in another);
3. a device's own name or alias;
4. `[family]`: a bare family name ("A100") means its first variant, or, when a memory size is given, the variant
   nearest in memory;
5. `[ambiguous]`: refused with the candidates; `[refused]`: refused with the reason;
6. the same with GB for a last G, without the kind of its memory ("A100 80G") and with "Max-Q" for "with Max-Q Design";
7. a device's name with the size of its memory behind it ("MI300X 192GB"); another size, as anything else, is unknown.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import log

from epochcast.base import catalogue_rows as rows
from epochcast.base.caching import remembered
from epochcast.base.name_matching import plain
from epochcast.errors import AmbiguousName, BadInput, EpochcastError, UnknownDevice, UnpublishedDevice
from epochcast.hardware.device import Device
from epochcast.hardware.host_device import HOST_NAMES, HOST_PREFIX, detect_host
from epochcast.hardware.link import Link, from_text

DEVICES_FILE, LINKS_FILE = "devices.toml", "links.toml"


@dataclass(frozen=True, slots=True)
class DeviceTable:
    """devices.toml: the rows, and what its names mean. Keys of the mappings are plain names."""

    devices: tuple[Device, ...]
    by_name: Mapping[str, Device]
    families: Mapping[str, tuple[Device, ...]]
    ambiguous: Mapping[str, tuple[str, ...]]
    refused: Mapping[str, str]
    by_source: Mapping[str, Mapping[str, Device]]
    offered: tuple[str, ...]
    """The names that an error for an unknown name suggests."""

    def find(self, name: str, memory_bytes: float | None = None, source: str | None = None) -> Device:
        """The device called `name`; the module's docstring has the order."""
        key = plain(name)
        if source is not None and key in self.by_source.get(source, {}):
            return self.by_source[source][key]
        if key in self.by_name:
            return self.by_name[key]
        if key in self.families:
            return _nearest(self.families[key], memory_bytes)
        if key in self.ambiguous:
            raise AmbiguousName("device", name, self.ambiguous[key])
        if key in self.refused:
            raise UnpublishedDevice(name, self.refused[key])
        if _spelt_out(key) != key:
            return self.find(_spelt_out(key), memory_bytes, source)
        sized = self._sized(key)
        if sized is not None:
            return sized
        raise self._unknown(name)

    def _sized(self, key: str) -> Device | None:
        """The device of a plain name that ends in the size of its memory: mi300x192gb."""
        for digits in (1, 2, 3):
            bare, size = key[: -digits - 2], key[-digits - 2 : -2]
            if key.endswith("gb") and size.isdecimal() and int(size) and bare in self.by_name:
                device = self.by_name[bare]
                if abs(log(device.memory_bytes / (int(size) * 1e9))) < _SAME_SIZE:
                    return device
        return None

    def _unknown(self, name: str) -> EpochcastError:
        """The near names; of several GPUs at once ("8xA100"), how to say that."""
        counted = _SEVERAL.fullmatch(name)
        if counted is not None:
            count, single = counted[1] or counted[4], counted[2] or counted[3]
            if plain(single) in self.by_name or plain(single) in self.families:
                return BadInput(f"{name!r} is {count} of a device: name one, {single!r}, and give `gpus` {count}")
        return UnknownDevice(name, self.offered)


def find_device(name: str, memory_bytes: float | None = None, source: str | None = None) -> Device:
    """The device called `name`.

    `memory_bytes` chooses between the variants of a bare family name; `source` is the source of measurements the name
    comes from, if that decides its meaning.
    """
    if is_sheet(name):
        from epochcast.hardware.data_sheet import read_data_sheet  # it looks devices up here

        return read_data_sheet(name)
    if plain(name) in HOST_NAMES or (name.startswith(HOST_PREFIX) and name == detect_host().name):
        return detect_host()
    return _device_table().find(name, memory_bytes, source)


def is_sheet(name: str) -> bool:
    """Whether a name is the path of a data sheet."""
    return name.casefold().endswith(".toml")


def find_link(name: str) -> Link:
    """The link called `name`, or described by latency and bandwidth like 40us+2.5GB/s."""
    return from_text(name) or rows.find_by_name("link", name, _links())


def devices() -> tuple[Device, ...]:
    """Every device of the catalogue, in the order of the file (this machine is not among them)."""
    return _device_table().devices


def links() -> tuple[Link, ...]:
    """Every link of the catalogue."""
    return tuple(dict.fromkeys(_links().values()))


def family(name: str) -> tuple[Device, ...]:
    """The variants of a family name, the default first; empty if `name` is not one."""
    return _device_table().families.get(plain(name), ())


def load_devices(text: str, file: str = DEVICES_FILE) -> DeviceTable:
    """The device table in a TOML text, checked."""
    document = rows.parse(text, file)
    all_devices = tuple(rows.read(document, "device", file, _device))
    by_name = rows.index_by_name(all_devices, file)

    def named(device: str, where: str) -> Device:
        if plain(device) not in by_name:
            raise BadInput(f"{file}, {where}: no device called {device!r}")
        return by_name[plain(device)]

    families = {
        plain(name): tuple(
            named(variant, f"[family] {name}") for variant in rows.texts_in(variants, f"{file}, [family] {name}")
        )
        for name, variants in rows.section(document, "family", file).items()
    }
    ambiguous = {
        plain(name): tuple(
            named(candidate, f"[ambiguous] {name}").name
            for candidate in rows.texts_in(candidates, f"{file}, [ambiguous] {name}")
        )
        for name, candidates in rows.section(document, "ambiguous", file).items()
    }
    refused = {plain(name): str(reason) for name, reason in rows.section(document, "refused", file).items()}
    by_source = {
        source: {
            plain(name): named(str(device), f"[alias_by_source.{source}]")
            for name, device in rows.section(rows.section(document, "alias_by_source", file), source, file).items()
        }
        for source in rows.section(document, "alias_by_source", file)
    }
    for key in [*families, *ambiguous, *refused]:
        if key in by_name:
            raise BadInput(
                f"{file}: {key!r} is both a family, ambiguous or refused name and that of {by_name[key].name!r}"
            )
    offered = tuple(device.name for device in all_devices) + tuple(rows.section(document, "family", file))
    return DeviceTable(all_devices, by_name, families, ambiguous, refused, by_source, offered)


def load_links(text: str, file: str = LINKS_FILE) -> Mapping[str, Link]:
    """The links in a TOML text by plain name."""
    return rows.index_by_name(rows.read(rows.parse(text, file), "link", file, _link), file)


@remembered(1)
def _device_table() -> DeviceTable:
    return load_devices(rows.shipped(DEVICES_FILE, __file__))


@remembered(1)
def _links() -> Mapping[str, Link]:
    return load_links(rows.shipped(LINKS_FILE, __file__))


def _device(row: rows.CatalogueRow) -> Device:
    return Device(
        name=row.text("name"),
        vendor=row.text("vendor"),
        kind=row.text("kind"),
        generation=row.text("generation"),
        year=row.count("year"),
        compute_units=row.count("compute_units"),
        clock_hertz=row.number("clock_hertz"),
        peak_flops_per_second=row.numbers("peak_flops_per_second"),
        memory_bytes=row.size_bytes("memory"),
        memory_bytes_per_second=row.rate_bytes_per_second("memory_bandwidth"),
        l2_bytes=row.size_bytes("l2") if row.has("l2") else None,
        launch_seconds=row.number("launch_seconds") if row.has("launch_seconds") else None,
        interconnect=row.text("interconnect"),
        host_link=row.text("host_link"),
        tensor_cores=row.flag("tensor_cores"),
        source=row.text("source"),
        verified=row.flag("verified"),
        aliases=row.texts("aliases"),
        note=row.text("note", ""),
        watts=row.number("watts") if row.has("watts") else None,
    )


def _link(row: rows.CatalogueRow) -> Link:
    return Link(
        latency_seconds=row.number("latency_seconds"),
        bandwidth_bytes_per_second=row.rate_bytes_per_second("bandwidth"),
        name=row.text("name"),
        source=row.text("source"),
        verified=row.flag("verified"),
        aliases=row.texts("aliases"),
        sustained_fraction=row.number("sustained_fraction") if row.has("sustained_fraction") else 1.0,
        medium=row.text("medium", ""),
        pair_fraction=row.number("pair_fraction") if row.has("pair_fraction") else 1.0,
        crowding=row.number("crowding") if row.has("crowding") else 0.0,
        rank_fractions=_rank_fractions(row),
        sums_in_switch=row.flag("sums_in_switch", False),
        host_factor=row.number("host_factor") if row.has("host_factor") else 1.0,
    )


def _rank_fractions(row: rows.CatalogueRow) -> tuple[tuple[int, float], ...]:
    """{ 2 = 0.33, 4 = 0.67 } as pairs."""
    if not row.has("rank_fractions"):
        return ()
    table = row.numbers("rank_fractions")
    if not all(name.isdigit() for name in table):
        raise BadInput(f"rank_fractions are by number of ranks, got {sorted(table)}")
    return tuple((int(name), fraction) for name, fraction in table.items())


_SEVERAL = re.compile(r"\s*(\d+)\s*[xX*×]\s*(\D.*?)\s*|\s*(\D.*?)\s*[xX*×]\s*(\d+)\s*")


# Vendors write GB where they mean GiB, 7.4 % more.
_SAME_SIZE = 0.08


def _spelt_out(key: str) -> str:
    """A plain name with GB for G, without the kind of its memory (a10080g is a10080gb), and with Max-Q in short."""
    key = re.sub(r"withmaxqdesign$", "maxq", key)
    return re.sub(r"(\d)g$", r"\1gb", re.sub(r"(?<=gb)(hbm\d?e?|gddr\d?x?)$", "", key))


def _nearest(variants: tuple[Device, ...], memory_bytes: float | None) -> Device:
    """The variant whose memory is nearest by ratio (the first of equals); without a size, the first."""
    if memory_bytes is None or not memory_bytes > 0:
        return variants[0]
    return min(variants, key=lambda device: abs(log(device.memory_bytes / memory_bytes)))
