"""How many joules a flop takes at the boost clock, by class of chips and format: D of `hardware.power_law`.

Writes `hardware/power_law.toml` from large matrix products: published ones (`sustained_gemm`), and those of the
operator tables that last at least 2 ms (`ops`). Of every board and format one fraction of the peak; D and the fraction
that a board without a power limit reaches are fitted together,

    log fraction = log top(class, format) + log clock(0.8 · watts / (D(class, format) · peak))

with both held near what is usual for the process, because most classes have few boards. `--check` leaves out one board
at a time and compares with what similar boards sustain (`hardware.sustained.similarity`), with and without the law.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from epochcast.errors import EpochcastError
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.hardware.power_law import FILE, Energy, chip_class, clock_with
from epochcast.hardware.sustained import similarity
from epochcast.measure.tables.table_files import read_table
from training.files import PACKAGE, data_folder, say, write

Array = NDArray[np.float64]
Class = tuple[str, str]

# Joules per fp32 flop that are usual for the process of a class, in picojoules, and how many times less a half takes:
# what the fit starts from and is held near, by a factor of 1.4; 17 for 16 and 12 nm, where P100, V100 and Quadro RTX
# 6000 stop gaining at 180, 220 and 235 W under zeus' limits.
USUAL = {
    "pascal": 17.0,
    "volta": 17.0,
    "turing": 17.0,
    "ampere 64": 13.0,
    "ampere": 7.5,
    "hopper": 5.0,
    "ada": 4.0,
    "blackwell": 4.0,
}
HALF_SHARE = 1 / 10
USUAL_TOP = 0.88
# How far energies, tops and measured fractions lie from those, as logarithms.
_ENERGY_SPREAD, _TOP_SPREAD, _NOISE = 0.35, 0.12, 0.12
LONG_SECONDS = 2e-3
# GeForce cards multiply halves at half the rate of their tensor cores: those that have less than this part of the ratio
# of their class say nothing of the energy that the full rate takes.
FULL_RATE = 0.6
# Boards that run above the boost clock of their sheet count as if they ran at this.
_MOST = 1.1
SOURCE = "fitted by training.power_law on sustained_gemm (mag-, chsasank, stas00), DeepBench and NeuSight"
HEAD = """\
# Energy of a flop at the boost clock in picojoules, by class of chips: vector units in fp32, tensor cores in halves.
# Written by `python -m training.power_law`; `hardware/power_law.py` says how it is used.
"""


@dataclass(frozen=True, slots=True)
class SustainedProduct:
    """The fraction of the peak that large products of one board reach in a format ("vector" or "half")."""

    device: Device
    format: str
    fraction: float

    @property
    def kind(self) -> Class:
        return chip_class(self.device), self.format

    @property
    def math(self) -> str:
        return _math(self.device, self.format)


def _math(device: Device, form: str) -> str:
    return "fp32" if form == "vector" else "bf16" if "bf16" in device.peak_flops_per_second else "fp16"


def products(folder: Path) -> list[SustainedProduct]:
    """One of every board and format: the most that a source reached, because some time single launches."""
    best: dict[tuple[Device, str], float] = {}
    for name, source, dtype, rate in [*_published(folder), *_timed(folder)]:
        try:
            device = find_device(name, source=source)
        except EpochcastError:
            continue
        form = "vector" if dtype == "fp32" else "half"
        is_known = device.kind == "gpu" and device.vendor == "NVIDIA" and device.watts is not None
        if is_known and dtype in device.peak_flops_per_second and (form == "vector" or device.tensor_cores):
            fraction = min(rate / device.peak(dtype), _MOST)
            best[device, form] = max(best.get((device, form), 0.0), fraction)
    boards = [SustainedProduct(device, form, fraction) for (device, form), fraction in best.items()]
    most: dict[str, float] = {}
    for board in boards:
        most[board.kind[0]] = max(most.get(board.kind[0], 0.0), _half_ratio(board.device))
    return [b for b in boards if b.format == "vector" or _half_ratio(b.device) > FULL_RATE * most[b.kind[0]]]


def _half_ratio(device: Device) -> float:
    return device.peak("fp16") / device.peak("fp32")


def _published(folder: Path) -> list[tuple[str, str, str, float]]:
    import polars as pl

    table = read_table(folder / "sustained_gemm.parquet").filter(pl.col("dtype").is_in(["fp32", "fp16", "bf16"]))
    return list(table.select("device", "source", "dtype", "flops_per_second").iter_rows())


def _timed(folder: Path) -> list[tuple[str, str, str, float]]:
    """The 95th percentile of long products of a table."""
    import polars as pl

    table = read_table(folder / "ops.parquet").filter(
        (pl.col("family") == "matmul") & (pl.col("phase") == "forward") & (pl.col("seconds") > LONG_SECONDS)
    )
    best = table.group_by("device", "source", "dtype", maintain_order=True).agg(
        (pl.col("flops") / pl.col("seconds")).quantile(0.95).alias("rate")
    )
    formats = {"float32": "fp32", "float16": "fp16"}
    return [(device, source, formats[dtype], rate) for device, source, dtype, rate in best.iter_rows()]


def fitted(boards: Sequence[SustainedProduct]) -> dict[str, Energy]:
    """Energies by class of chips."""
    from scipy.optimize import least_squares

    kinds = [(name, form) for name in USUAL for form in ("vector", "half")]
    places = {kind: place for place, kind in enumerate(kinds)}
    usual = np.log([USUAL[name] * (HALF_SHARE if form == "half" else 1.0) * 1e-12 for name, form in kinds])
    tops = np.full(len(kinds), np.log(USUAL_TOP))
    known = [board for board in boards if board.kind in places]

    def misses(values: Array) -> Array:
        energies, top = values[: len(kinds)], values[len(kinds) :]
        errors = []
        for board in known:
            place = places[board.kind]
            joules = float(np.exp(energies[place]))
            clock = clock_with(Energy(joules, joules), board.device, board.math)
            errors.append((np.log(clock) + top[place] - np.log(board.fraction)) / _NOISE)
        return np.concatenate([errors, (energies - usual) / _ENERGY_SPREAD, (top - tops) / _TOP_SPREAD])

    values = np.exp(least_squares(misses, np.concatenate([usual, tops]), loss="soft_l1").x)
    return {name: Energy(values[places[name, "vector"]], values[places[name, "half"]]) for name in USUAL}


def left_out(boards: Sequence[SustainedProduct]) -> list[tuple[SustainedProduct, float, float]]:
    """Every board with what similar boards say of it, without and with the law fitted without it."""
    answers = []
    for board in boards:
        rest = [other for other in boards if other.device.name != board.device.name]
        alike = [other for other in rest if other.format == board.format]
        energies = fitted(rest)
        weight = np.array([similarity(board.device, other.device) for other in alike])
        clocks = np.array([_clock(energies, other) for other in alike])
        logs = np.log([other.fraction for other in alike])
        plain = float(np.exp(np.average(logs, weights=weight)))
        lawful = float(np.exp(np.average(logs - np.log(clocks), weights=weight))) * _clock(energies, board)
        answers.append((board, plain, lawful))
    return answers


def _clock(energies: Mapping[str, Energy], board: SustainedProduct) -> float:
    return clock_with(energies.get(chip_class(board.device)), board.device, board.math)


def energies_toml(energies: Mapping[str, Energy]) -> str:
    """The file."""
    blocks = [HEAD]
    for name, energy in energies.items():
        figures = f"vector_picojoules = {energy.vector * 1e12:.3g}\nhalf_picojoules = {energy.half * 1e12:.3g}"
        blocks.append(f'[[energy]]\nchips = "{name}"\n{figures}\nsource = "{SOURCE}"\n')
    return "\n".join(blocks)


def main() -> None:
    """Write the file, or check it."""
    boards = products(data_folder())
    if "--check" not in sys.argv:
        write(PACKAGE / "hardware" / FILE, energies_toml(fitted(boards)).encode())
        return
    answers = left_out(boards)
    for board, plain, lawful in sorted(answers, key=lambda each: (each[0].format, each[0].device.name)):
        say(f"{board.format} {board.device.name}: {board.fraction:.2f}, similar {plain:.2f}, law {lawful:.2f}")
    for form in ("vector", "half"):
        logs = np.array([[np.log(a / b.fraction), np.log(c / b.fraction)] for b, a, c in answers if b.format == form])
        before, after = np.mean(np.abs(np.exp(logs) - 1), axis=0)
        say(f"{form}: {len(logs)} boards, error {before:.1%} without the law, {after:.1%} with it")


if __name__ == "__main__":
    main()
