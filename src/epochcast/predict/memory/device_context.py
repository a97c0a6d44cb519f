"""Device memory that tensors cannot use: the driver's part, and the context of a process.

    room = usable − context

`context.toml` has the numbers with their sources. A context is mostly kernels, so it depends on which are loaded: until
PyTorch 1.13 all of them at the start, since then those that a step uses. Only GPUs have contexts: a CPU's allocator
takes memory from the host as needed, and other accelerators were not measured.
"""

from dataclasses import dataclass
from importlib.resources import files

from epochcast.base.caching import remembered
from epochcast.base.catalogue_rows import CatalogueRow, parse, read
from epochcast.hardware.device import Device

_FILE = "context.toml"
_DEFAULT = "default"

FrameworkVersion = tuple[int, int]
"""(major, minor); None where a job does not say: the latest."""


@dataclass(frozen=True, slots=True)
class _Context:
    base_bytes: int
    unit_bytes: int


@remembered(1)
def _tables() -> tuple[dict[tuple[str, FrameworkVersion], _Context], dict[str, int], float]:
    """Contexts by generation and by the version of the framework from which they hold, usable bytes by device, and the
    fraction that is usable of any other.
    """
    document = parse(files("epochcast.predict.memory").joinpath(_FILE).read_text(encoding="utf-8"), _FILE)
    contexts = dict(read(document, "context", _FILE, _context))
    usable = dict(read(document, "usable", _FILE, _usable))
    return contexts, {name: int(value) for name, value in usable.items() if value > 1}, usable[_DEFAULT]


def _context(row: CatalogueRow) -> tuple[tuple[str, FrameworkVersion], _Context]:
    row.text("source")
    major, minor = row.text("since").split(".")
    since = int(major), int(minor)
    context = _Context(row.size_bytes("base"), row.size_bytes("per_unit"))
    return (row.text("generation"), since), context


def _usable(row: CatalogueRow) -> tuple[str, float]:
    row.text("source")
    return row.text("device"), row.number("fraction") if row.has("fraction") else row.size_bytes("memory")


def context_bytes(device: Device, version: FrameworkVersion | None = None) -> int:
    """What one process takes beside its tensors."""
    if device.kind != "gpu":
        return 0
    contexts, _, _ = _tables()
    sinces = {since for _, since in contexts if version is None or since <= version}
    since = max(sinces, default=min(since for _, since in contexts))
    context = contexts.get((device.generation, since)) or contexts[_DEFAULT, since]
    return context.base_bytes + context.unit_bytes * device.compute_units


def usable_bytes(device: Device) -> int:
    """What the driver leaves of the data sheet's memory."""
    if device.kind != "gpu":
        return device.memory_bytes
    _, usable, fraction = _tables()
    return usable.get(device.name, int(fraction * device.memory_bytes))


def room_bytes(device: Device, version: FrameworkVersion | None = None) -> int:
    """What an allocator may take."""
    return max(0, usable_bytes(device) - context_bytes(device, version))
