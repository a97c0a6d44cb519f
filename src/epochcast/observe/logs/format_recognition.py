"""Which format a log is written in, and how sure that is: every format reads the first lines, the surest one wins."""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from epochcast.observe.logs.formats.format_rule import Format, Parser
from epochcast.observe.logs.formats.format_table import FORMATS
from epochcast.observe.logs.formats.sighting import Sighting

# Evidence at which a log is recognised while more of it may come: two lines that nobody else prints.
ENOUGH_EVIDENCE = 2.0

# Evidence at which it is taken for recognised where the log has nothing more to say for now.
SOME_EVIDENCE = 0.4

# Lines that some format could read are kept until it is clear which; more than these are not needed to tell.
MOST_KEPT_LINES = 20_000

# Below this a format's lines are of a common shape; all of them together say less than one that nobody else prints.
COMMON_SURENESS = 0.2
MOST_COMMON_EVIDENCE = 0.9

# Lines of one format are not counted beyond this, so that a coarse format is not outvoted by many lines of a bar.
MOST_LINES = 40


@dataclass(frozen=True, slots=True)
class Recognition:
    """The format of a log: `confidence` is the evidence for it, squared, over that for all, 0 to 1."""

    name: str
    framework: str
    confidence: float
    lines: int
    rivals: tuple[tuple[str, float], ...] = ()

    def __str__(self) -> str:
        others = ", ".join(f"{name} {share:.0%}" for name, share in self.rivals)
        return f"{self.name} ({self.framework}), {self.confidence:.0%} sure" + (f"; also {others}" if others else "")


@dataclass
class FormatCandidate:
    """A format while it is being compared: its parser and what fitted so far."""

    format: Format
    parser: Parser
    lines: int = 0

    @property
    def evidence(self) -> float:
        """Fitting lines, weighed; common words, however many, against a line or two that nobody else prints."""
        evidence = min(self.lines, MOST_LINES) * self.format.sureness
        return min(evidence, MOST_COMMON_EVIDENCE) if self.is_common else evidence

    @property
    def is_common(self) -> bool:
        """Whether its lines are of so common a shape that many trainers print them beside their own."""
        return self.format.sureness < COMMON_SURENESS


@dataclass
class Recogniser:
    """Compares lines with all formats until one is clearly ahead."""

    formats: tuple[Format, ...] = FORMATS
    lines_read: list[str] = field(default_factory=list)
    candidates: list[FormatCandidate] = field(init=False)
    _needles: list[tuple[FormatCandidate, tuple[bytes, ...]]] = field(init=False)
    _present: list[tuple[FormatCandidate, tuple[bytes, ...]]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.candidates = [FormatCandidate(format, format.parser()) for format in self.formats]
        self._needles = [(c, tuple(n.encode() for n in c.format.needles)) for c in self.candidates]

    def prepare(self, block: bytes) -> None:
        """Leave out what the next lines cannot hold: most formats' words are nowhere in them."""
        self._present = []
        pairs = _pairs_in(block)
        for candidate, needles in self._needles:
            present = tuple(needle for needle in needles if _may_hold(pairs, needle) and needle in block)
            if present:
                self._present.append((candidate, present))

    def read(self, line: bytes) -> bool:
        """Compare one line of the prepared block with all formats; True once one is clearly ahead."""
        text: str | None = None
        is_kept = is_sighted = False
        for candidate, needles in self._present:
            for needle in needles:
                if needle in line:
                    break
            else:
                continue
            if text is None:
                text = line.decode("utf-8", "replace")
            is_kept = True
            sighting = sight(candidate.parser, text)
            if sighting is not None and sighting.phase == "train":
                candidate.lines += 1
                is_sighted = True
        if is_kept and text is not None and len(self.lines_read) < MOST_KEPT_LINES:
            self.lines_read.append(text)
        return (is_sighted and self._is_clear()) or (is_kept and len(self.lines_read) >= MOST_KEPT_LINES)

    def _is_clear(self) -> bool:
        ahead = self.ranked()
        if not ahead:
            return False
        if ahead[0].is_common:
            return ahead[0].lines >= MOST_LINES and all(other.is_common for other in ahead)
        if ahead[0].evidence < ENOUGH_EVIDENCE:
            return False
        return len(ahead) == 1 or ahead[0].evidence >= 1.25 * ahead[1].evidence

    @property
    def has_some_evidence(self) -> bool:
        """Whether to decide before all is clear: a decision stays, so one common-looking line is not enough."""
        ranked = self.ranked()
        return bool(ranked) and ranked[0].evidence >= SOME_EVIDENCE

    def ranked(self) -> list[FormatCandidate]:
        """Formats that fitted at all, the surest first."""
        fitting = [candidate for candidate in self.candidates if candidate.lines]
        return sorted(fitting, key=lambda candidate: -candidate.evidence)

    def decide(self) -> tuple[Format, Recognition] | None:
        """The surest format by the lines so far; None where no line fitted any."""
        ranked = self.ranked()
        if not ranked:
            return None
        best = ranked[0]
        total = sum(candidate.evidence**2 for candidate in ranked)
        share = best.evidence**2 / total
        rivals = tuple((other.parser.flavour, other.evidence**2 / total) for other in ranked[1:4])
        few = min(1.0, (1 + best.evidence) / (1 + ENOUGH_EVIDENCE))
        return best.format, Recognition(best.parser.flavour, best.format.framework, share * few, best.lines, rivals)


def _pairs_in(block: bytes) -> bytes:
    """Which pairs of bytes follow each other in a block: a table of 65,536 bytes, each 0 or 1."""
    pairs = np.zeros(1 << 16, np.uint8)
    letters = np.frombuffer(block, np.uint8).astype(np.uint16)
    pairs[(letters[:-1] << 8) | letters[1:]] = 1
    return pairs.tobytes()


def _may_hold(pairs: bytes, needle: bytes) -> bool:
    """Whether all pairs of a needle are there. To look for every needle itself takes ten times as long."""
    return all(pairs[first << 8 | second] for first, second in pairwise(needle))


def sight(parser: Parser, line: str) -> Sighting | None:
    """A line can hold numbers that no one would write; such a line says nothing."""
    try:
        return parser.sight(line)
    except (ValueError, OverflowError, ZeroDivisionError):
        return None
