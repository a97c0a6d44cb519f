"""The logs of running jobs, followed into `tracking`: how much is left, and how their pace compares with the forecast.

    pace = (seconds that remain, by the tracker) / (fraction left · forecast seconds of the whole run)

What is seen is kept as a run of the store, QUEUE/JOB, with an attempt per start; `epochcast runs` shows it.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.observe.logs.log_follower import LogFollower
from epochcast.observe.runs.run_prior import Prior
from epochcast.observe.runs.stored_run import KeptRun, row_of
from epochcast.observe.runs.total_steps import total_of
from epochcast.observe.runs.tracker import Progress, Tracker
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_rows import Attempt, ObservationRow, RunPlace, RunRow
from epochcast.schedule.queue_rows import JobStart, KeptJob

# What a forecast that was given as a number may be off by (a factor): the run itself says soon.
TOLD_FACTOR = 1.5
# The forecast has the larger say in the pace up to here.
OWN_WEIGHT = 0.5


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

    store: Store
    run: RunRow
    start: JobStart
    follower: LogFollower
    tracker: Tracker = field(default_factory=Tracker)
    last: LogProgress | None = None

    def look(self, kept: KeptJob, now_at_seconds: float) -> LogProgress | None:
        """What is new since the last look; None where nothing is."""
        seen = self.follower.look()
        if not seen:
            return None
        self.tracker.add_all(seen)
        rows: list[ObservationRow] = [row_of(one)._replace(attempt=self.start.attempt) for one in seen]
        self.store.record(self.run.id, rows)
        progress = self._progress(kept)
        if progress is None:
            return None
        recognition = self.follower.reader.recognition
        told = {
            **progress.as_dict(),
            "format": None if recognition is None else recognition.name,
            "finish_at": _finish(progress),
        }
        KeptRun(self.store, self.run).tell(self.tracker, progress, told, now_at_seconds)
        self.last = self._sight(kept, progress)
        return self.last

    def _progress(self, kept: KeptJob) -> Progress | None:
        try:
            total = total_of(self.tracker.history).steps
            forecast = kept.job.seconds[self.start.choice]
            told = forecast if forecast.high > forecast.low else Interval.around(forecast.mid, TOLD_FACTOR)
            self.tracker.past = Prior(told.scaled(1 / total), told_by="the queue")
            return self.tracker.progress()
        except BadInput:  # no step yet, or nobody said how many there are
            return None

    def _sight(self, kept: KeptJob, progress: Progress) -> LogProgress:
        left = max(0.0, 1.0 - progress.fraction)
        forecast = kept.job.seconds[self.start.choice].mid
        pace = progress.remaining_seconds.mid / (left * forecast) if left > 0 and not progress.is_done else kept.pace
        is_observed = progress.left.prior_weight < OWN_WEIGHT
        return LogProgress(left, pace, is_observed, progress.is_done, progress.step, progress.total.steps)

    def close(self) -> None:
        """Let go of the file."""
        self.follower.close()


def watch(store: Store, queue: str, kept: KeptJob, start: JobStart, log: Path, engine: str) -> LogWatch:
    """Begin to follow the log of a start, from its beginning: reports that were kept before are kept once."""
    name = f"{queue}/{kept.job.id}"
    place = RunPlace(start.choice.device, start.choice.gpus)
    run = store.open_run(name, job_name=kept.job.id, place=place, source=str(log))
    store.put_attempt(
        Attempt(
            run.id, start.attempt, "running", engine, start.engine_id or start.key,
            started_at_seconds=start.asked_at_seconds,
        )
    )  # fmt: skip
    return LogWatch(store, run, start, LogFollower(log))


def note_end(store: Store, watched: LogWatch, state: str, run_state: str, exit_code: int | None, at: float) -> None:
    """Keep how an attempt ended, and how its run stands then."""
    store.put_attempt(Attempt(watched.run.id, watched.start.attempt, state, ended_at_seconds=at, exit_code=exit_code))
    over = at if run_state in ("ended", "failed") else None
    store.note(watched.run.id, state=run_state, ended_at_seconds=over)


def _finish(progress: Progress) -> str:
    return progress.finish_at(datetime.now(UTC)).isoformat(timespec="seconds")
