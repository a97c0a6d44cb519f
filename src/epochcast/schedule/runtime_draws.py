"""What runs may really take: draws from the intervals of forecasts.

A forecast of seconds, low … mid … high at 90 % coverage, is read as

    T = mid · (high/mid)^(z/q)   for z ≥ 0,      T = mid · (mid/low)^(z/q)   for z < 0,      q = 1.645

with z standard normal: one in twenty truths is below low, one in twenty above high. Errors go together: z of a job on a
device is

    z = √a · z_job + √b · z_device + √(1−a−b) · z_job,device

since a network that is slower than thought is so on every device, and a device that is slower than thought is so for
every job. The number of GPUs changes nothing: a job's choices of one device err alike.

A job whose pace was seen errs on its own device by what is left uncertain of it; on another device it keeps the share a
of what its pace tells.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log, sqrt
from random import Random
from statistics import NormalDist

from epochcast.interval import COVERAGE, Interval
from epochcast.schedule.queue_now import OBSERVED, QueueNow
from epochcast.schedule.queue_state import LiveJob
from epochcast.schedule.workload_jobs import GpuChoice

TrueSeconds = dict[str, dict[GpuChoice, float]]

# Nobody has measured enough jobs on enough devices at once to fit these; with both at 0 the ends of a queue, in which
# errors of many jobs cancel, would be told too surely.
SHARED_BY_JOB = 0.5
SHARED_BY_DEVICE = 0.25


STANDARD_TO_HIGH = NormalDist().inv_cdf((1 + COVERAGE) / 2)
"""q: from the middle to the high end, in standard deviations."""
LEAST = 1e-3
"""Of the middle: no run takes less."""


@dataclass(frozen=True, slots=True)
class RunTimeLaw:
    """How errors go together; `factor` widens all of them, to see what a wrong law does."""

    by_job: float = SHARED_BY_JOB
    by_device: float = SHARED_BY_DEVICE
    factor: float = 1.0

    def draw(self, queue: QueueNow, random: Random) -> TrueSeconds:
        """True seconds of every job with every choice."""
        devices = sorted(queue.workload.fleet.by_device)
        of_device = {device: random.gauss(0.0, 1.0) for device in devices}
        found: TrueSeconds = {}
        for job in queue.workload.jobs:
            own = random.gauss(0.0, 1.0)
            rest = {device: random.gauss(0.0, 1.0) for device in devices}
            live = queue.state.live.get(job.id)
            if live is not None and live.is_observed:
                found[job.id] = self._seen(live, queue.errors.get(job.id, OBSERVED), own, rest)
            else:
                z = {device: self._z(own, of_device[device], rest[device]) for device in devices}
                found[job.id] = {choice: at_quantile(told, z[choice.device]) for choice, told in job.seconds.items()}
        return found

    def _z(self, own: float, of_device: float, rest: float) -> float:
        left = max(0.0, 1 - self.by_job - self.by_device)
        return self.factor * (sqrt(self.by_job) * own + sqrt(self.by_device) * of_device + sqrt(left) * rest)

    def _seen(self, one: LiveJob, error: Interval, own: float, rest: Mapping[str, float]) -> dict[GpuChoice, float]:
        """Of a job whose pace is known on the device on which it runs, or last ran."""
        last = one.choice or one.last_choice
        found = {}
        for choice, told in one.job.seconds.items():
            if last is None or choice.device == last.device:
                found[choice] = told.mid * one.pace * at_quantile(error, self.factor * own)
            else:
                z = self.factor * sqrt(1 - self.by_job) * rest[choice.device]
                found[choice] = one.pace**self.by_job * at_quantile(told, z)
        return found


def middle(queue: QueueNow) -> TrueSeconds:
    """What runs take where every forecast is right, and every pace that was seen."""
    paces = {name: one.pace for name, one in queue.state.live.items()}
    return {
        job.id: {choice: told.mid * paces.get(job.id, 1.0) for choice, told in job.seconds.items()}
        for job in queue.workload.jobs
    }


def at_quantile(told: Interval, z: float) -> float:
    """The value z standard deviations from the middle, on the scale of ratios."""
    if told.low == told.high:
        return told.mid
    q = NormalDist().inv_cdf((1 + min(told.coverage, 0.999)) / 2)
    end = max(told.high if z >= 0 else told.low, LEAST * told.mid)
    return max(LEAST * told.mid, told.mid * exp(abs(z) / q * log(end / told.mid)))
