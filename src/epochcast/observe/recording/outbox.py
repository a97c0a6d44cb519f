"""Between a training and a sink: a buffer with a bound, and a thread that empties it.

The training's thread only appends. Once a second the other thread sends what is there; where the sink fails it waits
longer and longer and tries again. When the buffer is full the oldest rows are lost. They are counted by the gap in the
rows' numbers, and the sink receives them when it is back. A server is asked at once whether it is there, and what it
does not take waits on the disk instead (`spooled_sink`).
"""

import logging
import os
import time
from collections import deque
from threading import Event, Thread

from epochcast.observe.recording.recorded_rows import AttemptStart, RecordedRow
from epochcast.observe.recording.sink import Sink
from epochcast.observe.recording.spooled_sink import SpooledSink

# Rows that wait for their sink. At ten a second, the most that a run records, a sink may be away for 16 minutes.
MOST_ROWS = 10_000
# Rows that are sent at once.
MOST_AT_ONCE = 1_000
# Between two looks at the buffer: what `kill -9` loses, with the time that one sending takes.
FLUSH_SECONDS = 1.0
# A sink that fails is tried again after twice as long each time, up to this.
MOST_WAIT_SECONDS = 60.0
# The end of a training waits this long for what is not sent yet.
CLOSE_SECONDS = 5.0
_RETRY_AT_END_SECONDS = 0.25

_logger = logging.getLogger("epochcast.observe.runs")

# How often this process is a copy of another. Threads are not copied: what was open in the original is silent here.
_forks = 0


def _forked() -> None:
    global _forks  # noqa: PLW0603
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def forks() -> int:
    """To compare with what it was."""
    return _forks


class Outbox:
    """The buffer before one sink, and its thread."""

    def __init__(
        self,
        sink: Sink,
        start: AttemptStart,
        most_rows: int = MOST_ROWS,
        flush_seconds: float = FLUSH_SECONDS,
        close_seconds: float = CLOSE_SECONDS,
    ) -> None:
        self.sink, self.start = sink, start
        self.dropped = 0
        self.sent = 0
        self.error: str | None = None
        self._rows: deque[RecordedRow] = deque(maxlen=most_rows)
        self._pending: list[RecordedRow] = []
        self._next = 0
        self._failures = 0
        self._flush_seconds, self._close_seconds = flush_seconds, close_seconds
        self._closing, self._closed = Event(), Event()
        self._forks = _forks
        self._spooled = sink if isinstance(sink, SpooledSink) else None
        self.put = self._rows.append
        self._thread = Thread(target=self._run, name=f"epochcast to {sink.name}", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Rows that were recorded and are not sent."""
        return sum(row.kind != "dropped" for row in self._pending) + len(self._rows)

    @property
    def lost(self) -> int:
        """Rows that were dropped, and at the end those that were never sent."""
        return self.dropped + (self.waiting if self._closing.is_set() else 0)

    def hurry(self) -> None:
        """Nothing more comes: send what is there at once."""
        if self._spooled is not None:
            self._spooled.hurry()
        self._closing.set()

    def close(self) -> None:
        """Send what is there, for as long as a training may be held up at its end, and say what was lost."""
        if self._forks != _forks:
            return
        self.hurry()
        self._closed.wait(self._close_seconds)
        if self._spooled is not None and self._spooled.waiting:
            text = "%s: %d records of %r are not sent (%s); the next training that reports there sends them, from %s"
            waiting, why, path = self._spooled.waiting, self._spooled.error, self._spooled.spool.path
            _logger.warning(text, self.sink.name, waiting, self.start.job, why, path)
        if self.lost:
            reason = f" ({self.error})" if self.error else ""
            _logger.warning("%s: %d records of %r were lost%s", self.sink.name, self.lost, self.start.job, reason)

    def _run(self) -> None:
        self._deliver()
        while not self._closing.wait(self._wait_seconds()):
            self._deliver()
        deadline = time.monotonic() + self._close_seconds
        while not self._deliver() and time.monotonic() < deadline:
            time.sleep(_RETRY_AT_END_SECONDS)
        self._closed.set()

    def _wait_seconds(self) -> float:
        return min(MOST_WAIT_SECONDS, self._flush_seconds * 2.0 ** min(self._failures, 30))

    def _deliver(self) -> bool:
        """Send all that is there; false where the sink would not take it."""
        while True:
            self._fill()
            if not self._pending:
                if self._spooled is None or self._spooled.is_settled:
                    return True
                self._spooled.send(self.start, [])
                return self._spooled.is_settled
            try:
                accepted = self.sink.send(self.start, self._pending)
            except Exception as error:
                return self._failed(f"{type(error).__name__}: {error}")
            del self._pending[:accepted]
            self.sent += accepted
            if self._pending:
                return self._failed("it took only a part")
            self._failures = 0

    def _failed(self, why: str) -> bool:
        self._failures += 1
        self.error = why
        return False

    def _fill(self) -> None:
        while self._rows and len(self._pending) < MOST_AT_ONCE:
            row = self._rows.popleft()
            missing = row.number - self._next
            if missing > 0:
                self.dropped += missing
                self._pending.append(RecordedRow(row.number - 1, "dropped", row.step, row.clock_seconds, steps=missing))
            self._next = row.number + 1
            self._pending.append(row)
