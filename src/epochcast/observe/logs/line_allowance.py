"""How closely a long log may be read: so many lines for so many bytes, whatever the log is like.

A line that is taken apart costs as much time as a kilobyte that is passed over. Most long logs go on as before and need
few lines. One that starts anew every other kilobyte, or whose every line ends an epoch, needs nearly all: it is read in
parts, and what lies between two parts is taken to be like the parts.

What stands in the log is exact behind such a gap: steps, epochs, dates, timers. A clock that is summed up (epochs with
times of their own, times of steps) continues by what the parts took per byte. Restarts within a gap are not counted.
"""

from dataclasses import dataclass, field

from epochcast.observe.logs.run_course import LogClock
from epochcast.observe.runs.report import Report

# Bytes whose passing over takes as long as to take one line apart, more for each of its bytes; to look at one for
# its bare numbers; to split off one.
LINE_BYTES, LINE_SHARE, LOOK_BYTES, SPLIT_BYTES = 1600, 4, 300, 50

# What may be taken apart ahead of the bytes that pay for it, some seconds of work: only long logs have gaps.
FIRST_BYTES = 250_000_000

# The end of what has come is always read: it may be the end of the log.
TAIL_BYTES = 4096


@dataclass
class Allowance:
    """What may still be taken apart, in bytes that would be passed over in the same time."""

    left_bytes: float = field(default_factory=lambda: FIRST_BYTES)
    weight: float = 1.0

    def take(self, line_bytes: int) -> None:
        """A line of this length is taken apart."""
        self.left_bytes -= self.weight * (LINE_BYTES + LINE_SHARE * line_bytes)

    def look(self, lines: int) -> None:
        """So many lines are looked at for their bare numbers."""
        self.left_bytes -= LOOK_BYTES * lines

    def use(self, size_bytes: int, lines: int) -> None:
        """So many bytes were read, and split into so many lines."""
        self.left_bytes = min(self.left_bytes + size_bytes - SPLIT_BYTES * lines, FIRST_BYTES)

    @property
    def owed_bytes(self) -> int:
        """Bytes to pass over before more may be read."""
        return max(0, int(-self.left_bytes))

    def pass_over(self, size_bytes: int) -> None:
        """So many bytes were not looked at."""
        self.left_bytes += size_bytes


@dataclass
class Gaps:
    """Carries a clock that is summed up over the gaps: by the seconds per byte of what was read."""

    clock: LogClock
    read_bytes: int = 0
    read_seconds: float = 0.0
    passed_bytes: int = 0
    open_bytes: int = 0
    since_seconds: float = field(init=False)

    def __post_init__(self) -> None:
        self.since_seconds = self.clock.seconds or 0.0

    def read(self, size_bytes: int) -> None:
        """So many bytes were read."""
        self.read_bytes += size_bytes

    def pass_over(self, size_bytes: int) -> None:
        """So many bytes were not looked at."""
        if not self.open_bytes:
            self.read_seconds += (self.clock.seconds or 0.0) - self.since_seconds
            self.since_seconds = self.clock.seconds or 0.0
        self.open_bytes += size_bytes
        self.passed_bytes += size_bytes

    def close(self, seen: Report) -> Report:
        """The first report behind a gap, at the time that it then is."""
        if not self.open_bytes or seen.clock_seconds is None or seen.phase != "train":
            return seen
        passed, usual = seen.clock_seconds - self.since_seconds, self.read_seconds / max(self.read_bytes, 1)
        missing = usual * self.open_bytes - passed
        self.open_bytes = 0
        # Times that are written tell what passed; a sum knows only of what it has read, which is next to nothing.
        if self.clock.source != "stamps" and passed < missing:
            self.clock.add(missing)
            seen = seen._replace(clock_seconds=seen.clock_seconds + missing)
        self.since_seconds = seen.clock_seconds or 0.0
        return seen
