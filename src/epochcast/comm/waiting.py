"""What ranks that step together cost each other beyond the wire.

Steps of one rank vary by a relative spread σ, and everybody waits for the slowest of p. For p normal draws

    E[max] ≈ σ · Φ⁻¹((p - 3/8)/(p + 1/4))                       (Blom 1958)

so the wait grows like √(2 ln p). `accumulate` passes between two exchanges average out: σ/√accumulate. Where samples
differ in length (translation, speech) by a relative spread s, a batch of n differs by s/√n more. Beside it stands a
share of the step that several GPUs cost whatever their number (host and power shared by a box), and host seconds per
exchanged step.

Kernels slow down while a collective moves data through the same memory: each hidden second of it costs

    min(1, κ · B_wire/B_memory)  seconds,

nearly nothing behind an Ethernet card, all of it behind NVLink, where hiding gains nothing.
"""

from dataclasses import dataclass
from functools import cache
from math import hypot, sqrt
from statistics import NormalDist

from epochcast.comm.protocol import fitted
from epochcast.hardware.cluster import Group
from epochcast.hardware.device import Device


@dataclass(frozen=True, slots=True)
class Waiting:
    """The fitted constants, from fitted.toml."""

    spread_fraction: float
    ragged_sample_fraction: float
    shared_fraction: float
    step_seconds: float
    bucket_seconds: float
    contention: float
    source: str


@cache
def waiting() -> Waiting:
    """The shipped constants."""
    return Waiting(**fitted()["waiting"])


def exchange_error_seconds(added_seconds: float) -> tuple[float, float]:
    """How far below and above what an exchange adds to a step may really lie."""
    known = fitted()["exchange_error"]
    return added_seconds * float(known["below_fraction"]), added_seconds * float(known["above_fraction"])


def slowest_of(ranks: int) -> float:
    """Φ⁻¹((p - 3/8)/(p + 1/4)): how many spreads the slowest of p ranks lies above their mean; 0 for one."""
    return NormalDist().inv_cdf((ranks - 0.375) / (ranks + 0.25)) if ranks > 1 else 0.0


def waiting_seconds(
    compute_seconds: float, ranks: int, *, accumulate: int = 1, ragged_samples: int = 0, known: Waiting | None = None
) -> float:
    """What a step of `compute_seconds` on each of `ranks` waits for the slowest, and pays for being many.

    `ragged_samples` is how many samples of different lengths a rank has; 0 where all are of one length.
    """
    if ranks == 1:
        return 0.0
    known = known or waiting()
    ragged = known.ragged_sample_fraction / sqrt(ragged_samples) if ragged_samples else 0.0
    spread = hypot(known.spread_fraction, ragged)
    fraction = spread * slowest_of(ranks) / sqrt(accumulate) + known.shared_fraction
    return compute_seconds * fraction + known.step_seconds


def contention_fraction(group: Group, device: Device, known: Waiting | None = None) -> float:
    """Seconds that kernels lose per second of a collective running beside them; all where processors do both."""
    if device.kind == "cpu":
        return 1.0
    wire = group.slowest.sustained_bytes_per_second
    return min(1.0, (known or waiting()).contention * wire / device.memory_bytes_per_second)
