"""One attempt of a training, recorded from inside: `Track`, the handle that `ec.track` gives.

Cost: a step reads a clock, adds and compares. A row is made at most ten times a second, later once in a ten-thousandth
of the time so far, so that a run of a month has some hundred thousand rows; a row stands for all steps since the one
before. What is apart from steps (validation, a checkpoint) always makes rows.

Nothing here waits for a disk or a network, and no fault of theirs reaches the training: see `outbox`.
"""

import atexit
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from types import TracebackType
from typing import Any

from epochcast.observe.recording.outbox import Outbox, forks
from epochcast.observe.recording.recorded_rows import AttemptStart, Kind, RecordedRow, reason_of
from epochcast.observe.recording.sink import Sink

# Between two rows: seconds, or this share of the time so far where that is longer.
LEAST_SECONDS, LEAST_SHARE = 0.1, 1e-4

# Where launchers (torchrun, MPI, Slurm) tell a process its rank, and how many there are.
RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
WORLDS = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")


class Track:
    """Counts steps and hands rows on. To be used by one thread; in a forked copy of the process it is silent."""

    def __init__(self, start: AttemptStart, sinks: Sequence[Sink] = (), least_seconds: float = LEAST_SECONDS) -> None:
        self._start = start
        self._least_seconds = least_seconds
        self._step = self._row_step = start.start_step
        self._epochs = 0
        self._number = 0
        self._data_seconds: float | None = None
        self._loss: float | None = None
        self._pauses: list[str] = []
        self._is_over = False
        self._forks = forks()
        self._origin = self._row_at = self._pause_at = perf_counter()
        self._next_at = self._origin  # the first step makes a row
        self.outboxes = [Outbox(sink, start) for sink in sinks]
        if self.outboxes:
            atexit.register(self.close, "the program ended")

    @property
    def steps(self) -> int:
        """Finished steps, with those of attempts before."""
        return self._step

    @property
    def start(self) -> AttemptStart:
        """What is known of this attempt."""
        return self._start

    @property
    def is_over(self) -> bool:
        """Whether it was closed."""
        return self._is_over

    @property
    def lost(self) -> Mapping[str, int]:
        """Rows that did not reach a sink that was away, by the sink's name."""
        return {box.sink.name: box.lost for box in self.outboxes}

    def step(self, count: int = 1, *, loss: object = None, data_seconds: float | None = None) -> None:
        """`count` more steps are finished; the loop waited `data_seconds` for their data, where that was measured."""
        self._step += count
        if data_seconds is not None:
            self._data_seconds = data_seconds + (self._data_seconds or 0.0)
        if type(loss) is float:  # kept for the next row; a tensor would keep its graph
            self._loss = loss
        now = perf_counter()
        if now >= self._next_at:
            self._write_steps(now, loss)

    def epoch(self) -> None:
        """An epoch is finished. The first one gives the steps per epoch where they are unknown."""
        self._settle(perf_counter())
        self._epochs += 1
        if self._start.steps_per_epoch is None and self._epochs == 1 and self._step > self._start.start_step:
            self.announce(steps_per_epoch=self._step - self._start.start_step)

    def begin(self, what: str = "pause") -> None:
        """No steps from here: `validation`, `checkpoint`, or a name of your own."""
        now = perf_counter()
        if not self._pauses:
            self._settle(now)
            self._put("begin", now, what=what)
            self._pause_at = now
        self._pauses.append(what)

    def done(self) -> None:
        """Steps again. Pauses within a pause are parts of it."""
        if not self._pauses:
            return
        what = self._pauses.pop()
        if not self._pauses:
            self.paused(what, self._pause_at)

    def paused(self, what: str, since: float) -> None:
        """There were no steps since `since`, a time of `time.perf_counter`, because of `what`; reported afterwards."""
        now = perf_counter()
        self._settle(max(since, self._row_at))
        self._put("done", now, seconds=now - since, what=what)
        self._row_at = now

    @contextmanager
    def pause(self, what: str = "pause") -> Iterator[None]:
        """What is in the block is apart from steps: `with run.pause("validation"): …`."""
        self.begin(what)
        try:
            yield
        finally:
            self.done()

    def announce(self, **totals: float | None) -> None:
        """Tell what was not known at the start: `total_steps`, `total_epochs`, `steps_per_epoch`."""
        self._start = replace(self._start, **{name: value for name, value in totals.items() if value is not None})  # type: ignore[arg-type]
        for box in self.outboxes:
            box.start = self._start

    def close(self, why: str = "") -> None:
        """End of the recording: finished, or stopped because of `why`. Waits at most seconds for what is unsent."""
        if self._is_over or self._forks != forks():
            return
        self._is_over = True
        now = perf_counter()
        self._settle(now)
        self._put("stopped" if why else "end", now, what=why)
        atexit.unregister(self.close)
        for box in self.outboxes:
            box.hurry()
        for box in self.outboxes:
            box.close()

    def settle(self) -> None:
        """Make a row of the steps since the last one, at once."""
        self._settle(perf_counter())

    def __enter__(self) -> "Track":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(reason_of(error) or ("" if kind is None else kind.__name__))

    def _settle(self, now: float) -> None:
        if self._step != self._row_step:
            self._write_steps(now, self._loss)

    def _write_steps(self, now: float, loss: object) -> None:
        if hasattr(loss, "detach"):
            loss = loss.detach()  # neither waited for here, nor is the graph behind it kept alive
        steps, seconds = self._step - self._row_step, now - self._row_at
        self._put("train", now, steps=steps, seconds=seconds, data_seconds=self._data_seconds, loss=loss)
        self._row_step, self._row_at, self._data_seconds, self._loss = self._step, now, None, None
        self._next_at = now + max(self._least_seconds, LEAST_SHARE * (now - self._origin))

    def _put(self, kind: Kind, now: float, **values: Any) -> None:
        if self._forks != forks():
            return
        length = self._start.steps_per_epoch
        epoch = self._step / length if length else float(self._epochs) if self._epochs else None
        row = RecordedRow(self._number, kind, self._step, now - self._origin, epoch=epoch, **values)
        self._number += 1
        for box in self.outboxes:
            box.put(row)


_last_attempt = 0


def new_attempt() -> int:
    """The second at which the attempt starts: attempts of one job grow, on whatever machine and disk they run."""
    global _last_attempt  # noqa: PLW0603
    _last_attempt = max(int(time.time()), _last_attempt + 1)
    return _last_attempt


def launched_rank() -> tuple[int, int]:
    """The rank of this process and how many there are, as the launcher says; 0 of 1 where there is none."""
    return _variable(RANKS, 0), max(1, _variable(WORLDS, 1))


def _variable(names: Sequence[str], otherwise: int) -> int:
    for name in names:
        text = os.environ.get(name, "")
        if text.isdigit():
            return int(text)
    return otherwise
