"""Which lines of a very long log are read: all of them at first, then some of those that go on as before.

Of a passage of reports of one kind after another the first is read, the last, and one in so many. A stretch between
two of these continues as before where the totals, the steps per line and the time per line are what they were, and
nothing ended whose time has to be added up (an epoch with a bar of its own). Where they are not (a pause, a restart, a
gap), either half of the stretch is tried, down to single lines. So counts stay exact, and so do clocks that are written
(dates, timers, bars). A clock that is summed up from the times of steps takes those of the lines that are read for
those of the others.
"""

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from epochcast.observe.logs.formats.format_rule import Parser
from epochcast.observe.logs.formats.sighting import Sighting
from epochcast.observe.logs.line_allowance import TAIL_BYTES, Allowance, Gaps
from epochcast.observe.logs.line_guesses import happenings
from epochcast.observe.logs.line_kinds import (
    ALWAYS,
    BESIDE,
    GOING_ON,
    MOST_KINDS,
    MUTE,
    SILENT,
    Kinds,
    code_of,
    kinds_of,
)
from epochcast.observe.logs.log_lines import LONGEST_LINE_BYTES

# Reports that are all read, at most so many lines of them and others; more of them tell no more of a pace than some.
EXACT_REPORTS, EXACT_LINES = 4096, 32_768

# Beyond these one line of so many is read, of very many fewer; primes, so that ranks that take turns are all heard.
STRIDE = 31
MANY_REPORTS, LONG_STRIDE = 32_768, 127

# Steps or seconds per line beyond these shares of the usual break a stretch; clocks of whole seconds jump a little.
MOST_CHANGE, MOST_JUMP_SECONDS = 2.0, 2.0
MOST_STEPS_CHANGE = 2.0
_MEMORY, LEARNED_LINES = 0.2, 8
# Where times waver so that one stretch in eight is broken by them, a longer time is the usual one.
_WILDER, _CALMER, WILDEST_CHANGE = 1.25, 0.97, 16.0

# Kinds that take turns this often (changes within so many lines) are woven into each other: no end of a passage.
WOVEN_CHANGES, WOVEN_LINES = 9, 15

# Of lines of silent kinds one in so many is listened to.
LISTENING = 61

# Lines after which a silent kind that comes again means that something happened.
AWAY_LINES = 500

# Kinds are learned from piece to piece: small ones first.
FIRST_PIECE_BYTES, MOST_PIECE_BYTES = 1 << 11, 1 << 15

_PASSAGES = re.compile(rb"\x01+|\x02+|\x00")
_SILENT_BYTES = bytes((SILENT, MUTE))


@dataclass
class _LastSighting:
    """The last report of a rank: what it said, the how manieth report it was, and what is usual per line."""

    sighting: Sighting
    line: int
    steps_per_line: float | None = None
    seconds_per_line: float | None = None
    most_change: float = MOST_CHANGE
    anchor: tuple[Sighting, int] = field(init=False)

    def __post_init__(self) -> None:
        self.anchor = self.sighting, self.line

    def expects(self, sighting: Sighting, line: int) -> bool:
        """Whether the steps and the time of the lines up to this one are the usual ones.

        Where times waver, more is taken for usual, so that not each slower epoch counts as a pause.
        """
        lines = line - self.line
        steps, seconds = _moved(self.sighting, sighting)
        if steps is None or steps < 0:
            return False
        usual = self.steps_per_line
        # One line more or less: where two lines tell of one step, they are 0 and 2 steps apart.
        if usual is not None and not (
            (lines / MOST_STEPS_CHANGE - 1) * usual <= steps <= (lines * MOST_STEPS_CHANGE + 1) * usual
        ):
            return False
        usual = self.seconds_per_line
        if seconds is None or usual is None:
            return True
        is_usual = 0 <= seconds <= self.most_change * usual * lines + MOST_JUMP_SECONDS
        change = self.most_change * (_CALMER if is_usual else _WILDER)
        self.most_change = min(max(change, MOST_CHANGE), WILDEST_CHANGE)
        return is_usual

    def follow(self, sighting: Sighting, line: int) -> None:
        """Take a report for the last one, and learn what is usual from some lines together: single ones may repeat."""
        self.sighting, self.line = sighting, line
        before, at = self.anchor
        steps, seconds = _moved(before, sighting)
        if line <= at or steps is None or steps < 0 or not _is_same_section(before, sighting):
            self.anchor = sighting, line
        elif line - at >= LEARNED_LINES:
            self.anchor = sighting, line
            self.steps_per_line = _followed(self.steps_per_line, steps / (line - at))
            if seconds is not None and seconds >= 0:
                self.seconds_per_line = _followed(self.seconds_per_line, seconds / (line - at))


