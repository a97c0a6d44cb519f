"""Kinds of lines: what is left of a line without its digits and the drawing of its bar says how it is to be read.

A kind is learned from the lines of it that were read. Most lines of a long log are of a few kinds: reports of training
that go on, reports of validation, and lines that say nothing.
"""

from dataclasses import dataclass, field

from epochcast.observe.logs.formats.sighting import Sighting

# Codes of kinds. Lines of an unknown kind, headings and ends of epochs are always read.
ALWAYS, GOING_ON, BESIDE, SILENT, MUTE = range(5)

# Lines of a kind that are read before it is known, and the share of them that have to agree.
LEAST_LINES, LEAST_SHARE = 8, 0.9
# Silence is believed sooner: some silent lines are read again and again.
LEAST_SILENT_LINES = 3
MOST_KINDS = 16_384
LONGEST_KIND_BYTES = 512

# Digits, signs, and what bars are drawn with; bytes from 128 on are those of block characters.
_DROPPED = b"0123456789 .:+-=>#" + bytes(range(128, 256))


def kinds_of(block: bytes) -> list[bytes]:
    """The kind of every line of a block."""
    return block.translate(None, _DROPPED).split(b"\n")


class _Codes(dict[bytes, int]):
    def __missing__(self, kind: bytes) -> int:
        return ALWAYS


@dataclass
class Kinds:
    """What is known of the kinds of one log."""

    codes: _Codes = field(default_factory=_Codes)
    seen: dict[bytes, list[int]] = field(default_factory=dict)

    def codes_of(self, kinds: list[bytes]) -> bytearray:
        """The code of every line, by its kind."""
        return bytearray(map(self.codes.__getitem__, kinds))

    def note(self, kind: bytes, code: int) -> None:
        """Remember how a line of this kind was to be read."""
        if len(kind) > LONGEST_KIND_BYTES:
            return
        seen = self.seen.get(kind)
        if seen is None:
            if len(self.seen) >= MOST_KINDS:
                self.seen = {coded: self.seen[coded] for coded in self.codes}
                if len(self.seen) >= MOST_KINDS // 2:
                    self.seen, self.codes = {}, _Codes()
            seen = self.seen[kind] = [0] * 5
        if code == SILENT and seen[MUTE]:  # it was listened to, and had nothing to say
            code = MUTE
        seen[code] += 1
        total = sum(seen)
        if total < (LEAST_SILENT_LINES if code >= SILENT else LEAST_LINES):
            return
        if seen[code] >= LEAST_SHARE * total:
            self.codes[kind] = code
        else:
            self.codes.pop(kind, None)


def code_of(sighting: Sighting | None) -> int:
    """How lines are to be read that say what this one says."""
    if sighting is None:
        return SILENT
    if sighting.phase == "train":
        return ALWAYS if sighting.closes_epoch else GOING_ON
    if sighting.phase == "validation" and (sighting.pause_seconds is None or sighting.is_redrawn):
        return BESIDE
    return ALWAYS
