"""One step that the user measured: of this job, on one GPU of the place, at some batch.

What was measured is either its kernels or its launches. Where the forecast step spends most of its time in kernels,
all kernels are scaled until the forecast of that batch is what was measured,

    f : step(f · kernels, launches) = measured

otherwise the host's seconds per launch are. What is left uncertain of the scaled part is how far it carries over to
another batch and to more GPUs (`AFTER_LOW` and `AFTER_HIGH` of kernels, `HOST_LOW` and `HOST_HIGH` of launches); other
parts stay as uncertain as they were.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt

from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.predict.cost.hosts import MOST_LAUNCH_SECONDS, LaunchHost
from epochcast.units import parse_seconds

# Measured over forecast of other batches of the same job, up to four times as large or small, after one batch of it was
# given: the 5th and 95th of a hundred on four clusters (`python -m studies given_step`).
AFTER_LOW, AFTER_HIGH = 0.85, 1.18
# The same where both batches wait for their launches: 550 pairs on two clusters. Steps of small images vary more.
HOST_LOW, HOST_HIGH = 0.76, 1.32
# A measurement further from the forecast than this is of another job, or in another unit.
MOST_RATIO = 20.0
_ROUNDS = 60


@dataclass(frozen=True, slots=True)
class GivenStep:
    """Seconds of one step on one GPU, at so many samples per step."""

    seconds: float
    batch: int

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise BadInput(f"a measured step must take more than 0 seconds, got {self.seconds}")
        if self.batch < 1:
            raise BadInput(f"the batch of a measured step must be at least 1, got {self.batch}")

    @property
    def text(self) -> str:
        """What `parse_measured_step` reads."""
        return f"{self.seconds:g}s@{self.batch}"


def parse_measured_step(text: str) -> GivenStep:
    """`0.21s@64`: seconds with their unit, then the batch on one GPU."""
    seconds, at, batch = text.strip().partition("@")
    if not at or not batch.strip().isdecimal():
        raise BadInput(f"{text!r} is no measured step: give a time and the batch it was measured at, like 210ms@64")
    return GivenStep(parse_seconds(seconds, option="step_seconds", unit="ms"), int(batch))


def solved_factor(step_seconds: Callable[[float], float], target_seconds: float) -> float | None:
    """The factor of a part at which a step takes `target_seconds`; None where no factor within MOST_RATIO does.

    A step never gets shorter as one of its parts gets longer, so halving the range finds it.
    """
    low, high = 1 / MOST_RATIO, MOST_RATIO
    if not step_seconds(low) <= target_seconds <= step_seconds(high):
        return None
    for _ in range(_ROUNDS):
        middle = sqrt(low * high)
        if step_seconds(middle) < target_seconds:
            low = middle
        else:
            high = middle
        if high / low < 1 + 1e-6:
            break
    return sqrt(low * high)


def scaled_host(host: LaunchHost | None, launch_seconds: float, factor: float) -> LaunchHost:
    """The host with `factor` times the seconds per launch, now measured with this very job."""
    seconds = min(MOST_LAUNCH_SECONDS, launch_seconds * factor)
    name = f"{seconds * 1e6:.3g}us"
    around = Interval(HOST_LOW * seconds, seconds, HOST_HIGH * seconds)
    measured = LaunchHost(name, around, is_of_job=True)
    return measured if host is None else replace(host, name=name, launch_seconds=around, is_of_job=True)
