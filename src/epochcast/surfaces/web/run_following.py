"""Running jobs, followed from the store: what their reports say of when they end, written beside them.

Reports are read once: a tracker of each run takes the new ones. How often a run is worked out anew grows with its age,
and a pass over all runs has a limit of time, so that a thousand live runs leave the machine to its callers; the run
that was looked at longest ago comes first. What a pass found is written down at its end, in few transactions.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from typing import Any

from epochcast.errors import BadInput
from epochcast.observe.runs.stored_run import observation_of, standing
from epochcast.observe.runs.tracker import Progress, Tracker
from epochcast.observe.store.row_values import RunFilter
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_rows import OVER, RunRow
from epochcast.predict.forecast.forecast import Forecast

# A run is worked out anew at most so often, at least so often, and in between by its age.
LEAST_SECONDS, MOST_SECONDS, AGE_FRACTION = 2.0, 60.0, 0.01
# Of a pass, so that others get the processor, too.
PASS_SECONDS = 0.5
# Runs that nobody heard of for so long are left alone.
SILENT_SECONDS = 7 * 86_400.0
# Runs that ended in so many seconds before a follower began are reported, too: the one before may have missed them.
ENDED_SECONDS = 600.0
# Runs are looked at again for so long before the last look: clocks of several servers differ.
OVERLAP_SECONDS = 5.0
# Moments of the fan that are kept: every second one is dropped when there are more.
MOST_MOMENTS = 64
# Moments of a run's past for its fan: close together at first, where it narrows most.
PAST_FACTOR, PAST_MOMENTS = 1.3, 24

Happened = Callable[[RunRow, str, Mapping[str, Any]], None]


@dataclass(slots=True)
class _Followed:
    """What is known of a run: its tracker, the last report it was given, and when it was worked out."""

    tracker: Tracker
    after: tuple[int, float] = (-1, -1.0)
    worked_out_at_seconds: float = 0.0
    step: float | None = None
    fan: list[list[float]] = field(default_factory=list)
    told: set[str] = field(default_factory=set)


@dataclass(slots=True)
class RunFollower:
    """All live runs of a store. `happened` receives the events people subscribe to: drift, finished, over budget."""

    store: Store
    happened: Happened
    _runs: dict[int, _Followed] = field(default_factory=dict)
    _ended: dict[str, float] = field(default_factory=dict)
    _ends_seen_at_seconds: float | None = None

    def pass_over(self, now_seconds: float) -> int:
        """Work out those runs that have news, the longest unseen first; gives how many."""
        live = self.store.runs(RunFilter(states=("running",), seen_after_seconds=now_seconds - SILENT_SECONDS))
        due = sorted((run for run in live if self._is_due(run, now_seconds)), key=self._worked_out_at)
        end, done, found = time.monotonic() + PASS_SECONDS, 0, {}
        for run in due:
            standing = self._work_out(run, now_seconds)
            done += 1
            if standing is not None:
                found[run.id] = standing
            if time.monotonic() > end:
                break
        self.store.note_all(found)
        self._end(now_seconds)
        for run_id in self._runs.keys() - {run.id for run in live}:
            del self._runs[run_id]
        return done

    def _end(self, now_seconds: float) -> None:
        """Tell of runs that have ended since the pass before."""
        since = self._ends_seen_at_seconds or now_seconds - ENDED_SECONDS
        for run in self.store.runs(RunFilter(states=OVER, seen_after_seconds=since - OVERLAP_SECONDS)):
            if run.key not in self._ended:
                self._ended[run.key] = now_seconds
                self.happened(run, "finished", {"state": run.state})
        self._ends_seen_at_seconds = now_seconds
        kept_since = now_seconds - 2 * ENDED_SECONDS
        self._ended = {key: at for key, at in self._ended.items() if at > kept_since}

    def _worked_out_at(self, run: RunRow) -> float:
        known = self._runs.get(run.id)
        return 0.0 if known is None else known.worked_out_at_seconds

    def _is_due(self, run: RunRow, now_seconds: float) -> bool:
        known = self._runs.get(run.id)
        if known is None:
            return run.step is not None
        age = now_seconds - (run.started_at_seconds or run.added_at_seconds)
        wait = min(MOST_SECONDS, max(LEAST_SECONDS, age * AGE_FRACTION))
        return run.step != known.step and now_seconds - known.worked_out_at_seconds >= wait

    def _work_out(self, run: RunRow, now_seconds: float) -> dict[str, Any] | None:
        """What is now known of a run, as its columns; None where that is nothing yet.

        What its reports themselves change is left to those who take them in: they may know more by now.
        """
        known = self._runs.get(run.id)
        if known is None:
            known = _Followed(Tracker(run.total_steps, forecast=self._forecast(run)))
            known.fan = [list(moment) for moment in run.progress.get("fan", [])]
            self._runs[run.id] = known
        self._read(run, known)
        known.worked_out_at_seconds, known.step = now_seconds, run.step
        try:
            progress = known.tracker.progress()
            finish_at = progress.finish_at(datetime.fromtimestamp(run.seen_at_seconds).astimezone())
        except BadInput:  # nothing is timed yet, or nobody said how much there is
            return None
        known.fan = _with_moment(known.fan, progress)
        told = {**progress.as_dict(), "finish_at": finish_at.isoformat(timespec="seconds"), "fan": known.fan}
        self._tell(run, known, progress)
        ended = {"state": "ended", "ended_at_seconds": run.seen_at_seconds} if progress.is_done else {}
        return {**standing(known.tracker, progress, told), **ended}

    def _read(self, run: RunRow, known: _Followed) -> None:
        """Take in what is new. A run that is seen for the first time gets its fan from moments of its past."""
        next_step = 0.0 if not known.fan and run.step else inf
        for row in self.store.observations(run.id, after=known.after):
            known.tracker.add(observation_of(row))
            known.after = row.attempt, row.step
            if row.step >= next_step:
                next_step = max(row.step * PAST_FACTOR, row.step + (run.step or 0.0) / PAST_MOMENTS)
                with suppress(BadInput):  # nothing is timed yet
                    known.fan = _with_moment(known.fan, known.tracker.progress())

    def _forecast(self, run: RunRow) -> Forecast | None:
        kept = self.store.forecasts(run_id=run.id)
        return Forecast.from_dict(kept[0].forecast) if kept else None

    def _tell(self, run: RunRow, known: _Followed, progress: Progress) -> None:
        """Of a run that drifts or costs too much, once."""
        budget, in_all = run.place.details.get("budget_dollars"), progress.dollars_in_all
        if progress.drift is not None and "drift" not in known.told:
            known.told.add("drift")
            self.happened(run, "drift", progress.drift.as_dict())
        is_over = budget is not None and in_all is not None and in_all.mid > float(budget)
        if is_over and in_all is not None and "over budget" not in known.told:
            known.told.add("over budget")
            self.happened(run, "over budget", {"budget_dollars": budget, "dollars_in_all": in_all.as_dict()})


def _with_moment(fan: list[list[float]], progress: Progress) -> list[list[float]]:
    """What the total was expected to be at moments of the run: elapsed seconds, low, middle, high."""
    elapsed, left = progress.elapsed_seconds, progress.remaining_seconds
    if fan and fan[-1][0] >= elapsed:
        return fan
    fan = [*fan, [elapsed, elapsed + left.low, elapsed + left.mid, elapsed + left.high]]
    return fan if len(fan) <= MOST_MOMENTS else [*fan[:-1:2], fan[-1]]
