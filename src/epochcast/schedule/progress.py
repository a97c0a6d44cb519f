"""How a running job really progresses, and what a scheduler sees of that.

A job's account is brought up to date when somebody looks (`catch_up`), not at every event: most events are about other
jobs. Who only believes a forecast counts down by it. With re-estimation the fraction done is known, and the pace is
observed with an error that shrinks during the run:

    observed = true pace · exp(e · (1 − fraction done))        |e| log-normal, either sign

`tracking` was measured to be 1 to 2 % off in the median and 20 % for the worst tenth; that is what a `tracking_error`
of 1 draws, one e per job.
"""

from dataclasses import dataclass
from math import exp, inf
from random import Random

from epochcast.schedule.queue_state import LiveJob

# The share of a run after which its progress tells its pace.
OBSERVED_AFTER = 0.01
# Median of |e|, and the spread of its logarithm that puts the ninth decile at 0.20: ln(0.20/0.015) / 1.2816.
MEDIAN_ERROR = 0.015
ERROR_SPREAD = 2.02
MOST_ERROR = 1.0
# Who believes the forecast and is wrong: a job that takes longer is always about to end.
ABOUT_TO_END = 1e-3


@dataclass(slots=True)
class TrueProgress:
    """What really happens to a job.

    The fraction left and the seconds since it last started (for what a failure costs), both as of a time; when it will
    end if nothing changes; by what factor its machine is slow; what its tracker errs by.
    """

    number: int
    left: float = 1.0
    ran_seconds: float = 0.0
    first_start_seconds: float | None = None
    starts: int = 0
    stay_since: float = 0.0
    as_of: float = 0.0
    run_seconds: float = inf
    ends_at: float = inf
    tracker_error: float = 0.0

    def goes_on(self, live: LiveJob, now: float, run_seconds: float) -> float:
        """From now on the whole run would take so long; returns when it will end."""
        self.as_of, self.run_seconds = now, run_seconds
        self.ends_at = now + live.owed_seconds + self.left * run_seconds
        return self.ends_at


def tracker_error(seed: int, job: str, scale: float) -> float:
    """e of one job; 0 where trackers do not err."""
    if scale <= 0:
        return 0.0
    random = Random(f"tracker {seed} {job}")
    size = MEDIAN_ERROR * exp(random.gauss(0.0, ERROR_SPREAD))
    return scale * min(MOST_ERROR, size) * random.choice((-1.0, 1.0))


def catch_up(live: LiveJob, truth: TrueProgress, now: float, reestimate: bool) -> None:
    """Bring a running job's account up to now: service, owed seconds, progress."""
    seconds = now - truth.as_of
    if seconds <= 0 or live.choice is None:
        return
    truth.as_of = now
    live.served_gpu_seconds += seconds * live.choice.gpus
    worked = seconds - live.owed_seconds
    live.owed_seconds = max(0.0, -worked)
    if worked <= 0:
        return
    truth.left = max(0.0, truth.left - worked / truth.run_seconds)
    truth.ran_seconds += worked
    if not reestimate:
        live.left = max(ABOUT_TO_END, live.left - worked / live.run_seconds(live.choice))
        return
    live.left = truth.left
    if live.is_observed or 1 - truth.left >= OBSERVED_AFTER:
        live.is_observed = True
        live.pace = truth.run_seconds / live.job.seconds[live.choice].mid * exp(truth.tracker_error * truth.left)
