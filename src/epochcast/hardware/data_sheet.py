"""A user's own data sheet: any GPU, a laptop part or a board under a power limit, in a small TOML file.

    name = "my laptop"              the file's name if left out
    like = "RTX 4090 Laptop"        a device of the catalogue, which gives what the file does not
    memory = "16 GiB"
    bandwidth = "576 GB/s"
    fp32 = "33 TFLOPS"              peaks by math, dense, tensor cores with fp32 accumulation
    fp16 = "66 TFLOPS"
    compute_units = 76              multiprocessors or compute units
    watts = 150
    power_limit = 100

Without `like`, a file needs memory, bandwidth, fp32 and compute_units; `generation` ("ada") makes the estimate better,
and gives bf16 and tf32 their usual proportion to fp16 and the L2 cache its usual size. With `like`, peaks that are not
given follow the given fp32 (or units times clock) in proportion.

A power limit lowers the clock, and with it every peak, not the bandwidth:

    y = (power_limit / watts - 0.2) / 0.8          clock = boost clock · y^(1/3), or · y / 0.71 where y < 0.6

(`hardware.power_law`), because power goes with frequency times the square of the voltage, and the voltage with the
frequency down to its least. It is assumed that the board takes all of its `watts` at its boost clock: a card that never
needs them loses less.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from epochcast.base import catalogue_rows as rows
from epochcast.base.documents import read_text
from epochcast.base.name_matching import plain
from epochcast.describe.graph.math_modes import MATHS
from epochcast.errors import BadInput, EpochcastError, UnknownName
from epochcast.hardware import catalogue
from epochcast.hardware.device import RANGES, Device
from epochcast.hardware.power_law import limited_clock
from epochcast.units import parse_flops_rate, parse_hertz, parse_watts

MOST_BYTES = 100_000
"""A larger file is no data sheet."""
NEEDED = ("memory", "bandwidth", "fp32", "compute_units")
TEXTS = ("name", "like", "vendor", "kind", "generation", "interconnect", "host_link", "note")
KEYS = (*TEXTS, "year", "compute_units", "clock", "memory", "bandwidth", "l2", "watts", "power_limit", *MATHS)
UNKNOWN_GENERATION = "unknown"
# For the clock where the file has none; it does not enter the seconds of an op.
LANES_PER_UNIT, CLOCKS = 128, RANGES["clock_hertz"]
# Figures of a sheet that differ by less are those of the same device, rounded.
SAME_FIGURE = 0.02
RECENT_YEARS = 3
# Where no relative has one: as on most GPUs before 2022.
L2_OF_A_UNIT = 2**16
# Below, hardly any power is left for arithmetic: memory and the board itself take a fifth.
LEAST_POWER = 0.3
# From here on narrow formats have units of their own.
TENSOR_CORES = 1.9


def read_data_sheet(path: str | Path) -> Device:
    """The device of a data sheet; what is wrong is said with the file and the key."""
    file = Path(path)
    if not file.is_file():
        raise BadInput(f"no file {str(path)!r}: a device that ends in .toml is a data sheet")
    return load_data_sheet(read_text(file, MOST_BYTES), file.name)


def load_data_sheet(text: str, file: str) -> Device:
    """The device of the text of a data sheet."""
    cells = rows.parse(text, file)
    for key in cells:
        if key not in KEYS:
            raise BadInput(f"{file}: {UnknownName('key', key, KEYS)}")
    row = rows.CatalogueRow(cells, file)
    try:
        like = catalogue.find_device(row.text("like")) if row.has("like") else None
        if like is not None and (like.sheet or like.generation == "host"):
            raise BadInput(f"'like' must be a device of the catalogue, got {row.text('like')!r}")
        device = _with_twin(_alone(row, file)) if like is None else _alike(row, file, like)
        return _limited(row, device)
    except rows.BadRow:
        raise
    except EpochcastError as error:
        raise rows.BadRow(file, error) from None


def _alone(row: rows.CatalogueRow, file: str) -> Device:
    """A device that the file describes by itself."""
    for key in NEEDED:
        if not row.has(key):
            raise BadInput(f"{key!r} is missing; a data sheet needs {', '.join(NEEDED)}, or `like`")
    generation = _generation(row)
    relatives = [d for d in catalogue.devices() if d.generation == generation]
    peaks = _with_twins(_peaks(row), relatives)
    units = _count(row, "compute_units")
    assumed_clock = min(max(peaks["fp32"] / (2 * LANES_PER_UNIT * units), CLOCKS[0]), CLOCKS[1])
    host_link = row.text("host_link", "pcie4")
    newest = max(d.year for d in relatives or catalogue.devices())
    return Device(
        name=_name(row, file),
        vendor=row.text("vendor", relatives[0].vendor if relatives else "unknown"),
        kind=row.text("kind", "gpu"),
        generation=generation,
        year=row.count("year") if row.has("year") else newest,
        compute_units=units,
        clock_hertz=_quantity(row, "clock", parse_hertz) or assumed_clock,
        peak_flops_per_second=peaks,
        memory_bytes=_memory_bytes(row),
        memory_bytes_per_second=_memory_bytes_per_second(row),
        l2_bytes=row.size_bytes("l2") if row.has("l2") else _l2_bytes(units, relatives),
        launch_seconds=None,
        interconnect=catalogue.find_link(row.text("interconnect", host_link)).name,
        host_link=catalogue.find_link(host_link).name,
        tensor_cores=_has_tensor_cores(peaks),
        source=f"the data sheet in {file}",
        verified=False,
        note=row.text("note", ""),
        watts=_quantity(row, "watts", parse_watts),
        sheet=file,
    )


def _with_twin(device: Device) -> Device:
    """Like the device of the catalogue that its figures are those of, if there is one."""

    def is_near(first: float, second: float) -> bool:
        return abs(first - second) <= SAME_FIGURE * second

    for other in catalogue.devices():
        if (
            (device.generation, device.compute_units) == (other.generation, other.compute_units)
            and is_near(device.peak("fp32"), other.peak("fp32"))
            and is_near(device.peak("fp16"), other.peak("fp16"))
            and is_near(device.memory_bytes_per_second, other.memory_bytes_per_second)
        ):
            return replace(device, like=other.name)
    return device


def _l2_bytes(units: int, relatives: list[Device]) -> int:
    """As much for a unit as devices of the generation have, or all GPUs of the last years: it is never none."""
    newest = max(d.year for d in catalogue.devices())
    modern = [d for d in catalogue.devices() if d.kind == "gpu" and d.year >= newest - RECENT_YEARS]
    caches = [d.l2_bytes / d.compute_units for d in relatives or modern if d.l2_bytes is not None]
    return round(units * median(caches or [L2_OF_A_UNIT]))


def _alike(row: rows.CatalogueRow, file: str, like: Device) -> Device:
    """A device of the catalogue with what the file changes."""
    units = _count(row, "compute_units") if row.has("compute_units") else like.compute_units
    clock = _quantity(row, "clock", parse_hertz) or like.clock_hertz
    peaks = _peaks(row)
    scale = units * clock / (like.compute_units * like.clock_hertz)
    if "fp32" in peaks:
        scale = peaks["fp32"] / like.peak("fp32")
    changes: dict[str, Any] = {key: row.text(key) for key in ("vendor", "kind", "note") if row.has(key)}
    changes |= {key: catalogue.find_link(row.text(key)).name for key in ("interconnect", "host_link") if row.has(key)}
    if row.has("generation"):
        changes["generation"] = _generation(row)
    if row.has("year"):
        changes["year"] = row.count("year")
    if row.has("memory"):
        changes["memory_bytes"] = _memory_bytes(row)
    if row.has("bandwidth"):
        changes["memory_bytes_per_second"] = _memory_bytes_per_second(row)
    if row.has("l2"):
        changes["l2_bytes"] = row.size_bytes("l2")
    if row.has("watts"):
        changes["watts"] = _quantity(row, "watts", parse_watts)
    peaks = {**{math: peak * scale for math, peak in like.peak_flops_per_second.items()}, **peaks}
    return replace(
        like,
        name=_name(row, file),
        aliases=(),
        compute_units=units,
        clock_hertz=clock,
        peak_flops_per_second=peaks,
        tensor_cores=_has_tensor_cores(peaks),
        source=f"the data sheet in {file}, the rest taken from {like.name}",
        verified=False,
        sheet=file,
        like=like.name,
        **changes,
    )


def _limited(row: rows.CatalogueRow, device: Device) -> Device:
    """The device under its power limit: clock and peaks as `power_law.limited_clock` has them."""
    limit = _quantity(row, "power_limit", parse_watts)
    if limit is None:
        return device
    if device.watts is None:
        raise BadInput("'power_limit' says nothing without the `watts` that the board takes at its boost clock")
    if not LEAST_POWER * device.watts <= limit <= device.watts:
        least = LEAST_POWER * device.watts
        raise BadInput(f"'power_limit' must be between {least:g} and the {device.watts:g} `watts`, got {limit:g}")
    slower = limited_clock(limit / device.watts)
    peaks = {math: peak * slower for math, peak in device.peak_flops_per_second.items()}
    limited = f"{device.source}; clock and peaks times {slower:.3f} for {limit:g} of {device.watts:g} W, assumed"
    return replace(
        device, clock_hertz=device.clock_hertz * slower, peak_flops_per_second=peaks, watts=limit, source=limited
    )


def _name(row: rows.CatalogueRow, file: str) -> str:
    """The file's own name for it; never that of a device of the catalogue, whose measurements it does not have."""
    used_names = {plain(name) for d in catalogue.devices() for name in (d.name, *d.aliases)}
    if not row.has("name"):
        stem = Path(file).stem
        return stem if plain(stem) not in used_names else f"{stem} (own sheet)"
    name = row.text("name").strip()
    if not plain(name):
        raise BadInput(f"'name' must have letters or digits, got {name!r}")
    if plain(name) in used_names:
        raise BadInput(f"'name': {name!r} is a device of the catalogue; call yours otherwise, with like = {name!r}")
    return name


