"""What a run has shown so far, kept in bounded memory: spans between reports, and pauses.

A **span** lies between two reports of one attempt: so many steps in so many seconds. Spans are placed by the steps that
were *executed* up to their end, replayed ones included, because what is replayed says as much about the pace as what is
new. Time between two attempts is down time: it has passed, but says nothing of the pace.

When there are too many spans, pauses are taken out of them and written down apart, and neighbours are joined: a long
log is kept more coarsely, never longer.
"""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from sys import intern
from typing import TypeAlias

import numpy as np

from epochcast.observe.runs.interruptions import Interruption
from epochcast.observe.runs.report import Report
from epochcast.observe.runs.report_spans import Pause, Spans, find_pauses

MOST_SPANS = 4096
MOST_PAUSES = 2048
MOST_INTERRUPTIONS = 64
# Reports whose mean is how long data was waited for at first.
FIRST_REPORTS = 20
# A clock that only ever shows whole seconds says little of shorter spans.
TICKS_PER_SPAN = 10
# A clock that goes back by more than this (share of the time so far, and seconds) was set anew.
MOST_WAVERING, MOST_WAVERING_SECONDS = 0.2, 3000.0

# Another run in the same file begins before this share of its steps; a total that differs by more is of another job.
FROM_THE_START, OTHER_TOTAL = 0.02, 0.01
# A clock that stands still in more spans than this jumps in others: only so many longer parts of it are to be trusted.
MOST_STANDING, PARTS_OF_STANDING = 0.02, 32


Column: TypeAlias = "array[float]"
"""Eight bytes a number; a list of floats has thirty-two, and a server follows a thousand runs."""


def _column(values: Iterable[float] = ()) -> Column:
    return array("d", values)


