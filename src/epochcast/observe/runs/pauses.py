"""Pauses still to come, from those that were seen.

Pauses of like length belong together: validations, checkpoints and slow steps have their own. A kind that came at even
distances is expected to go on so, until the last step; one that came unevenly, as often per step as so far. A kind seen
once may come back: as often as so far while it is recent, seldom once it has stayed away for longer than it took to
come. Two or three that came late and close together are a coincidence, not a habit. One pause that is far longer than
all others (a machine was away) hardly ever comes back. The length to expect is the median with a short memory: lengths
change (a translation model that learns to stop validates faster and faster), and one that took twice as long says
little of the next.
Pauses whose name and length were recorded (`ec.track`, callbacks) are of one kind by their name, whatever their length.
"""

from collections.abc import Sequence

import numpy as np

from epochcast.observe.runs.report_spans import Pause, weighted_median

# Neighbours in length whose ratio is below this are of one kind.
KIND_RATIO = 2.0
# Distances are even where their median deviation is below this share of their median.
EVEN = 0.1
# Of steps seen: after this the length of a pause counts half.
HALF_LIFE = 0.25
# How often a kind seen once comes back, against once in the steps seen: recent, and stayed away.
STAYED_AWAY = 0.25
# Fewer than this at even distances are chance where the first came after so many of them, or more.
ENOUGH, LATE = 4, 1.5
# One that is longer than all others by this factor, and its weight.
ODD_FACTOR, ODD = 8.0, 0.1


def seconds_to_come(pauses: Sequence[Pause], begin: float, now: float, left: float) -> float:
    """Seconds of pauses in the `left` steps after `now`, where steps were watched since `begin`."""
    kinds = _kinds([pause for pause in pauses if not pause.what])
    named = [[pause for pause in pauses if pause.what == name] for name in sorted({p.what for p in pauses} - {""})]
    total = sum(_count(kind, begin, now, left) * _length(kind, begin, now) for kind in named)
    for place, kind in enumerate(kinds):
        count = _count(kind, begin, now, left)
        if len(kind) == 1 and place and kind[0].seconds > ODD_FACTOR * max(p.seconds for p in kinds[place - 1]):
            count *= ODD
        total += count * _length(kind, begin, now)
    return total


def _kinds(pauses: Sequence[Pause]) -> list[list[Pause]]:
    """By length, shortest first; inside in the order they came."""
    kinds: list[list[Pause]] = []
    for pause in sorted(pauses, key=lambda pause: pause.seconds):
        if kinds and pause.seconds <= KIND_RATIO * kinds[-1][-1].seconds:
            kinds[-1].append(pause)
        else:
            kinds.append([pause])
    return [sorted(kind, key=lambda pause: pause.at_step) for kind in kinds]


def _count(kind: list[Pause], begin: float, now: float, left: float) -> float:
    """How many of a kind are still to come."""
    watched = now - begin
    rate = len(kind) / watched
    last, is_named = kind[-1].at_step, bool(kind[0].what)
    if len(kind) == 1:
        if now - last >= 1.1 * (last - begin):
            return rate * left * STAYED_AWAY
        return float(np.floor((now + left - last) / last * (1 + 1e-9))) if is_named else rate * left
    gaps = np.diff([pause.at_step for pause in kind])
    gap = float(np.median(gaps))
    if gap <= 0 or (not is_named and _began_late(kind, begin, gap)):
        return rate * left
    if np.median(np.abs(gaps - gap)) >= EVEN * gap or now - last >= 1.5 * gap:
        return rate * left * (1.0 if now - last < 3 * gap else 0.5)
    # A pause at the very end of the run comes after the last report of a log, but is recorded where pauses are.
    count = float(np.floor((now + left - last) / gap * (1 + (1e-9 if is_named else -1e-9))))
    missed = len(kind) / max(1, round((last - kind[0].at_step) / gap) + 1) if len(kind) > 3 else 1.0
    return count * min(1.0, missed)


def _began_late(kind: list[Pause], begin: float, gap: float) -> bool:
    """Few at even distances are a habit only where the first came after such a distance, too."""
    return len(kind) < ENOUGH and kind[0].at_step - begin > LATE * gap


def _length(kind: list[Pause], begin: float, now: float) -> float:
    ages = np.array([now - pause.at_step for pause in kind])
    weights = 0.5 ** (ages / (HALF_LIFE * (now - begin)))
    return weighted_median(np.array([pause.seconds for pause in kind]), weights)