def _generation(row: rows.CatalogueRow) -> str:
    generations = {d.generation for d in catalogue.devices()}
    name = row.text("generation", UNKNOWN_GENERATION)
    if name not in generations and name != UNKNOWN_GENERATION:
        raise UnknownName("generation", name, generations)
    return name


def _peaks(row: rows.CatalogueRow) -> dict[str, float]:
    """The given peaks, in the order of MATHS."""
    peaks = {math: _quantity(row, math, parse_flops_rate) for math in MATHS if row.has(math)}
    for math, peak in peaks.items():
        if peak is None or not 1e9 <= peak <= 1e17:
            raise BadInput(f"{math!r} must be between 1 GFLOPS and 100 PFLOPS, got {row.text(math)!r}")
    published = {math: peak for math, peak in peaks.items() if peak is not None}
    vector = published.get("fp32_vector")
    if vector is not None and vector > published.get("fp32", vector):
        raise BadInput("'fp32_vector' is a rate above the peak 'fp32'")
    return published


def _with_twins(peaks: dict[str, float], relatives: list[Device]) -> dict[str, float]:
    """With bf16 and tf32 where only fp16 is given and all devices of the generation have them: in their proportion."""
    twins = [math for math in ("bf16", "tf32") if math not in peaks and "fp16" in peaks]
    for math in twins:
        if relatives and all(math in d.peak_flops_per_second for d in relatives):
            share = median(d.peak(math) / d.peak("fp16") for d in relatives)
            peaks = {**peaks, math: max(peaks["fp32"], peaks["fp16"] * share)}
    return peaks


