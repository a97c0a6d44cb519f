"""A device by its data sheet: how fast it could be, how much it holds, how it is wired. No measurement enters here.

A *math name* says in which format the multiply units work. Peaks are dense (no structured sparsity) and count a
multiply-add as two flops:

    fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8
                                              of the tensor or matrix cores where the device has them for that format,
                                              accumulating in fp32 (fp8 too), else of the ordinary vector units
    fp32_vector, fp16_vector                  of the vector units, where the same format is faster on matrix cores

On NVIDIA's GeForce cards fp16 with fp32 accumulation runs at half the advertised tensor rate; the lower one is given.
Hardware does not know operators: which math an op uses is decided by whoever costs it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite

from epochcast.errors import BadInput, UnknownName

MATHS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8", "fp32_vector", "fp16_vector")

# What software does when the silicon lacks a format. There is no entry for fp64 and int8: nothing stands in for them.
STAND_INS: Mapping[str, str] = {
    "tf32": "fp32",  # before Ampere the flag has no effect
    "fp16": "fp32",  # stored as halves, computed as singles: native half rates of 1/64 are never used
    "bf16": "fp32",  # emulated: widened to fp32
    "fp8": "fp16",  # cast up
    "fp4": "fp8",  # cast up
    "fp32_vector": "fp32",
    "fp16_vector": "fp32",
}

DEVICE_KINDS = ("gpu", "cpu", "tpu", "other")


@dataclass(frozen=True, slots=True)
class Device:
    """One accelerator (or one die of it, where software sees dies), or one host's processors."""

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "peak_flops_per_second", dict(self.peak_flops_per_second))
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
        for math in self.peak_flops_per_second:
            if math not in MATHS:
                raise UnknownName("math", math, MATHS)
        # Wide on purpose: they catch a slipped prefix (GB for GiB is fine, GB for TB is not), not an unusual device.
        _check_range("clock_hertz", self.clock_hertz, 1e8, 1e10)
        for math, flops_per_second in self.peak_flops_per_second.items():
            _check_range(f"peak_flops_per_second of {math}", flops_per_second, 1e9, 1e17)
        _check_range("memory_bytes", self.memory_bytes, 2**28, 2**50)
        _check_range("memory_bytes_per_second", self.memory_bytes_per_second, 1e9, 1e14)
        if self.l2_bytes is not None:
            _check_range("l2_bytes", self.l2_bytes, 2**14, 2**40)
        if self.launch_seconds is not None:
            _check_range("launch_seconds", self.launch_seconds, 1e-8, 1.0)

    def peak(self, math: str) -> float:
        """Flops per second in `math`; where the device lacks it, in the format software falls back to (STAND_INS)."""
        if math not in MATHS:
            raise UnknownName("math", math, MATHS)
        tried = math
        while tried not in self.peak_flops_per_second:
            if tried not in STAND_INS:
                raise UnknownName(f"math of {self.name}", math, self.peak_flops_per_second)
            tried = STAND_INS[tried]
        return self.peak_flops_per_second[tried]


def _check_range(what: str, value: float, low: float, high: float) -> None:
    if not (isfinite(value) and low <= value <= high):
        raise BadInput(f"{what} must be between {low:g} and {high:g}, got {value}")
