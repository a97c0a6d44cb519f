"""The logs of running jobs, followed into `tracking`: how much is left, and how their pace compares with the forecast.

    pace = (seconds that remain, by the tracker) / (fraction left · forecast seconds of the whole run)

What is seen is kept as a run of the store, QUEUE/JOB, with an attempt per start; `epochcast runs` shows it.
"""

from dataclasses import dataclass
from pathlib import Path

from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.observe.logs.log_follower import LogFollower
from epochcast.observe.runs.report import Report
from epochcast.observe.runs.run_prior import Prior
from epochcast.observe.runs.run_watch import RunWatch
from epochcast.observe.runs.standing import Standing
from epochcast.observe.runs.total_steps import total_of
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_rows import Attempt, RunPlace, RunRow
from epochcast.observe.store.stored_run import StoredRun
from epochcast.schedule.queue_rows import JobStart, StoredJob

# What a forecast that was given as a number may be off by (a factor): the run itself says soon.
POINT_FORECAST_FACTOR = 1.5
# The forecast has the larger say in the pace up to here.
OBSERVED_WEIGHT = 0.5


@dataclass(frozen=True, slots=True)
class LogProgress:
    """What the log of a running job shows: the fraction left, its pace against the forecast, and whether it is done."""

    left: float
    pace: float
    is_observed: bool
    is_done: bool
    step: float
    total_steps: float


@dataclass(slots=True)
class LogWatch:
    """The log of one start."""

    run: RunRow
    start: JobStart
    follower: LogFollower
    watch: RunWatch
    last: LogProgress | None = None

    def look(self, stored: StoredJob, now_at_seconds: float) -> LogProgress | None:
        """What is new since the last look; None where nothing is."""
        if not self.watch.read():
            return None
        tracker = self.watch.tracker
        try:
            tracker.past = self._prior(stored, total_of(tracker.history).steps)
            standing = self.watch.tell(now_at_seconds)
        except BadInput:  # no step yet, or nobody said how many there are
            return None
        self.last = None if standing is None else self._sight(stored, standing)
        return self.last

    def _prior(self, stored: StoredJob, total_steps: float) -> Prior:
        forecast = stored.job.seconds[self.start.choice]
        seconds = forecast if forecast.high > forecast.low else Interval.around(forecast.mid, POINT_FORECAST_FACTOR)
        return Prior(seconds.scaled(1 / total_steps), source="the queue")

    def _sight(self, stored: StoredJob, standing: Standing) -> LogProgress:
        left = max(0.0, 1.0 - standing.fraction)
        forecast = stored.job.seconds[self.start.choice].mid
        pace = standing.remaining_seconds.mid / (left * forecast) if left > 0 and not standing.is_done else stored.pace
        is_observed = standing.prior_weight < OBSERVED_WEIGHT
        return LogProgress(left, pace, is_observed, standing.is_done, standing.step, standing.total_steps)

    def close(self) -> None:
        """Let go of the file."""
        self.follower.close()


def watch(store: Store, queue: str, stored: StoredJob, start: JobStart, log: Path, engine: str) -> LogWatch:
    """Begin to follow the log of a start, from its beginning: reports that were kept before are kept once."""
    name = f"{queue}/{stored.job.id}"
    place = RunPlace(start.choice.device, start.choice.gpus)
    run = store.open_run(name, job_name=stored.job.id, place=place, source=str(log))
    store.put_attempt(
        Attempt(
            run.id, start.attempt, "running", engine, start.engine_id or start.key,
            started_at_seconds=start.asked_at_seconds,
        )
    )  # fmt: skip
    follower, sink = LogFollower(log), StoredRun(store, run)

    def look() -> list[Report]:
        reports = follower.look()
        store.record(run.id, [report._replace(attempt=start.attempt) for report in reports])
        return reports

    def write(standing: Standing, reported_at_seconds: float) -> None:
        sink.format = follower.reader.format
        sink.write(standing, reported_at_seconds)

    return LogWatch(run, start, follower, RunWatch(look, sinks=[write]))


def note_end(store: Store, watched: LogWatch, state: str, run_state: str, exit_code: int | None, at: float) -> None:
    """Keep how an attempt ended, and how its run stands then."""
    store.put_attempt(Attempt(watched.run.id, watched.start.attempt, state, ended_at_seconds=at, exit_code=exit_code))
    over = at if run_state in ("ended", "failed") else None
    store.note(watched.run.id, state=run_state, ended_at_seconds=over)
