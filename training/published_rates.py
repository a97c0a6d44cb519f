"""Which fraction of its data sheet one large matrix product, or one large copy, was published to reach.

Writes `hardware/published_rates.toml` from the table `sustained_gemm`: the most that a search over shapes found, by
device, math and source. It is a prior for devices that nobody measured, not a profile. Of several sources the median
is kept, with the range. Left out, and said so: rates of formats that the device computes by emulation, and rates above
the peak (GeForce cards run above the boost clock of their sheet; tables have slips), because a peak bounds.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from epochcast.errors import EpochcastError
from epochcast.hardware.catalogue import devices, find_device
from epochcast.hardware.device import Device
from epochcast.hardware.published_rates import FILE
from epochcast.measure.tables.table_files import read_table
from training.files import PACKAGE, data_folder, say, write

BANDWIDTH = "bandwidth"
HEAD = """\
# Published rates: fractions of the peak that the best of many matrix products reached, by math, and of the bandwidth
# that a large copy reached (reads and writes counted). A prior for devices without measurements, not a profile.
# `low` and `high` are the range where sources disagree; the fraction is their median.
# Written by `python -m training.published_rates` from: {sources}.
"""
SOURCES = {
    "mag_gpu_benchmark": "github.com/mag-/gpu_benchmark",
    "chsasank_device_benchmarks": "github.com/chsasank/device-benchmarks",
    "stas_ml_engineering": "github.com/stas00/ml-engineering (MAMF)",
}


@dataclass(frozen=True, slots=True)
class Published:
    """One published rate as a fraction of the data sheet; `what` is a math or the bandwidth."""

    device: Device
    what: str
    fraction: float
    source: str


def published(rows: list[dict[str, object]], dropped: list[str]) -> Iterator[Published]:
    """Every usable rate of the table; the others are named in `dropped`, with the reason."""
    for row in rows:
        name, source, math = str(row["device"]), str(row["source"]), str(row["dtype"])
        try:
            device = find_device(name, source=source)
        except EpochcastError as error:
            dropped.append(f"{name} {math} ({source}): {error}")
            continue
        if math not in device.peak_flops_per_second:
            dropped.append(f"{name} {math} ({source}): {device.name} has no {math}, it is emulated")
        else:
            yield Published(device, math, _number(row["flops_per_second"]) / device.peak(math), source)
        if row["bytes_per_second"] is not None:
            part = _number(row["bytes_per_second"]) / device.memory_bytes_per_second
            yield Published(device, BANDWIDTH, part, source)


def fractions(
    rates: list[Published], dropped: list[str]
) -> Mapping[Device, Mapping[str, tuple[float, float, float, str]]]:
    """(median, low, high, sources) by device and math; those above the peak are named in `dropped`."""
    found: dict[Device, dict[str, list[Published]]] = {}
    for rate in dict.fromkeys(rates):  # the bandwidth of a device is written beside each of its maths
        if rate.fraction > 1:
            dropped.append(f"{rate.device.name} {rate.what} ({rate.source}): {rate.fraction:.3f} of the peak")
        else:
            found.setdefault(rate.device, {}).setdefault(rate.what, []).append(rate)
    return {
        device: {
            what: (
                median(r.fraction for r in several),
                min(r.fraction for r in several),
                max(r.fraction for r in several),
                ", ".join(sorted({r.source for r in several})),
            )
            for what, several in by_what.items()
        }
        for device, by_what in found.items()
    }


def rates_toml(table: Mapping[Device, Mapping[str, tuple[float, float, float, str]]]) -> str:
    """The file."""
    sources = "; ".join(f"{name} is {address}" for name, address in SOURCES.items())
    blocks = [HEAD.format(sources=sources)]
    for device in (d for d in devices() if d in table):
        for what, (middle, low, high, source) in sorted(table[device].items()):
            spread = f"low = {low:.3f}\nhigh = {high:.3f}\n" if low != high else ""
            rate = f'name = "{device.name}"\nof = "{what}"\nfraction = {middle:.3f}\n'
            blocks.append(f'[[rate]]\n{rate}{spread}source = "{source}"\n')
    return "\n".join(blocks)


def written(folder: Path) -> tuple[str, list[str]]:
    """The file from the measurements in a folder, and what was left out of it."""
    dropped: list[str] = []
    rates = list(published(read_table(folder / "sustained_gemm.parquet").to_dicts(), dropped))
    return rates_toml(fractions(rates, dropped)), dropped


def main() -> None:
    """Write the file; say what was left out."""
    text, dropped = written(data_folder())
    for line in dropped:
        say(f"left out: {line}")
    write(PACKAGE / "hardware" / FILE, text.encode())


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)


if __name__ == "__main__":
    main()
