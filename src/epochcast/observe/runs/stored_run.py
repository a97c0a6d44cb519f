"""A run that is followed, kept in a store: reports in batches, how it stands, and where it stopped.

Reading a log again from its start adds nothing that is there. A log that begins elsewhere than the one that was kept
(it was rotated, or the job was started again into a new file) goes on after it: the tracker first gets what is in the
store, and the new reports are those of another attempt.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from epochcast.errors import BadInput
from epochcast.observe.logs.observation import Observation
from epochcast.observe.runs.remaining_time import remaining
from epochcast.observe.runs.run_prior import Prior
from epochcast.observe.runs.tracker import Progress, Tracker
from epochcast.observe.store.past_runs import Past
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_errors import Unavailable
from epochcast.observe.store.store_rows import ObservationRow, RunRow
from epochcast.predict.forecast.forecast import Forecast

BATCH_ROWS = 5_000
"""Reports that are written at once while a long log is read."""
MOST_WAITING = 100_000
"""Reports that wait for a store that is away."""
# Two clocks of one report differ by no more, unless they are of different logs.
SAME_SECONDS = 1e-6


def row_of(seen: Observation) -> ObservationRow:
    """A report as the store keeps it."""
    return ObservationRow(
        step=float(seen.step),
        attempt=seen.attempt,
        rank=seen.rank,
        phase=seen.phase,
        clock_seconds=seen.clock_seconds,
        step_seconds=seen.step_seconds,
        data_seconds=seen.data_seconds,
        loss=seen.loss,
        epoch=seen.epoch,
        total_steps=seen.total_steps,
        total_epochs=seen.total_epochs,
        steps_per_epoch=seen.steps_per_epoch,
        remaining_seconds=seen.remaining_seconds,
        pause_seconds=seen.pause_seconds,
        what=seen.what or None,
    )


def observation_of(row: ObservationRow) -> Observation:
    """A kept row as the report it was."""
    values = row._asdict()
    del values["reports"]
    return Observation(**{**values, "what": row.what or ""})


class KeptRun:
    """A run of the store that is being followed; `take` is given what its log says, part by part.

    While `is_patient`, reports wait for a store that is locked or away; the log has them, too.
    """

    def __init__(self, store: Store, run: RunRow) -> None:
        self.store, self.run, self.is_patient = store, run, False
        self._waiting: list[ObservationRow] = []
        self._is_placed = False
        self._first_attempt = 0
        self._attempts_more = 0
        self._last: tuple[int, float] | None = None
        self._announced: tuple[float | None, ...] = ()

    def take(self, seen: Sequence[Observation]) -> list[Observation]:
        """Keep reports; gives what the tracker is to be told, with what was kept before where this goes on after it."""
        if not seen:
            return []
        before: list[Observation] = []
        if not self._is_placed:
            self._is_placed = True
            before = self._before(seen)
        told = [self._placed(one) for one in seen]
        self._waiting += (self._unrepeated(row_of(one)) for one in told)
        if len(self._waiting) >= BATCH_ROWS:
            self.flush()
        return [*before, *told]

    def flush(self) -> bool:
        """Write what waits; false where it has to wait longer, for a store that is locked or away."""
        try:
            if self._waiting:
                self.store.record(self.run.id, self._waiting)
        except Unavailable:
            if not self.is_patient or len(self._waiting) > MOST_WAITING:
                raise
            return False
        self._waiting = []
        return True

    def tell(
        self,
        tracker: Tracker,
        progress: Progress,
        told: Mapping[str, Any],
        reported_at_seconds: float,
        state: str | None = None,
    ) -> None:
        """Write down how the run stands, after the reports that it follows from."""
        if not self.flush():
            return
        if state is None or progress.is_done:
            state = "ended" if progress.is_done else "running"
        self.store.note(
            self.run.id,
            state=state,
            seen_at_seconds=reported_at_seconds,
            ended_at_seconds=reported_at_seconds if progress.is_done else None,
            started_at_seconds=reported_at_seconds - progress.elapsed_seconds,
            step=progress.step,
            format=told.get("format"),
            **standing(tracker, progress, told),
        )

    def expect(self, forecast: Forecast | None) -> None:
        """Keep the forecast that the run is compared with, unless it is the last one already."""
        if forecast is None:
            return
        kept = self.store.forecasts(run_id=self.run.id)
        if not kept or kept[0].forecast != forecast.as_dict():
            self.store.add_forecast(forecast, run_id=self.run.id, job_id=self.run.job_id)

    def _before(self, seen: Sequence[Observation]) -> list[Observation]:
        """What was kept, where these reports are not the beginning of it."""
        first = next((row for row in self.store.observations(self.run.id)), None)
        if first is None or _is_same(first, row_of(seen[0])):
            return []
        kept = [observation_of(row) for row in self.store.observations(self.run.id)]
        self._first_attempt = max(one.attempt for one in kept) + 1
        return kept

    def _placed(self, seen: Observation) -> Observation:
        """In an attempt of its own where steps begin again: a step is kept once per attempt."""
        attempt = self._first_attempt + self._attempts_more + seen.attempt
        if seen.phase == "train" and not seen.rank:
            if self._last is not None and attempt == self._last[0] and seen.step < self._last[1]:
                self._attempts_more += 1
                attempt += 1
            self._last = attempt, seen.step
        return seen if attempt == seen.attempt else seen._replace(attempt=attempt)

    def _unrepeated(self, row: ObservationRow) -> ObservationRow:
        """Without announcements that were made before: they hold until another is made."""
        announced = row.total_steps, row.total_epochs, row.steps_per_epoch
        if announced == self._announced:
            return row._replace(total_steps=None, total_epochs=None, steps_per_epoch=None)
        self._announced = announced
        return row


def _is_same(kept: ObservationRow, row: ObservationRow) -> bool:
    if (kept.attempt, kept.step, kept.rank, kept.phase) != (row.attempt, row.step, row.rank, row.phase):
        return False
    if kept.clock_seconds is None or row.clock_seconds is None:
        return kept.clock_seconds == row.clock_seconds and kept.loss == row.loss
    return abs(kept.clock_seconds - row.clock_seconds) <= SAME_SECONDS and kept.loss == row.loss


def standing(tracker: Tracker, progress: Progress, told: Mapping[str, Any]) -> dict[str, Any]:
    """What is worked out of a run's reports, as columns of a run; `told` is what is shown of it."""
    shown = _shown(tracker, progress)
    return {
        "total_steps": progress.total.steps,
        "step_seconds": shown.get("step_seconds"),
        "elapsed_seconds": progress.elapsed_seconds,
        "down_seconds": progress.down_seconds,
        "progress": {**told, "shown": shown, "report_seconds": _report_seconds(tracker, progress)},
    }


