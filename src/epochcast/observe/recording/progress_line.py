"""The line that `show=True` writes: how far, how long still, in which interval, when."""

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TextIO

from epochcast.errors import EpochcastError
from epochcast.observe.recording.recorded_rows import AttemptStart, RecordedRow
from epochcast.units import show_seconds

if TYPE_CHECKING:
    from epochcast.observe.runs.tracker import Tracker


class LiveLine:
    """A sink that draws: as often as it is sent something, once a second. On a terminal the line is drawn over."""

    name = "the screen"

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._tracker: Tracker | None = None
        self._width = 0

    def send(self, start: AttemptStart, rows: Sequence[RecordedRow]) -> int:
        """Take all in and draw the line once."""
        if self._tracker is None:
            from epochcast.observe.runs.tracker import Tracker

            self._tracker = Tracker()
        for row in rows:
            seen = row.report(start)
            if seen is not None:
                self._tracker.add(seen)
        text = f"{start.job}: {self._text(rows[-1])}" if rows else ""
        is_last = bool(rows) and rows[-1].kind in ("end", "stopped")
        self._stream.write("\r" + text.ljust(self._width) + ("\n" if is_last else ""))
        self._stream.flush()
        self._width = len(text)
        return len(rows)

    def _text(self, row: RecordedRow) -> str:
        if row.kind == "end":
            return f"done after {show_seconds(row.clock_seconds)}, {row.step} steps"
        if row.kind == "stopped":
            return f"stopped at step {row.step} after {show_seconds(row.clock_seconds)}"
        assert self._tracker is not None
        try:
            standing = self._tracker.standing(datetime.now().astimezone())
        except EpochcastError:
            return f"step {row.step}, {show_seconds(row.clock_seconds)} so far"
        left = standing.remaining_seconds
        return (
            f"{standing.fraction:.0%}, step {row.step} of {standing.total_steps:g}, "
            f"{show_seconds(left.mid)} left ({show_seconds(left.low)} … {show_seconds(left.high)}), "
            f"ends {standing.finish_at:%a %H:%M}"
        )
