"""What ranks that step together cost each other beyond the wire.

Steps of one rank vary by a relative spread σ, and everybody waits for the slowest of p. For p normal draws

    E[max] ≈ σ · Φ⁻¹((p - 3/8)/(p + 1/4))                       (Blom 1958)

so the wait grows like √(2 ln p). `accumulate` passes between two exchanges average out: σ/√accumulate. Boxes differ
more than the GPUs of one, TensorFlow's steps more than PyTorch's, and batches may differ, too (`Batch`). Beside it is a
share of the step that several GPUs cost whatever their number (host and power shared by a box), and host seconds per
exchanged step.

Kernels slow down while a collective moves data through the same memory: each hidden second of it costs

    min(1, κ · B_wire/B_memory)  seconds,

nearly nothing behind an Ethernet card, all of it behind NVLink, where hiding gains nothing.
"""

from dataclasses import dataclass
from math import hypot, sqrt
from statistics import NormalDist

from epochcast.caching import remembered
from epochcast.comm.protocol import fitted
from epochcast.hardware.cluster import Group
from epochcast.hardware.device import Device

PYTORCH, TENSORFLOW, HOROVOD = "pytorch", "tensorflow", "horovod"
"""Who runs the ranks: each has a spread of its own and host seconds per exchanged step."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The fitted constants, from fitted.toml; the first two are those of who runs the ranks."""

    spread_fraction: float
    step_seconds: float
    network_spread_fraction: float
    ragged_sample_fraction: float
    padded_sample_fraction: float
    shared_fraction: float
    bucket_seconds: float
    contention: float
    source: str


@remembered(64)
def waiting(runner: str = PYTORCH) -> Waiting:
    """The shipped constants."""
    shared = dict(fitted()["waiting"])
    runners = shared.pop("runner")
    return Waiting(**runners[runner], **shared)


@dataclass(frozen=True, slots=True)
class Batch:
    """How the batch of one rank differs from another's, beside what it holds.

    Of samples of different lengths n differ by s/√n of their work (translation). Where all are padded to the longest,
    it counts alone, and the longest of n varies by s/n (speech; lengths that have an end). Batches of other sizes each
    time, images of sides drawn anew, differ by `spread_fraction` whatever n is.
    """

    ragged_samples: int = 0
    is_padded: bool = False
    spread_fraction: float = 0.0

    def spread(self, constants: Waiting) -> float:
        """All of it as a fraction of a step."""
        ragged, n = 0.0, self.ragged_samples
        if n:
            ragged = (
                constants.padded_sample_fraction / n if self.is_padded else constants.ragged_sample_fraction / sqrt(n)
            )
        return hypot(self.spread_fraction, ragged)


ALIKE = Batch()
"""Every rank has as much to do."""


def exchange_error_seconds(added_seconds: float) -> tuple[float, float]:
    """How far below and above what an exchange adds to a step may really lie."""
    error = fitted()["exchange_error"]
    return added_seconds * float(error["below_fraction"]), added_seconds * float(error["above_fraction"])


def slowest_of(ranks: int) -> float:
    """Φ⁻¹((p - 3/8)/(p + 1/4)): how many spreads the slowest of p ranks lies above their mean; 0 for one."""
    return NormalDist().inv_cdf((ranks - 0.375) / (ranks + 0.25)) if ranks > 1 else 0.0


def waiting_seconds(
    compute_seconds: float, group: Group, constants: Waiting, *, accumulate: int = 1, batch: Batch = ALIKE
) -> float:
    """What a step of `compute_seconds` on each rank of a group waits for the slowest, and pays for being many."""
    if group.ranks == 1:
        return 0.0
    own = (
        constants.spread_fraction
        if group.nodes == 1
        else max(constants.spread_fraction, constants.network_spread_fraction)
    )
    spread = hypot(own, batch.spread(constants))
    fraction = spread * slowest_of(group.ranks) / sqrt(accumulate) + constants.shared_fraction
    return compute_seconds * fraction + constants.step_seconds


def contention_fraction(group: Group, device: Device, constants: Waiting | None = None) -> float:
    """Seconds that kernels lose per second of a collective running beside them; all where processors do both."""
    if device.kind == "cpu":
        return 1.0
    wire = group.slowest.sustained_bytes_per_second
    return min(1.0, (constants or waiting()).contention * wire / device.memory_bytes_per_second)