@dataclass
class Sampler:
    """Reads blocks of lines by passages. `sight` reads one line with a parser, `place` takes what it said."""

    needle: re.Pattern[bytes]
    parser: Parser
    sight: Callable[[Parser, bytes], Sighting | None]
    place: Callable[[Sighting], None]
    gaps: Gaps
    allowance: Allowance = field(default_factory=Allowance)
    kinds: Kinds = field(default_factory=Kinds)
    lines_read: int = 0
    _stride: int = STRIDE
    _piece_bytes: int = FIRST_PIECE_BYTES
    _line: int = 0
    _every_line: int = 0
    _seen: dict[bytes, int] = field(default_factory=dict)
    _trained: int = 0
    _trained_closely: int = 0
    _offset: int = 0
    _last: dict[int | None, _LastSighting] = field(default_factory=dict)
    _since: list[int] = field(default_factory=lambda: [0] * 5)
    _before: int = ALWAYS
    _changes: deque[int] = field(default_factory=lambda: deque([-WOVEN_LINES - 1] * WOVEN_CHANGES, WOVEN_CHANGES))
    _lines: list[bytes] = field(default_factory=list)
    _kinds: list[bytes] = field(default_factory=list)
    _heard: list[int] = field(default_factory=list)

    def read(self, block: bytes) -> None:
        """Read what has to be read of these lines, piece by piece: kinds learned from one serve the next."""
        start, size = 0, len(block)
        while start < size:
            owed = self.allowance.owed_bytes
            if owed and start < size - TAIL_BYTES:
                start = self._pass_over(block, start, min(start + owed, size - TAIL_BYTES))
                continue
            end = block.find(b"\n", min(start + self._piece_bytes, size))
            end = size if end < 0 else end
            self._piece(block[start:end])
            self.allowance.use(end - start, len(self._lines))
            self.gaps.read(end - start)
            self._piece_bytes = min(2 * self._piece_bytes, MOST_PIECE_BYTES)
            start = end + 1

    def _pass_over(self, block: bytes, start: int, least: int) -> int:
        """Where to read on. Times since the report before count for the lines that were passed over (about so many)."""
        end = block.find(b"\n", least) + 1 or len(block)
        self.allowance.pass_over(end - start)
        self.gaps.pass_over(end - start)
        self._trained += round(self._trained_closely / max(self.gaps.read_bytes, 1) * (end - start))
        self._before = ALWAYS
        return end

    def _piece(self, block: bytes) -> None:
        block = block.removesuffix(b"\n")
        is_long = self._trained * self.allowance.weight >= MANY_REPORTS
        self._stride = LONG_STRIDE if is_long else STRIDE
        self._lines = block.split(b"\n")
        self._kinds = kinds_of(block)
        codes = self.kinds.codes_of(self._kinds)
        self._sort_out(codes)
        self._heard = np.flatnonzero(np.frombuffer(codes, np.uint8) < SILENT).tolist()
        trained = self._trained
        for passage in _PASSAGES.finditer(codes.translate(None, _SILENT_BYTES)):
            code, first, last = passage[0][0], passage.start(), passage.end() - 1
            self._passage(code, first, last)
        self._trained_closely += self._trained - trained
        self._line += len(self._heard)
        self._every_line += len(self._lines)

    def _sort_out(self, codes: bytearray) -> None:
        """Lines of unknown kinds without any word of the format are mute; of silent ones some are listened to."""
        search, lines, kinds, code_of_kind = self.needle.search, self._lines, self._kinds, self.kinds.codes
        index = codes.find(ALWAYS)
        while index >= 0:
            if kinds[index] not in code_of_kind and search(lines[index]) is None:
                codes[index] = MUTE
                self.kinds.note(kinds[index], MUTE)
            index = codes.find(ALWAYS, index + 1)
        silent = np.flatnonzero(np.frombuffer(bytes(codes), np.uint8) == SILENT)
        for index in silent[LISTENING - 1 - self._since[SILENT] :: LISTENING].tolist():
            if self._sight(duplicate(self.parser), lines[index][:LONGEST_LINE_BYTES]) is not None:
                codes[index] = ALWAYS
        self._since[SILENT] = (self._since[SILENT] + len(silent)) % LISTENING
        self._overhear(codes)

    def _overhear(self, codes: bytearray) -> None:
        """Silent lines that were long away are those of a start or an end: what lies around them is read."""
        code_of_kind, seen, line = self.kinds.codes, self._seen, self._every_line
        silent = [kind for kind in set(self._kinds) if code_of_kind[kind] >= SILENT]
        away = {kind for kind in silent if line - seen.get(kind, line) > AWAY_LINES}
        if len(seen) > 2 * MOST_KINDS:
            seen.clear()
        seen.update(dict.fromkeys(silent, line + len(self._kinds)))
        if away:
            places = [place for place, kind in enumerate(self._kinds) if kind in away]
            codes[places[0]] = codes[places[-1]] = ALWAYS

    def _passage(self, code: int, first: int, last: int) -> None:
        """Heard lines `first` to `last` are of one code."""
        is_begun = code == self._before
        is_woven = False
        if not is_begun:
            is_woven = self._line + first - self._changes[0] <= WOVEN_LINES
            self._changes.append(self._line + first)
            self._before = code
        self._offset = self._trained + 1 - first
        if code == ALWAYS:
            self._trained += self._take(first)
            return
        if code == GOING_ON:
            self._trained += last - first + 1
        if is_woven:
            self._since[code] += last - first + 1
            if self._since[code] >= self._stride:
                self._since[code] = 0
                self._take(last)
            return
        if not is_begun:
            self._take(first)
            first, self._since[code] = first + 1, 0
        while first <= last:
            end = min(first + self._stride - self._since[code] - 1, last)
            self._since[code] = (self._since[code] + end - first + 1) % self._stride
            if code == BESIDE:
                self._take(end)
            else:
                self._stretch(first, end)
            first = end + 1

    def _stretch(self, first: int, last: int, is_parted: bool = False) -> None:
        """Reports that go on are read by the last of them; where they do not, either part of them is tried."""
        if first >= last:
            if first == last:
                self._take(first)
            return
        twin = duplicate(self.parser)
        sighting = self._sight(twin, self._text(last))
        if sighting is not None and self._goes_on(sighting, self._offset + last):
            self.parser = twin
            self._tell(sighting, self._offset + last)
            return
        if sighting is not None and _is_epoch_per_line(self._last.get(sighting.rank), sighting, self._offset + last):
            for at in range(first, last + 1):
                self._take(at)
            return
        places = [] if is_parted or last - first > STRIDE else self._places(first, last)
        if not places:
            middle = (first + last) // 2
            self._stretch(first, middle, is_parted)
            self._stretch(middle + 1, last, is_parted)
            return
        for place in places:
            self._stretch(first, place - 1, True)
            self._take(place)
            first = place + 1
        self._stretch(first, last, True)

    def _places(self, first: int, last: int) -> list[int]:
        """Guesses at where among these lines something happened, also between the first and the one before it."""
        before = max(first - 1, 0)
        lines = [self._text(at) for at in range(before, last + 1)]
        self.allowance.look(len(lines))
        return [before + place for place in happenings(lines)]

    def _text(self, at: int) -> bytes:
        return self._lines[self._heard[at]][:LONGEST_LINE_BYTES]

    def _take(self, at: int) -> bool:
        """Read one line, and learn what its kind is; whether it reports training."""
        sighting = self._sight(self.parser, self._text(at))
        self.kinds.note(self._kinds[self._heard[at]], code_of(sighting))
        if sighting is None:
            return False
        self._tell(sighting, self._offset + at)
        return sighting.phase == "train"

    def _sight(self, parser: Parser, line: bytes) -> Sighting | None:
        self.lines_read += 1
        self.allowance.take(len(line))
        return self.sight(parser, line)

    def _tell(self, sighting: Sighting, line: int) -> None:
        if sighting.phase == "train":
            last = self._last.get(sighting.rank)
            if last is None:
                last = self._last[sighting.rank] = _LastSighting(sighting, line)
            if sighting.rank is None:
                sighting.reports = max(1, line - last.line)
                if sighting.interval_seconds is not None:
                    sighting.interval_seconds *= sighting.reports
            last.follow(sighting, line)
        self.place(sighting)

    def _goes_on(self, sighting: Sighting, line: int) -> bool:
        """Whether nothing happened between the last report that was read and this one, but more of the same."""
        last = self._last.get(sighting.rank)
        if last is None or last.line >= line or code_of(sighting) != GOING_ON:
            return False
        return _is_same_section(last.sighting, sighting) and last.expects(sighting, line)


