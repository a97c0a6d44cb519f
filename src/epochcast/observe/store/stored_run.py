"""A run that is followed, kept in a store: reports in batches, how it stands, and where it stopped.

Reading a log again from its start adds nothing that is there. A log that begins elsewhere than the one that was kept
(it was rotated, or the job was started again into a new file) continues it: the tracker first gets what is in the
store, and the new reports are those of another attempt.
"""

from collections.abc import Sequence
from typing import Any

from epochcast.errors import BadInput
from epochcast.observe.runs.report import Report
from epochcast.observe.runs.run_watch import RunWatch
from epochcast.observe.runs.standing import Standing
from epochcast.observe.runs.tracker import Tracker
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_errors import Unavailable
from epochcast.observe.store.store_rows import RunRow
from epochcast.predict.forecast.forecast import Forecast

BATCH_ROWS = 5_000
"""Reports that are written at once while a long log is read."""
MOST_WAITING = 100_000
"""Reports that wait for a store that is away."""
# Two clocks of one report differ by no more, unless they are of different logs.
SAME_SECONDS = 1e-6


class StoredRun:
    """A run of the store that is being followed; `take` is given what its log says, part by part.

    While `is_patient`, reports wait for a store that is locked or away; the log has them, too.
    """

    def __init__(self, store: Store, run: RunRow) -> None:
        self.store, self.run, self.is_patient = store, run, False
        self.format: str | None = None
        self._waiting: list[Report] = []
        self._is_placed = False
        self._first_attempt = 0
        self._attempts_more = 0
        self._last: tuple[int, float] | None = None
        self._announced: tuple[float | None, ...] = ()

    def take(self, seen: Sequence[Report]) -> list[Report]:
        """Keep reports; gives those for the tracker, after the ones that were kept before where these continue them."""
        if not seen:
            return []
        before: list[Report] = []
        if not self._is_placed:
            self._is_placed = True
            before = self._before(seen)
        placed = [self._placed(report) for report in seen]
        self._waiting += (self._unrepeated(report) for report in placed)
        if len(self._waiting) >= BATCH_ROWS:
            self.flush()
        return [*before, *placed]

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

    def write(self, standing: Standing, reported_at_seconds: float, state: str | None = None) -> None:
        """Write down how the run stands, after the reports that it follows from."""
        if not self.flush():
            return
        if state is None or standing.is_done:
            state = "ended" if standing.is_done else "running"
        self.store.note(
            self.run.id,
            state=state,
            seen_at_seconds=reported_at_seconds,
            ended_at_seconds=reported_at_seconds if standing.is_done else None,
            started_at_seconds=reported_at_seconds - standing.elapsed_seconds,
            step=standing.step,
            format=self.format,
            **standing_columns(standing),
        )

    def expect(self, forecast: Forecast | None) -> None:
        """Keep the forecast that the run is compared with, unless it is the last one already."""
        if forecast is None:
            return
        stored = self.store.forecasts(run_id=self.run.id)
        if not stored or stored[0].forecast != forecast.as_dict():
            self.store.add_forecast(forecast, run_id=self.run.id, job_id=self.run.job_id)

    def _before(self, seen: Sequence[Report]) -> list[Report]:
        """What was kept, where these reports are not the beginning of it."""
        first = next((row for row in self.store.observations(self.run.id)), None)
        if first is None or _is_same(first, seen[0]):
            return []
        stored = list(self.store.observations(self.run.id))
        self._first_attempt = max(report.attempt for report in stored) + 1
        return stored

    def _placed(self, seen: Report) -> Report:
        """In an attempt of its own where steps begin again: a step is kept once per attempt."""
        attempt = self._first_attempt + self._attempts_more + seen.attempt
        if seen.phase == "train" and not seen.rank:
            if self._last is not None and attempt == self._last[0] and seen.step < self._last[1]:
                self._attempts_more += 1
                attempt += 1
            self._last = attempt, seen.step
        return seen if attempt == seen.attempt else seen._replace(attempt=attempt)

    def _unrepeated(self, row: Report) -> Report:
        """Without announcements that were made before: they hold until another is made."""
        announced = row.total_steps, row.total_epochs, row.steps_per_epoch
        if announced == self._announced:
            return row._replace(total_steps=None, total_epochs=None, steps_per_epoch=None)
        self._announced = announced
        return row


def _is_same(stored: Report, row: Report) -> bool:
    if (stored.attempt, stored.step, stored.rank, stored.phase) != (row.attempt, row.step, row.rank, row.phase):
        return False
    if stored.clock_seconds is None or row.clock_seconds is None:
        return stored.clock_seconds == row.clock_seconds and stored.loss == row.loss
    return abs(stored.clock_seconds - row.clock_seconds) <= SAME_SECONDS and stored.loss == row.loss


def standing_columns(standing: Standing) -> dict[str, Any]:
    """How a run stands, as columns of a run."""
    return {
        "total_steps": standing.total_steps,
        "step_seconds": None if standing.shown is None else standing.shown.step_seconds,
        "elapsed_seconds": standing.elapsed_seconds,
        "down_seconds": standing.down_seconds,
        "progress": standing.as_dict(),
    }


def refreshed(store: Store, run: RunRow) -> RunRow:
    """The run with its standing worked out anew from its reports, where these are newer than the stored one.

    Whoever only sends reports (a callback) leaves this to those who look.
    """
    if run.step is None or (run.standing is not None and run.standing.step == run.step):
        return run
    stored = StoredRun(store, run)
    watch = RunWatch(
        lambda: store.observations(run.id),
        Tracker(run.total_steps),
        [lambda standing, at_seconds: stored.write(standing, at_seconds, state=run.state)],
    )
    watch.read()
    try:
        watch.tell(run.seen_at_seconds)
    except BadInput:  # nobody said how much there is
        return run
    return store.run(run.key)