def _memory_bytes(row: rows.CatalogueRow) -> int:
    size_bytes = row.size_bytes("memory")
    _check_range(row, "memory", "memory_bytes", size_bytes)
    return size_bytes


def _memory_bytes_per_second(row: rows.CatalogueRow) -> float:
    rate = row.rate_bytes_per_second("bandwidth")
    _check_range(row, "bandwidth", "memory_bytes_per_second", rate)
    return rate


def _check_range(row: rows.CatalogueRow, key: str, field: str, value: float) -> None:
    """Refuse with the file's key, where `Device` would name its own field."""
    low, high = RANGES[field]
    if not low <= value <= high:
        raise BadInput(f"{key!r} is implausible: {row.text(key)!r} is not between {low:g} and {high:g} bytes")


def _count(row: rows.CatalogueRow, key: str) -> int:
    count = row.count(key)
    if not 1 <= count <= 10**5:
        raise BadInput(f"{key!r} must be between 1 and 100,000, got {count}")
    return count


def _quantity(row: rows.CatalogueRow, key: str, parse: Callable[[str], float]) -> float | None:
    """A number with its unit; watts may be written without."""
    if not row.has(key):
        return None
    try:
        value = row.number(key) if parse is parse_watts and not row.is_text(key) else parse(row.text(key))
    except BadInput as error:
        message = str(error)
        raise BadInput(message if repr(key) in message else f"{key!r}: {message}") from None
    if not value > 0:
        raise BadInput(f"{key!r} must be above 0, got {value:g}")
    return value


def _has_tensor_cores(peaks: Mapping[str, float]) -> bool:
    return max(peaks.get("fp16", 0.0), peaks.get("bf16", 0.0)) > TENSOR_CORES * peaks["fp32"]


def data_sheet_text(device: Device) -> str:
    """A data sheet that reads back as this device under another name: a start for one's own."""
    size_bytes = device.memory_bytes
    memory = f"{size_bytes // 2**20} MiB" if size_bytes % 2**20 == 0 else f"{size_bytes} B"
    lines = [
        "# What you delete is taken from `like`.",
        f'name = "my {device.name}"',
        f'like = "{device.like or device.name}"',
        f'memory = "{memory}"',
        f'bandwidth = "{device.memory_bytes_per_second / 1e9:.6g} GB/s"',
        f"compute_units = {device.compute_units}",
        f'clock = "{device.clock_hertz / 1e9:.6g} GHz"',
        *(f'{math} = "{peak / 1e12:.6g} TFLOPS"' for math, peak in device.peak_flops_per_second.items()),
        f"watts = {device.watts:g}" if device.watts is not None else "# watts = 300",
        "# power_limit = 200",
    ]
    return "\n".join(lines) + "\n"