@dataclass(slots=True)
class History:
    """The state of one run; `add` changes it. Only the first rank that reports is followed, others are counted."""

    step: float = 0.0
    first_step: float | None = None
    clock_seconds: float | None = None
    elapsed_seconds: float = 0.0
    start_seconds: float = 0.0
    down_seconds: float = 0.0
    executed_steps: float = 0.0
    replayed_steps: float = 0.0
    attempt: int = 0
    attempt_begin: float = 0.0
    run_begin: float = 0.0
    restarts: int = 0
    interruptions: list[Interruption] = field(default_factory=list)
    attempt_paces: list[float] = field(default_factory=list)
    clock_jumps: int = 0
    reports: int = 0
    has_ended: bool = False
    total_steps: float | None = None
    total_epochs: float | None = None
    steps_per_epoch: float | None = None
    epoch: float | None = None
    log_remaining_seconds: float | None = None
    printed_step_seconds: float | None = None
    data_fraction: float | None = None
    data_seconds: float | None = None
    first_data_seconds: float | None = None
    rank_seconds: dict[int, float] = field(default_factory=dict)
    _rank: int | None = None
    _data_reports: int = 0
    _attempt_seconds: float = 0.0
    _timed_step: float = 0.0
    _timed_seconds: float = 0.0
    _whole_seconds: bool = True
    _ends: Column = field(default_factory=_column)
    _steps: Column = field(default_factory=_column)
    _seconds: Column = field(default_factory=_column)
    _pauses: list[Pause] = field(default_factory=list)
    _paused_seconds: float = 0.0

    def add(self, seen: Report) -> tuple[float, float] | None:
        """Take in one report; gives the steps and seconds of the span that it ends, if it ends one."""
        self._note_rank(seen)
        if seen.rank is not None and seen.rank != self._rank:
            return None
        total_before, was_through = self._announced_total(), self._is_through()
        self._note_announced(seen)
        if seen.phase != "train":
            self.has_ended = self.has_ended or seen.phase == "end"
            self._advance(seen.clock_seconds)
            self._note_pause(seen)
            return None
        had_ended, self.has_ended = self.has_ended or was_through, False
        self.reports += 1
        is_first = self.first_step is None
        begins_anew = not is_first and (seen.attempt != self.attempt or seen.step < self.step)
        was_timed, ran_back = self._tick(seen)
        span = None
        if is_first:
            self.first_step = seen.step
            self.start_seconds = self.elapsed_seconds
        elif begins_anew:
            self._begin_anew(seen, had_ended)
            self._note_run(seen, had_ended, total_before)
        elif was_timed and not ran_back and seen.step > self._timed_step:
            seconds = self.elapsed_seconds - self._timed_seconds
            span = seen.step - self._timed_step, max(0.0, seconds - self._paused_seconds)
            self._add_span(*span)
        elif not ran_back:
            # No time, or the step of before: what passed belongs to the span that ends with a later report.
            self.step = seen.step
            return None
        self.attempt, self.step = seen.attempt, seen.step
        self._timed_step, self._timed_seconds, self._paused_seconds = seen.step, self.elapsed_seconds, 0.0
        return span

    def _note_pause(self, seen: Report) -> None:
        """A pause whose length was recorded is no part of the span in which it lies."""
        if seen.pause_seconds is None or self.first_step is None:
            return
        at_step = self.executed_steps + max(0.0, self.step - self._timed_step)
        self._paused_seconds += seen.pause_seconds
        self._pauses = [*self._pauses, Pause(at_step, seen.pause_seconds, intern(seen.what))][-MOST_PAUSES:]

    def _is_through(self) -> bool:
        return self.total_steps is not None and self.step >= self.total_steps

    def _begin_anew(self, seen: Report, had_ended: bool) -> None:
        """Another attempt; where the one before had ended it is another run in the same file."""
        seconds, replayed = self.elapsed_seconds - self._timed_seconds, max(0.0, self.step - seen.step)
        steps = self.executed_steps - self.attempt_begin
        if steps > 0 and self._attempt_seconds > 0:
            self.attempt_paces = [*self.attempt_paces, self._attempt_seconds / steps][-MOST_INTERRUPTIONS:]
        self._attempt_seconds = 0.0
        self.restarts += 1
        self.replayed_steps += replayed
        self.down_seconds += seconds
        self.attempt_begin = self.executed_steps
        if not had_ended:
            self.interruptions = [*self.interruptions, Interruption(seconds, replayed)][-MOST_INTERRUPTIONS:]

    def _announced_total(self) -> float | None:
        if self.total_steps is not None or self.total_epochs is None:
            return self.total_steps
        return self.total_epochs * (self.steps_per_epoch or 1.0)

    def _note_run(self, seen: Report, had_ended: bool, total_before: float | None) -> None:
        """An attempt that starts from nothing is a run of its own, even in the same file.

        One that ended before, of another length, was no training of this job: a bar that prepared the data.
        """
        total = self._announced_total()
        if seen.step > (self.first_step or 0.0) + FROM_THE_START * (total or 0.0):
            return
        self.run_begin = self.executed_steps
        if had_ended and total and total_before and abs(total - total_before) > OTHER_TOTAL * total_before:
            self._forget()

    def _forget(self) -> None:
        """What was seen says nothing of the run that begins; time and steps count on."""
        self._ends, self._steps, self._seconds, self._pauses = _column(), _column(), _column(), []
        self.printed_step_seconds = self.data_fraction = self.data_seconds = self.first_data_seconds = None
        self._data_reports = 0
        self.interruptions, self.attempt_paces = [], []

    def spans(self) -> Spans:
        """All spans with their pauses, as arrays; spans that are too short for the clock are joined."""
        ends, steps, seconds = (np.array(values) for values in (self._ends, self._steps, self._seconds))
        before = int(np.searchsorted(ends, self.attempt_begin, side="right"))
        parts = [
            _joined(ends[part], steps[part], seconds[part], self._least_seconds(seconds[part]))
            for part in (slice(0, before), slice(before, None))
        ]
        ends, steps, seconds = (np.concatenate(pair) for pair in zip(*parts, strict=True))
        return Spans(ends, steps, seconds, tuple(self._pauses))

    def _least_seconds(self, seconds: np.ndarray) -> float:
        """What a span must take for the clock to say something of it."""
        least = float(TICKS_PER_SPAN) if self._whole_seconds else 0.0
        is_standing = len(seconds) > 0 and (seconds <= 0).mean() > MOST_STANDING
        return max(least, float(seconds.sum()) / PARTS_OF_STANDING) if is_standing else least

    def _tick(self, seen: Report) -> tuple[bool, bool]:
        """Whether the report has a time, and whether its clock was set back.

        Where no line has a clock, time is the sum of the seconds that lines say steps took.
        """
        if seen.clock_seconds is not None:
            if self._wavers(seen.clock_seconds):
                return False, False
            return True, not self._advance(seen.clock_seconds)
        if seen.step_seconds is None or self.clock_seconds is not None:
            return False, False
        steps = seen.step - self._timed_step if self.first_step is not None else 0.0
        self._whole_seconds = False
        self.elapsed_seconds += max(0.0, steps) * seen.step_seconds
        return True, False

    def _wavers(self, clock_seconds: float) -> bool:
        """A clock that is worked out from a bar's own estimates goes back a little now and then: wait for it."""
        back_seconds = 0.0 if self.clock_seconds is None else self.clock_seconds - clock_seconds
        return 0 < back_seconds <= min(MOST_WAVERING_SECONDS, MOST_WAVERING * self.elapsed_seconds)

    def _advance(self, clock_seconds: float | None) -> bool:
        """Move the clock on; false if it was set back."""
        if clock_seconds is None or self._wavers(clock_seconds):
            return True
        before, self.clock_seconds = self.clock_seconds, clock_seconds
        self._whole_seconds = self._whole_seconds and clock_seconds == int(clock_seconds)
        if before is None:
            # A clock counts from the log's first time stamp: what lies before the first report is start-up.
            self.elapsed_seconds += max(0.0, clock_seconds)
            return True
        if clock_seconds < before:
            self.clock_jumps += 1
            return False
        self.elapsed_seconds += clock_seconds - before
        return True

    def _add_span(self, steps: float, seconds: float) -> None:
        self.executed_steps += steps
        self._attempt_seconds += seconds
        self._ends.append(self.executed_steps)
        self._steps.append(steps)
        self._seconds.append(seconds)
        if len(self._ends) >= MOST_SPANS:
            self._thin()

    def _thin(self) -> None:
        """Write pauses down apart, then join neighbouring spans."""
        spans = self.spans()
        pauses = find_pauses(spans)
        self._pauses = [*self._pauses, *pauses.new][-MOST_PAUSES:]
        ends, steps, seconds = spans.ends[1::2], spans.steps, spans.seconds - pauses.span_seconds
        if len(steps) % 2:
            ends, steps, seconds = (np.append(ends, spans.ends[-1]), np.append(steps, 0.0), np.append(seconds, 0.0))
        self._ends = _column(ends)
        self._steps = _column(steps[::2] + steps[1::2])
        self._seconds = _column(seconds[::2] + seconds[1::2])

    def _note_rank(self, seen: Report) -> None:
        if seen.rank is None:
            return
        if self._rank is None:
            self._rank = seen.rank
        if seen.step_seconds is not None:
            self.rank_seconds[seen.rank] = _followed(self.rank_seconds.get(seen.rank), seen.step_seconds)

    def _note_announced(self, seen: Report) -> None:
        """Keep the latest of what lines announce."""
        self.total_steps = seen.total_steps or self.total_steps
        self.total_epochs = seen.total_epochs or self.total_epochs
        self.steps_per_epoch = seen.steps_per_epoch or self.steps_per_epoch
        self.epoch = self.epoch if seen.epoch is None else seen.epoch
        if seen.phase != "train":
            return
        self.log_remaining_seconds = seen.remaining_seconds
        self.printed_step_seconds = seen.step_seconds or self.printed_step_seconds
        if seen.data_seconds is not None:
            self._note_data(seen.data_seconds, seen.step_seconds)

    def _note_data(self, seconds: float, step_seconds: float | None) -> None:
        """Waiting for data: as of late, and as it was in the first reports."""
        self._data_reports += 1
        self.data_seconds = _followed(self.data_seconds, seconds)
        if self._data_reports <= FIRST_REPORTS:
            before = self.first_data_seconds or 0.0
            self.first_data_seconds = before + (seconds - before) / self._data_reports
        if step_seconds:
            self.data_fraction = _followed(self.data_fraction, min(1.0, seconds / step_seconds))


def _followed(before: float | None, value: float) -> float:
    """A mean with a memory of some ten values."""
    return value if before is None else before + 0.1 * (value - before)


def _joined(
    ends: np.ndarray, steps: np.ndarray, seconds: np.ndarray, least_seconds: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Spans joined with their next until each takes `least_seconds`; what is left over goes to the last."""
    if not len(steps) or least_seconds <= 0 or seconds.min() >= least_seconds:
        return ends, steps, seconds
    groups, gathered, group = [], 0.0, 0
    for value in seconds.tolist():
        groups.append(group)
        gathered += value
        if gathered >= least_seconds:
            group, gathered = group + 1, 0.0
    index = np.array(groups)
    index = np.minimum(index, max(0, group - 1))
    last = np.append(np.flatnonzero(np.diff(index)), len(index) - 1)
    return ends[last], np.bincount(index, steps), np.bincount(index, seconds)
