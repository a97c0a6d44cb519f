"""What synchronous ranks cost each other in addition to communication.

Steps of one rank vary by a relative spread σ, and all ranks wait for the slowest of p. For p normal draws

    E[max] ≈ σ · Φ⁻¹((p - 3/8)/(p + 1/4))                       (Blom 1958)

so the wait grows like √(2 ln p). `accumulate` passes between two exchanges average out: σ/√accumulate. Boxes vary
more than the GPUs of one box, TensorFlow's steps more than PyTorch's, and batches may differ, too (`Batch`). Two more
terms: a fraction of the step that several GPUs cost whatever their number (a box shares host and power), and host
seconds per exchanged step.

Kernels slow down while a collective moves data through the same memory: each hidden second of it costs

    min(1, κ · B_wire/B_memory)  seconds,

almost none of it with an Ethernet card, all of it with NVLink, where overlap gains nothing.
"""

from dataclasses import dataclass
from math import hypot, sqrt
from statistics import NormalDist

from epochcast.base.caching import remembered
from epochcast.hardware.cluster import Group
from epochcast.hardware.device import Device
from epochcast.predict.comm.protocol import fitted

PYTORCH, TENSORFLOW, HOROVOD = "pytorch", "tensorflow", "horovod"
"""The software that runs the ranks: each has its own spread and host seconds per exchanged step."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The fitted constants, from fitted.toml; the first two depend on the software that runs the ranks."""

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
    """How much the work of one rank's batch differs from another's.

    The work of n samples of different lengths varies by s/√n (translation). If all are padded to the longest, only that
    counts, and the longest of n varies by s/n (speech; lengths with an upper bound). Batches whose size is drawn each
    time (image sizes) differ by `spread_fraction` for any n.
    """

    ragged_samples: int = 0
    is_padded: bool = False
    spread_fraction: float = 0.0

    def spread(self, constants: Waiting) -> float:
        """The total spread as a fraction of a step."""
        ragged, n = 0.0, self.ragged_samples
        if n:
            ragged = (
                constants.padded_sample_fraction / n if self.is_padded else constants.ragged_sample_fraction / sqrt(n)
            )
        return hypot(self.spread_fraction, ragged)


ALIKE = Batch()
"""All ranks have the same work."""


def exchange_error_seconds(added_seconds: float) -> tuple[float, float]:
    """How far the real cost of an exchange may be below and above the forecast."""
    error = fitted()["exchange_error"]
    return added_seconds * float(error["below_fraction"]), added_seconds * float(error["above_fraction"])


def slowest_of(ranks: int) -> float:
    """Φ⁻¹((p - 3/8)/(p + 1/4)): how many spreads the slowest of p ranks is above their mean; 0 for one."""
    return NormalDist().inv_cdf((ranks - 0.375) / (ranks + 0.25)) if ranks > 1 else 0.0


def waiting_seconds(
    compute_seconds: float, group: Group, constants: Waiting, *, accumulate: int = 1, batch: Batch = ALIKE
) -> float:
    """Seconds that a step of `compute_seconds` waits for the slowest rank, and the costs of sharing a box."""
    if group.ranks == 1:
        return 0.0
    rank_spread = (
        constants.spread_fraction
        if group.nodes == 1
        else max(constants.spread_fraction, constants.network_spread_fraction)
    )
    spread = hypot(rank_spread, batch.spread(constants))
    fraction = spread * slowest_of(group.ranks) / sqrt(accumulate) + constants.shared_fraction
    return compute_seconds * fraction + constants.step_seconds


def contention_fraction(group: Group, device: Device, constants: Waiting | None = None) -> float:
    """Seconds that kernels lose per second of a collective running beside them; 1 where CPUs do both."""
    if device.kind == "cpu":
        return 1.0
    wire = group.slowest.sustained_bytes_per_second
    return min(1.0, (constants or waiting()).contention * wire / device.memory_bytes_per_second)