def _is_epoch_per_line(last: _LastSighting | None, sighting: Sighting, line: int) -> bool:
    """Whether so many epochs began in between that no line can be passed over."""
    if last is None or last.sighting.epoch is None or sighting.epoch is None:
        return False
    return 2 * (sighting.epoch - last.sighting.epoch) >= line - last.line > 0 and sighting.stamp_seconds is None


def _is_same_section(before: Sighting, after: Sighting) -> bool:
    """Whether the same was announced; and the same epoch, where its time is not that of a clock that continues."""
    if (before.section, before.attempt, before.total, before.batches, before.epochs) != (
        after.section,
        after.attempt,
        after.total,
        after.batches,
        after.epochs,
    ):
        return False
    if before.epoch == after.epoch:
        return True
    if after.stamp_seconds is None and after.elapsed_seconds is None:
        return False
    is_counted = before.batch is None and after.batch is None and before.step is not None and after.step is not None
    return is_counted or _epochs_between(before, after) is not None


def _epochs_between(before: Sighting, after: Sighting) -> float | None:
    """Steps of the epochs that began in between, where their length is known."""
    if before.epoch is None or after.epoch is None or not after.batches or after.epoch < before.epoch:
        return None
    return (after.epoch - before.epoch) * after.batches


def _moved(before: Sighting, after: Sighting) -> tuple[float | None, float | None]:
    """(steps, seconds) between two reports, in whatever the log counts."""
    steps = _first(_positions, before, after)
    if steps is not None and before.batch is not None and before.epoch != after.epoch:
        steps += _epochs_between(before, after) or 0.0
    return steps, _first(_times, before, after)


