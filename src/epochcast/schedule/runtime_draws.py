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
# errors of many jobs cancel, would have too narrow intervals.
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
        drawn: TrueSeconds = {}
        for job in queue.workload.jobs:
            of_job = random.gauss(0.0, 1.0)
            rest = {device: random.gauss(0.0, 1.0) for device in devices}
            live = queue.state.live.get(job.id)
            if live is not None and live.is_observed:
                drawn[job.id] = self._seen(live, queue.errors.get(job.id, OBSERVED), of_job, rest)
            else:
                z = {device: self._z(of_job, of_device[device], rest[device]) for device in devices}
                drawn[job.id] = {
                    choice: at_quantile(seconds, z[choice.device]) for choice, seconds in job.seconds.items()
                }
        return drawn

    def _z(self, of_job: float, of_device: float, rest: float) -> float:
        left = max(0.0, 1 - self.by_job - self.by_device)
        return self.factor * (sqrt(self.by_job) * of_job + sqrt(self.by_device) * of_device + sqrt(left) * rest)

    def _seen(self, live: LiveJob, error: Interval, of_job: float, rest: Mapping[str, float]) -> dict[GpuChoice, float]:
        """Of a job whose pace is known on the device on which it runs, or last ran."""
        last = live.choice or live.last_choice
        drawn = {}
        for choice, seconds in live.job.seconds.items():
            if last is None or choice.device == last.device:
                drawn[choice] = seconds.mid * live.pace * at_quantile(error, self.factor * of_job)
            else:
                z = self.factor * sqrt(1 - self.by_job) * rest[choice.device]
                drawn[choice] = live.pace**self.by_job * at_quantile(seconds, z)
        return drawn


def middle(queue: QueueNow) -> TrueSeconds:
    """What runs take where every forecast is right, and every pace that was seen."""
    paces = {name: live.pace for name, live in queue.state.live.items()}
    return {
        job.id: {choice: seconds.mid * paces.get(job.id, 1.0) for choice, seconds in job.seconds.items()}
        for job in queue.workload.jobs
    }


def at_quantile(seconds: Interval, z: float) -> float:
    """The value z standard deviations from the middle, on the scale of ratios."""
    if seconds.low == seconds.high:
        return seconds.mid
    q = NormalDist().inv_cdf((1 + min(seconds.coverage, 0.999)) / 2)
    end = max(seconds.high if z >= 0 else seconds.low, LEAST * seconds.mid)
    return max(LEAST * seconds.mid, seconds.mid * exp(abs(z) / q * log(end / seconds.mid)))
