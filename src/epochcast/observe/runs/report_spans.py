"""Spans of a run taken apart: start-up, pace, and pauses.

A span's **pace** is its seconds per step. What a span takes beyond the median pace around it is a **pause** if it is
more than half the span's own time and far outside of the scatter: a validation, a checkpoint, an epoch's end, a slow
every-Nth step, a machine that was away. The first spans count as **start-up** (compilation, caches, warm-up) while they
are slower than all that follows.
"""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

# A pause is longer than this share of its span, and than so many median deviations of the pace.
LEAST_SHARE, LEAST_DEVIATIONS = 0.5, 6.0
# Spans on either side whose median is the pace around a span.
NEIGHBOURS = 15
# The first spans are start-up where slower than the median of the rest by this factor, at most a quarter of all spans.
# 1.6 to 2.5 give the same figures on the logs of `studies/track`; 1.3 left out slow first epochs that come back.
START_FACTOR, MOST_START = 2.0, 0.25


@dataclass(frozen=True, slots=True)
class Pause:
    """Seconds lost at one place, beyond the steps that were made meanwhile; `what` is known where it was recorded."""

    at_step: float
    seconds: float
    what: str = ""


@dataclass(frozen=True, slots=True)
class Spans:
    """Where spans end (in executed steps), their steps and seconds; and pauses that were taken out of them before."""

    ends: np.ndarray
    steps: np.ndarray
    seconds: np.ndarray
    known_pauses: tuple[Pause, ...] = ()

    def __len__(self) -> int:
        return len(self.steps)

    def split(self, at: float) -> tuple["Spans", "Spans"]:
        """Those that end up to `at` executed steps, and the others; pauses known before go with the first."""
        count = int(np.searchsorted(self.ends, at, side="right"))
        first = Spans(self.ends[:count], self.steps[:count], self.seconds[:count], self.known_pauses)
        return first, Spans(self.ends[count:], self.steps[count:], self.seconds[count:])

    def first(self, count: int) -> "Spans":
        """The first `count` spans."""
        return Spans(self.ends[:count], self.steps[:count], self.seconds[:count])

    def since(self, begin: float) -> "Spans":
        """Those that begin at `begin` executed steps or later, and the pauses after it."""
        count = int(np.searchsorted(self.ends, begin, side="right"))
        pauses = tuple(pause for pause in self.known_pauses if pause.at_step > begin)
        return Spans(self.ends[count:], self.steps[count:], self.seconds[count:], pauses)

    def after(self, count: int) -> "Spans":
        """Without the first `count` spans."""
        begin = self.ends[count] - self.steps[count]
        pauses = tuple(pause for pause in self.known_pauses if pause.at_step > begin)
        return Spans(self.ends[count:], self.steps[count:], self.seconds[count:], pauses)


NOTHING = Spans(np.array([]), np.array([]), np.array([]))


@dataclass(frozen=True, slots=True)
class Pauses:
    """Pauses found in spans, and of every span the seconds of it that are pause."""

    new: tuple[Pause, ...]
    span_seconds: np.ndarray


def start_spans(spans: Spans) -> int:
    """How many of the first spans are start-up."""
    most = max(1, int(MOST_START * len(spans)))
    count = 0
    pace = spans.seconds / spans.steps
    while count < min(most, len(spans) - 2):
        if pace[count] <= START_FACTOR * weighted_median(pace[count + 1 :], spans.steps[count + 1 :]):
            break
        count += 1
    return count


def find_pauses(spans: Spans) -> Pauses:
    """What spans take beyond the pace around them, where that is a pause."""
    if len(spans) < 3:
        return Pauses((), np.zeros(len(spans)))
    pace = spans.seconds / spans.steps
    around = _around(pace, spans.steps)
    deviation = weighted_median(np.abs(pace - around), spans.steps)
    excess = spans.seconds - around * spans.steps
    is_pause = (excess > LEAST_SHARE * around * spans.steps) & (excess > LEAST_DEVIATIONS * deviation * spans.steps)
    seconds = np.where(is_pause, excess, 0.0)
    places = zip(spans.ends[is_pause].tolist(), excess[is_pause].tolist(), strict=True)
    return Pauses(tuple(Pause(at, lost) for at, lost in places), seconds)


def weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    """The value at which half of the weight lies below."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])


def _around(pace: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """The median pace around each span, weighted by steps; at the ends, of spans mirrored."""
    if len(pace) <= 2 * NEIGHBOURS + 1:
        return np.full(len(pace), weighted_median(pace, steps))
    paces, weights = (
        sliding_window_view(np.pad(values, NEIGHBOURS, mode="reflect"), 2 * NEIGHBOURS + 1) for values in (pace, steps)
    )
    order = np.argsort(paces, axis=1)
    reached = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
    middle = np.argmax(reached >= reached[:, -1:] / 2, axis=1)
    return np.take_along_axis(paces, np.take_along_axis(order, middle[:, None], axis=1), axis=1)[:, 0]
