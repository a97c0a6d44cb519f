"""How a running job really progresses, and what a scheduler sees of that.

A job's account is brought up to date when somebody looks (`catch_up`), not at every event: most events are about other
jobs. Who only believes a forecast counts down by it. With re-estimation the fraction done is known, and the pace is
observed with an error that shrinks as the run goes on:

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
    whole_seconds: float = inf
    ends_at: float = inf
    tracker_error: float = 0.0

    def goes_on(self, one: LiveJob, now: float, whole_seconds: float) -> float:
        """From now on the whole run would take so long; returns when it will end."""
        self.as_of, self.whole_seconds = now, whole_seconds
        self.ends_at = now + one.owed_seconds + self.left * whole_seconds
        return self.ends_at


def tracker_error(seed: int, job: str, scale: float) -> float:
    """e of one job; 0 where trackers do not err."""
    if scale <= 0:
        return 0.0
    random = Random(f"tracker {seed} {job}")
    size = MEDIAN_ERROR * exp(random.gauss(0.0, ERROR_SPREAD))
    return scale * min(MOST_ERROR, size) * random.choice((-1.0, 1.0))


def catch_up(one: LiveJob, truth: TrueProgress, now: float, reestimate: bool) -> None:
    """Bring a running job's account up to now: service, owed seconds, progress."""
    seconds = now - truth.as_of
    if seconds <= 0 or one.choice is None:
        return
    truth.as_of = now
    one.served_gpu_seconds += seconds * one.choice.gpus
    worked = seconds - one.owed_seconds
    one.owed_seconds = max(0.0, -worked)
    if worked <= 0:
        return
    truth.left = max(0.0, truth.left - worked / truth.whole_seconds)
    truth.ran_seconds += worked
    if not reestimate:
        one.left = max(ABOUT_TO_END, one.left - worked / one.whole_seconds(one.choice))
        return
    one.left = truth.left
    if one.is_observed or 1 - truth.left >= OBSERVED_AFTER:
        one.is_observed = True
        one.pace = truth.whole_seconds / one.job.seconds[one.choice].mid * exp(truth.tracker_error * truth.left)
