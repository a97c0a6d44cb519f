"""Which lines of a very long log are read: all of them at first, then some of those that report the same way.

A line's kind is what is left of its beginning without digits. Kinds that were seen to report training with a clock of
their own (a date, the time since the start, or that of a step) may be left out: the next one says where the run stands,
and when.
Validation, checkpoints, ends of epochs and everything new is read. Counts stay exact, since lines carry them.
"""

from dataclasses import dataclass, field

from epochcast.tracking.formats.sighting import Sighting

# Reports that are all read; nothing is learned of a pace from more of them than from some.
EXACT_REPORTS = 32_000

# Beyond these one line of so many of a kind is read.
KEPT_OF = 32

_HEAD_BYTES = 120
_DIGITS = b"0123456789 .,:+-"
MOST_KINDS = 512


@dataclass
class Thinner:
    """Counts what was read, and says what may be left out."""

    reports: int = 0
    plain: dict[bytes, int] = field(default_factory=dict)
    passed: int = 0

    @property
    def is_on(self) -> bool:
        """Whether enough was read in full."""
        return self.reports >= EXACT_REPORTS

    def leaves_out(self, line: bytes) -> bool:
        """Whether this line may be passed over."""
        count = self.plain.get(line[:_HEAD_BYTES].translate(None, _DIGITS))
        if count is None or count <= 0:
            return False
        self.passed += 1
        return self.passed % KEPT_OF != 0

    def note(self, line: bytes, sighting: Sighting | None) -> None:
        """Remember what a line of this kind was."""
        if sighting is None:
            return
        self.reports += sighting.phase == "train"
        if self.reports < EXACT_REPORTS - 2 * MOST_KINDS:  # kinds are learned shortly before they are needed
            return
        is_plain = (
            sighting.phase == "train"
            and not sighting.closes_epoch
            and (sighting.stamp_seconds is not None or sighting.elapsed_seconds is not None or _has_pace(sighting))
        )
        kind = line[:_HEAD_BYTES].translate(None, _DIGITS)
        if not is_plain:
            self.plain[kind] = -1
        elif self.plain.get(kind, 0) >= 0 and (kind in self.plain or len(self.plain) < MOST_KINDS):
            self.plain[kind] = self.plain.get(kind, 0) + 1


def _has_pace(sighting: Sighting) -> bool:
    """Whether the line's only time is that of a step, of which some tell as much as all."""
    parts = (
        sighting.interval_seconds,
        sighting.section_seconds,
        sighting.average_seconds,
        sighting.epoch_remaining_seconds,
        sighting.samples_per_second,
    )
    return sighting.step_seconds is not None and all(seconds is None for seconds in parts)
