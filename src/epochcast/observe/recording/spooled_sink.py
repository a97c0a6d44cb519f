"""A server as a sink that takes everything: what the server would not take now waits on the disk (`report_spool`).

Rows arrive in order: what a training before left behind, what waits, what is new. While the server is away it is tried
again after one second, two, four, up to a minute. That it is away, or refuses the token, is said once, when it has
failed three times: within the first half minute of a training that began so.
"""

import logging
import time
from collections.abc import Sequence

from epochcast.observe.recording.recorded_rows import AttemptStart, RecordedRow
from epochcast.observe.recording.report_spool import ReportSpool
from epochcast.observe.recording.sink import ServerRefuses, Sink

FIRST_WAIT_SECONDS, MOST_WAIT_SECONDS = 1.0, 60.0
# Failures in a row that are no hiccup: those of the first seconds.
MANY_FAILURES = 3
# Rows in one request.
MOST_AT_ONCE = 1_000
# What a server answers that is there and does not like the rows.
BAD_ROWS = (400, 409, 413, 422)

_logger = logging.getLogger("epochcast.observe.runs")


class SpooledSink:
    """Takes rows for a sink that may be away."""

    def __init__(self, sink: Sink, spool: ReportSpool, first_wait_seconds: float = FIRST_WAIT_SECONDS) -> None:
        self.name, self.sink, self.spool = sink.name, sink, spool
        self.error: str | None = None
        self._first_wait_seconds = first_wait_seconds
        self._failures, self._has_complained = 0, False
        self._retry_at = 0.0
        self._is_ending = self._is_known = False

    @property
    def waiting(self) -> int:
        """Rows on the disk that were not sent."""
        return self.spool.waiting

    @property
    def is_settled(self) -> bool:
        """Whether the server knows of the training, and nothing waits."""
        return self._is_known and not self.waiting

    def hurry(self) -> None:
        """The training ends: try at once from now on."""
        self._is_ending = True

    def send(self, start: AttemptStart, rows: Sequence[RecordedRow]) -> int:
        """Send what waits and these, or keep these; gives how many were sent or kept. Without rows: what waits."""
        if time.monotonic() < self._retry_at and not self._is_ending:
            return self.spool.add(start, rows)
        try:
            self._send_left_behind()
            self._empty(self.spool)
            if rows or not self._is_known:
                self.sink.send(start, rows)
            self._failures, self.error, self._is_known = 0, None, True
        except Exception as error:
            self._failed(error)
            return self.spool.add(start, rows)
        return len(rows)

    def _empty(self, spool: ReportSpool) -> None:
        """Send all of it; a file that has vanished meanwhile raises, as a server does that is away."""
        while (batch := spool.first(MOST_AT_ONCE)) is not None:
            self.sink.send(batch.start, batch.rows)
            spool.remove(batch)

    def _send_left_behind(self) -> None:
        """What trainings before could not send, until that was done once."""
        if self._is_known:
            return
        for spool in self.spool.left_behind():
            try:
                self._empty(spool)
            except ServerRefuses as error:
                if error.status not in BAD_ROWS:  # those must not keep the rows of this training from the server
                    raise
                _logger.info("%s: reports of a training before are refused: %s", self.name, error)
            finally:
                spool.close()

    def _failed(self, error: Exception) -> None:
        self._failures += 1
        self.error = str(error) or type(error).__name__
        wait_seconds = self._first_wait_seconds * 2.0 ** min(self._failures - 1, 30)
        self._retry_at = time.monotonic() + min(MOST_WAIT_SECONDS, wait_seconds)
        if self._failures >= MANY_FAILURES and not self._has_complained:
            self._has_complained = True
            _logger.warning("%s: %s. Training continues; reports wait on this machine.", self.name, self.error)
