"""A device by its data sheet: how fast it could be, how much it holds, how it is wired. No measurement enters here but
the user's own (`measured_fractions`).

A *math name* says in which format the multiply units work. Peaks are dense (no structured sparsity) and count a
multiply-add as two flops:

    fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8
                                              of the tensor or matrix cores where the device has them for that format,
                                              accumulating in fp32 (fp8 too), else of the ordinary vector units
    fp32_vector, fp16_vector, fp64_vector     of the vector units, where the same format is faster on matrix cores

On NVIDIA's GeForce cards fp16 with fp32 accumulation runs at half the advertised tensor rate; the lower one is given.
Devices know nothing of operators: the cost model decides which math an op uses.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite

from epochcast.describe.graph.math_modes import MATHS
from epochcast.errors import BadInput, UnknownName

DEVICE_KINDS = ("gpu", "cpu", "tpu", "other")


@dataclass(frozen=True, slots=True)
class Device:
    """One accelerator (or one die of it, where software sees dies), or one host's processors.

    >>> import epochcast as ec
    >>> device = ec.place("A100").device
    >>> device.name, device.peak_flops_per_second["bf16"] / 1e12
    ('A100-SXM4-40GB', 312.0)
    """

    name: str
    vendor: str
    kind: str
    generation: str
    year: int
    compute_units: int
    clock_hertz: float
    peak_flops_per_second: Mapping[str, float] = field(hash=False)
    memory_bytes: int
    memory_bytes_per_second: float
    l2_bytes: int | None
    launch_seconds: float | None
    interconnect: str
    host_link: str
    tensor_cores: bool
    source: str
    verified: bool
    aliases: tuple[str, ...] = ()
    note: str = ""
    watts: float | None = None
    sheet: str = ""
    """The file of a user's own data sheet; empty for a device of the catalogue and for this host."""
    like: str = ""
    """The device of the catalogue that sustains about the same part of its data sheet, if a user's sheet names one."""
    measured_fractions: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Fractions of the peak that products sustain (`hardware.sustained`), by math, where the user measured one."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "peak_flops_per_second", dict(self.peak_flops_per_second))
        object.__setattr__(self, "measured_fractions", dict(self.measured_fractions))
        if not self.name or not self.source:
            raise BadInput(f"a device needs a name and a source, got {self.name!r} and {self.source!r}")
        if self.kind not in DEVICE_KINDS:
            raise BadInput(f"kind must be one of {', '.join(DEVICE_KINDS)}, got {self.kind!r}")
        if not 2000 <= self.year <= 2100:
            raise BadInput(f"year must be between 2000 and 2100, got {self.year}")
        if self.compute_units < 1:
            raise BadInput(f"compute_units must be at least 1, got {self.compute_units}")
        if "fp32" not in self.peak_flops_per_second:
            raise BadInput(f"peak_flops_per_second must contain 'fp32', got {sorted(self.peak_flops_per_second)}")
        _check_maths("peak_flops_per_second", self.peak_flops_per_second, 1e9, 1e17)
        _check_maths("measured_fractions", self.measured_fractions, 1e-4, 10.0)
        for name, (low, high) in RANGES.items():
            if getattr(self, name) is not None:
                _check_range(name, getattr(self, name), low, high)

    @property
    def chip(self) -> tuple[str, str, int]:
        """What boards with the same chip have in common, whatever their clocks and memory."""
        return self.vendor, self.generation, self.compute_units

    def has(self, math: str) -> bool:
        """Whether a math, or a format that replaces it, is on the data sheet."""
        while math and math not in self.peak_flops_per_second:
            math = MATHS[math].stand_in
        return bool(math)

    def peak(self, math: str) -> float:
        """Flops per second in `math`; if the device lacks it, in the format that replaces it."""
        if math not in MATHS:
            raise UnknownName("math", math, MATHS)
        tried = math
        while tried not in self.peak_flops_per_second:
            tried = MATHS[tried].stand_in
            if not tried:
                raise UnknownName(f"math of {self.name}", math, self.peak_flops_per_second)
        return self.peak_flops_per_second[tried]


RANGES: Mapping[str, tuple[float, float]] = {
    "clock_hertz": (1e8, 1e10),
    "memory_bytes": (2**28, 2**50),
    "memory_bytes_per_second": (1e9, 1e14),
    "l2_bytes": (2**14, 2**40),
    "launch_seconds": (1e-8, 1.0),
}
"""Wide on purpose: they catch a wrong prefix (GB for TB, not GB for GiB), not an unusual device."""


def _check_maths(name: str, by_math: Mapping[str, float], low: float, high: float) -> None:
    for math, value in by_math.items():
        if math not in MATHS:
            raise UnknownName("math", math, MATHS)
        _check_range(f"{name} of {math}", value, low, high)


def _check_range(name: str, value: float, low: float, high: float) -> None:
    if not (isfinite(value) and low <= value <= high):
        raise BadInput(f"{name} must be between {low:g} and {high:g}, got {value}")
