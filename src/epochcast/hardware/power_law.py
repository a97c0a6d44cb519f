"""The clock that a board's power sustains: products at the full boost clock need more watts than many boards may draw.

A fifth of the board's power goes into memory, leakage and the board itself. What the multipliers take goes with the
clock and the square of the voltage, which follows the clock down to its least:

    y     = 0.8 · watts / (D · peak)                 D: joules per flop at the boost clock, by generation and format
    clock = min(1, y^(1/3))                          while the voltage can fall
    clock = y / v²             where y < v³          at the least voltage, which is reached at v = 0.845 of the clock

More watts are never slower, nor is a higher peak: peak · clock grows with the peak or stays. The fifth and v are fitted
on measured steps under power limits (zeus: ResNet-50 and BERT on V100, A40, Quadro RTX 6000 and P100 at 100 to 300 W,
within 5 % in the mean), D on large products of boards with different power (`training.power_law` writes
`power_law.toml`). Generations without a row and boards whose power is not known are taken to run at their boost clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from epochcast.base import catalogue_rows as rows
from epochcast.base.caching import remembered
from epochcast.describe.graph.math_modes import MATHS
from epochcast.errors import BadInput
from epochcast.hardware.device import Device

FILE = "power_law.toml"
IDLE_SHARE = 0.2
LEAST_VOLTAGE = 0.845
# Ampere's large chip has half the fp32 lanes per multiprocessor of the others, and another process.
_WIDE_LANES = 96
# Energy of a product goes with the bits that are multiplied: relative to fp32, and to halves on tensor cores.
_VECTOR_ENERGY = {"fp64": 2.0, "fp64_vector": 2.0, "fp16": 0.5, "fp16_vector": 0.5}
_TENSOR_ENERGY = {"tf32": 2.0, "fp16": 1.0, "bf16": 1.0, "fp8": 0.5, "fp4": 0.25, "int8": 0.5}


@dataclass(frozen=True, slots=True)
class Energy:
    """Joules per flop at the boost clock: of vector units in fp32, and of tensor cores in halves."""

    vector: float
    half: float

    def __post_init__(self) -> None:
        if not (0 < self.half <= self.vector):
            raise BadInput(f"energies must be positive, a half's the smaller, got {self.vector} and {self.half}")


def chip_class(device: Device) -> str:
    """The chips that share an energy per flop: a generation, large and small chips of Ampere apart."""
    lanes = device.peak("fp32_vector") / (2 * device.compute_units * device.clock_hertz)
    return f"{device.generation} 64" if device.generation == "ampere" and lanes < _WIDE_LANES else device.generation


def clock_at(power_ratio: float) -> float:
    """The fraction of the boost clock at so much of the power that it needs, y above."""
    if power_ratio >= LEAST_VOLTAGE**3:
        return min(1.0, float(power_ratio ** (1 / 3)))
    return max(power_ratio, 0.0) / LEAST_VOLTAGE**2


def limited_clock(share: float) -> float:
    """The fraction of its clock that a board keeps at a share of its power, if it needs all of it at the full clock."""
    return clock_at((share - IDLE_SHARE) / (1 - IDLE_SHARE))


def clock_fraction(device: Device, math: str) -> float:
    """The fraction of the boost clock that large products in `math` sustain."""
    return clock_with(_energies().get(chip_class(device)) if device.vendor == "NVIDIA" else None, device, math)


def clock_with(energy: Energy | None, device: Device, math: str) -> float:
    """The same by a given energy per flop."""
    if energy is None or device.watts is None or not device.has(math):
        return 1.0
    run = math
    while run not in device.peak_flops_per_second:
        run = MATHS[run].stand_in
    if device.tensor_cores and run in _TENSOR_ENERGY:
        joules = energy.half * _TENSOR_ENERGY[run]
    elif run == "fp64" and "fp64_vector" in device.peak_flops_per_second:
        joules = energy.vector  # tensor cores multiply doubles at twice the rate, for about the same power
    else:
        joules = energy.vector * _VECTOR_ENERGY.get(run, 1.0)
    return clock_at((1 - IDLE_SHARE) * device.watts / (joules * device.peak(run)))


def sustained_peak(device: Device, math: str) -> float:
    """The peak at the clock that the board's power sustains."""
    return device.peak(math) * clock_fraction(device, math)


def load_energies(text: str, file: str = FILE) -> Mapping[str, Energy]:
    """By class of chips, checked."""
    return dict(rows.read(rows.parse(text, file), "energy", file, _energy))


def _energy(row: rows.CatalogueRow) -> tuple[str, Energy]:
    row.text("source")
    return row.text("chips"), Energy(1e-12 * row.number("vector_picojoules"), 1e-12 * row.number("half_picojoules"))


@remembered(1)
def _energies() -> Mapping[str, Energy]:
    return load_energies(rows.shipped(FILE, __file__))