def _report_seconds(tracker: Tracker, progress: Progress) -> float | None:
    """Mean time from one report to the next while the job ran, pauses included; None before it is known."""
    reports = tracker.history.reports
    return (progress.elapsed_seconds - progress.down_seconds) / reports or None if reports > 1 else None


def _shown(tracker: Tracker, progress: Progress) -> dict[str, float]:
    """What the run itself has shown, without what was expected of it; empty before a step was timed."""
    history = tracker.history
    try:
        left = remaining(history, progress.total.steps)
    except BadInput:
        return {}
    return {
        "step_seconds": left.step_seconds,
        "start_seconds": left.start_seconds,
        "executed_steps": history.executed_steps,
    }


def refreshed(store: Store, run: RunRow) -> RunRow:
    """The run with its progress worked out anew from its reports, where these are newer than what was told of it.

    Whoever only sends reports (a callback) leaves this to those who look.
    """
    if run.step is None or run.progress.get("step") == run.step:
        return run
    tracker = Tracker(run.total_steps).add_all(observation_of(row) for row in store.observations(run.id))
    try:
        progress = tracker.progress()
    except BadInput:  # nothing is timed, or nobody said how much there is
        return run
    told = {**progress.as_dict(), "finish_at": _finish_at(progress, run.seen_at_seconds)}
    KeptRun(store, run).tell(tracker, progress, told, run.seen_at_seconds, state=run.state)
    return store.run(run.key)


def plain_run(run: RunRow) -> dict[str, Any]:
    """A run by the names of the JSON contract."""
    return {
        "run": run.name,
        "key": run.key,
        "job": run.job_name,
        "device": run.place.device,
        "gpus": run.place.gpus,
        "nodes": run.place.nodes,
        "host": run.place.host,
        "source": run.source,
        "format": run.format,
        "state": run.state,
        "step": run.step,
        "total_steps": run.total_steps,
        "fraction": run.fraction,
        "step_seconds": run.step_seconds,
        "remaining_seconds": None if run.is_over else run.progress.get("remaining_seconds"),
        "finish_at": None if run.is_over else run.progress.get("finish_at"),
        "elapsed_seconds": run.elapsed_seconds,
        "down_seconds": run.down_seconds,
        "forecast_step_seconds": run.forecast_step_seconds,
        "forecast_total_seconds": run.forecast_total_seconds,
        "against_forecast": run.against_forecast,
        "started_at": _iso(run.started_at_seconds),
        "seen_at": _iso(run.seen_at_seconds),
        "ended_at": _iso(run.ended_at_seconds),
    }


def past_prior(past: Past | None, forecast: Forecast | None) -> Prior | None:
    """What past runs say, as the tracker takes it: the forecast's pace times their ratio."""
    if past is None or forecast is None:
        return None
    pace = past.ratio.scaled(forecast.step_seconds.mid)
    return Prior(pace, past.pause_fraction, past.start_seconds, past.told)


def _finish_at(progress: Progress, reported_at_seconds: float) -> str:
    reported_at = datetime.fromtimestamp(reported_at_seconds).astimezone()
    return progress.finish_at(reported_at).isoformat(timespec="seconds")


def _iso(at_seconds: float | None) -> str | None:
    if at_seconds is None:
        return None
    try:
        return datetime.fromtimestamp(at_seconds, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):  # no day of any calendar
        return None
