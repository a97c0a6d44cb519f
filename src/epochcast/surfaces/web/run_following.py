"""Running jobs, followed from the store: what their reports say of when they end, written beside them.

Reports are read once: a tracker of each run takes the new ones. How often a run is worked out anew grows with its age,
and a pass over all runs has a limit of time, so that a thousand live runs leave the machine to its callers; the run
that was looked at longest ago comes first. What a pass found is written down at its end, in few transactions. How long
ago that was is counted by a clock that nobody sets: one that is set back must not stop the remaining times.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from epochcast.errors import BadInput
from epochcast.observe.runs.report import Report
from epochcast.observe.runs.run_watch import RunWatch
from epochcast.observe.runs.standing import Moment, Standing
from epochcast.observe.runs.tracker import Tracker
from epochcast.observe.store.row_values import RunFilter
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_rows import OVER, RunRow
from epochcast.observe.store.stored_run import standing_columns
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
# Moments of a run's past for its fan: close together at first, where it narrows most.
PAST_FACTOR, PAST_MOMENTS = 1.3, 24

Happened = Callable[[RunRow, str, Mapping[str, Any]], None]


@dataclass(slots=True)
class _FollowedRun:
    """A run's watch, the last report it was given, and when it was worked out."""

    watch: RunWatch
    after: tuple[int, float] = (-1, -1.0)
    worked_out_at_seconds: float = 0.0
    step: float | None = None
    fan: tuple[Moment, ...] = ()
    announced: set[str] = field(default_factory=set)