def _first(values: Callable[[Sighting], tuple[float | None, ...]], before: Sighting, after: Sighting) -> float | None:
    for earlier, later in zip(values(before), values(after), strict=True):
        if earlier is not None and later is not None:
            return later - earlier
    return None


def _positions(sighting: Sighting) -> tuple[float | None, ...]:
    return sighting.batch, sighting.step, sighting.epochs_done


def _times(sighting: Sighting) -> tuple[float | None, ...]:
    return sighting.stamp_seconds, sighting.elapsed_seconds, sighting.section_seconds


def _followed(before: float | None, value: float) -> float:
    """A mean with a memory of a few stretches, in which one with a pause counts as twice the mean at most."""
    return value if not before else before + _MEMORY * (min(value, 2 * before) - before)


def duplicate(parser: Parser) -> Parser:
    """A parser that has read the same lines, and may read on without the other one."""
    twin: Parser = object.__new__(type(parser))
    values = dict(vars(parser))
    for name, value in values.items():
        kind = type(value)
        if kind is dict:
            values[name] = dict(value)
        elif kind not in _PLAIN and _is_state(kind):
            values[name] = duplicate(value)
    vars(twin).update(values)
    return twin


_PLAIN = frozenset((float, int, bool, str, tuple, type(None)))


def _is_state(kind: type) -> bool:
    parameters = getattr(kind, "__dataclass_params__", None)
    return parameters is not None and not parameters.frozen
