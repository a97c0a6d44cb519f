"""Where something happened among lines of one kind: a guess from their bare numbers, without a parser.

A counter that falls back is an epoch or an attempt that began; a clock that jumps is a pause.

>>> happenings([b"epoch 1 step 8 loss 3", b"epoch 1 step 9 loss 2", b"epoch 2 step 1 loss 4", b"epoch 2 step 2 loss 3"])
[2]
>>> happenings([b"08:00:01 step 1", b"08:00:02 step 2", b"08:09:02 step 3", b"08:09:03 step 4"])
[2]
"""

import re
from itertools import pairwise
from operator import lt, sub

_CLOCK = re.compile(rb"(\d\d):(\d\d):(\d\d)")
_NUMBERS = re.compile(rb"(?<![\d.:])\d+(?:\.\d+)?(?![\d.:])")

# Numbers of a line that are looked at; counters and clocks stand in front.
MOST_NUMBERS, MOST_BYTES = 6, 160

# A counter falls in fewer lines than this share; other numbers waver. One that seldom rises (epochs) falls hardly ever.
MOST_FALLS, LEAST_RISES, FEW_FALLS = 0.4, 0.5, 0.1

# A pause is so many times as long as the usual time between two lines.
LEAST_JUMP = 2.0


def happenings(lines: list[bytes]) -> list[int]:
    """Where a counter falls, or else where a clock jumps."""
    rows = [tuple(map(float, _NUMBERS.findall(line, 0, MOST_BYTES)[:MOST_NUMBERS])) for line in lines]
    return _falls(rows) or _jump(lines, rows)


def _falls(rows: list[tuple[float, ...]]) -> list[int]:
    """Places at which the number that mostly rises falls."""
    most, places = 0, list[int]()
    for column in _columns(rows):
        fallen = [place for place, (before, after) in enumerate(pairwise(column), 1) if after < before]
        if not fallen or len(fallen) > MOST_FALLS * len(rows):
            continue
        risen = sum(map(lt, column, column[1:]))
        is_counter = risen > LEAST_RISES * len(rows) or len(fallen) <= FEW_FALLS * len(rows)
        if is_counter and risen > most:
            most, places = risen, fallen
    return places


def _jump(lines: list[bytes], rows: list[tuple[float, ...]]) -> list[int]:
    """The place at which a clock jumps furthest, if far: the time of day, or else any number that never falls."""
    clocks = [_CLOCK.search(line, 0, MOST_BYTES) for line in lines[:1]]
    if None not in clocks:
        clocks = [_CLOCK.search(line, 0, MOST_BYTES) for line in lines]
        rows = [(3600.0 * int(c[1]) + 60 * int(c[2]) + int(c[3]),) for c in clocks if c]
    for column in _columns(rows):
        steps = list(map(sub, column[1:], column))
        furthest = max(steps)
        if min(steps) >= 0 and furthest > LEAST_JUMP * sorted(steps)[len(steps) // 2]:
            return [steps.index(furthest) + 1]
    return []


def _columns(rows: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """The numbers of the lines one below the other, as far as all lines have as many."""
    return list(zip(*rows, strict=False)) if len(rows) > 1 else []