@dataclass(slots=True)
class RunFollower:
    """All live runs of a store. `happened` hears of drift, finished, over budget, silent."""

    store: Store
    happened: Happened
    _runs: dict[int, _FollowedRun] = field(default_factory=dict)
    _ended: dict[str, float] = field(default_factory=dict)
    _silent: dict[int, float] = field(default_factory=dict)
    _ends_seen_at_seconds: float | None = None

    def pass_over(self, now_seconds: float, steady_seconds: float) -> int:
        """Work out those runs that have news, the longest unseen first; gives how many.

        It is `now_seconds` since 1970; `steady_seconds` are those of a clock that nobody sets.
        """
        live = self.store.runs(RunFilter(states=("running",), seen_after_seconds=now_seconds - SILENT_SECONDS))
        due = [run for run in live if self._is_due(run, now_seconds, steady_seconds)]
        due.sort(key=self._worked_out_at)
        end, done, columns = time.monotonic() + PASS_SECONDS, 0, {}
        for run in due:
            worked_out = self._work_out(run, steady_seconds)
            done += 1
            if worked_out is not None:
                columns[run.id] = worked_out
            if time.monotonic() > end:
                break
        self.store.note_all(columns)
        self._end(now_seconds, steady_seconds)
        self._tell_silence(live, now_seconds)
        for run_id in self._runs.keys() - {run.id for run in live}:
            del self._runs[run_id]
        return done

    def _tell_silence(self, live: Sequence[RunRow], now_seconds: float) -> None:
        """Tell of runs that stopped reporting, once after each last report."""
        silent = {run.id: run.seen_at_seconds for run in live if run.is_silent(now_seconds)}
        for run in live:
            if run.id in silent and self._silent.get(run.id) != run.seen_at_seconds:
                self.happened(run, "silent", {"silent_seconds": run.silent_seconds(now_seconds)})
        self._silent = silent

    def _end(self, now_seconds: float, steady_seconds: float) -> None:
        """Work out a last time and tell of the runs that have ended since the pass before."""
        since = min(self._ends_seen_at_seconds or now_seconds - ENDED_SECONDS, now_seconds)
        over = self.store.runs(RunFilter(states=OVER, seen_after_seconds=since - OVERLAP_SECONDS))
        ended = [run for run in over if run.key not in self._ended]
        last_looks = {run.id: self._last_look(run, steady_seconds) for run in ended}
        self.store.note_all({run_id: columns for run_id, columns in last_looks.items() if columns})
        for run in ended:
            self._ended[run.key] = now_seconds
            self.happened(run, "finished", {"state": run.state})
        self._ends_seen_at_seconds = now_seconds
        kept_since = now_seconds - 2 * ENDED_SECONDS
        self._ended = {key: at for key, at in self._ended.items() if at > kept_since}

    def _last_look(self, run: RunRow, steady_seconds: float) -> dict[str, Any]:
        """What the last reports of an ended run say: they may have come after it was worked out. How and when it ended
        is known already.
        """
        followed = self._runs.get(run.id)
        if run.step is None or (followed is not None and followed.step == run.step):
            return {}
        columns = self._work_out(run, steady_seconds) or {}
        return {name: value for name, value in columns.items() if name not in ("state", "ended_at_seconds")}

    def _worked_out_at(self, run: RunRow) -> float:
        followed = self._runs.get(run.id)
        return -inf if followed is None else followed.worked_out_at_seconds

    def _is_due(self, run: RunRow, now_seconds: float, steady_seconds: float) -> bool:
        followed = self._runs.get(run.id)
        if followed is None:
            return run.step is not None
        age = now_seconds - (run.started_at_seconds or run.added_at_seconds)
        wait = min(MOST_SECONDS, max(LEAST_SECONDS, age * AGE_FRACTION))
        return run.step != followed.step and steady_seconds - followed.worked_out_at_seconds >= wait

    def _work_out(self, run: RunRow, steady_seconds: float) -> dict[str, Any] | None:
        """What is now known of a run, as its columns; None where that is nothing yet.

        What its reports themselves change is left to those who take them in: they may know more by now.
        """
        followed = self._runs.get(run.id)
        if followed is None:
            tracker = Tracker(run.total_steps, forecast=self._forecast(run))
            followed = self._runs[run.id] = _FollowedRun(RunWatch(tuple, tracker))
            followed.fan = () if run.standing is None else run.standing.fan
        followed.watch.source = lambda: self._new_reports(run, followed)
        followed.watch.sinks = [lambda standing, _: self._announce(run, followed, standing)]
        followed.watch.read()
        followed.worked_out_at_seconds, followed.step = steady_seconds, run.step
        try:
            standing = followed.watch.tell(run.seen_at_seconds)
        except BadInput:  # nobody said how much there is
            return None
        if standing is None:
            return None
        followed.fan = standing.with_moment(followed.fan)
        ended = {"state": "ended", "ended_at_seconds": run.seen_at_seconds} if standing.is_done else {}
        return {**standing_columns(replace(standing, fan=followed.fan)), **ended}

    def _new_reports(self, run: RunRow, followed: _FollowedRun) -> Iterator[Report]:
        """Reports that are new. A run that is seen for the first time gets its fan from moments of its past."""
        next_step = 0.0 if not followed.fan and run.step else inf
        for report in self.store.observations(run.id, after=followed.after):
            yield report  # taken in before the next one is asked for
            followed.after = report.attempt, report.step
            if report.step >= next_step:
                next_step = max(report.step * PAST_FACTOR, report.step + (run.step or 0.0) / PAST_MOMENTS)
                with suppress(BadInput):  # nothing is timed yet
                    followed.fan = followed.watch.tracker.standing().with_moment(followed.fan)

    def _forecast(self, run: RunRow) -> Forecast | None:
        stored = self.store.forecasts(run_id=run.id)
        return Forecast.from_dict(stored[0].forecast) if stored else None

    def _announce(self, run: RunRow, followed: _FollowedRun, standing: Standing) -> None:
        """That a run drifts or costs too much, once."""
        budget, in_all = run.place.details.get("budget_dollars"), standing.dollars_in_all
        if standing.drift is not None and "drift" not in followed.announced:
            followed.announced.add("drift")
            self.happened(run, "drift", standing.drift.as_dict())
        is_over = budget is not None and in_all is not None and in_all.mid > float(budget)
        if is_over and in_all is not None and "over budget" not in followed.announced:
            followed.announced.add("over budget")
            self.happened(run, "over budget", {"budget_dollars": budget, "dollars_in_all": in_all.as_dict()})
