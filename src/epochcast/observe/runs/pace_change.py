"""Where the pace changed for good: what came before no longer predicts what is to come.

A data stall that begins, a process that takes half of the machine, a cache that has filled: the pace is another one
from there on, and a mean over both is wrong until the end. The place is where two levels fit the paces best, sought
again in what follows until no further one is found. It counts as lasting where the two levels lie far apart against the
scatter on either side, every third of what follows keeps to the new level, and hardly a span before was there already:
a pace that comes and goes (validation every epoch, shared machines by day) has no end of memory.
"""

import numpy as np

from epochcast.observe.runs.report_spans import Spans

# Ten settings were tried on the logs of `studies/track` and on `studies/trainings`. Five to twelve spans, 5 to 30 %,
# four scatters and a fifth before make next to no difference; at two scatters the worst tenth of logs gets worse.
# Spans that are needed on either side.
LEAST_SPANS = 8
# The levels differ by more than this (log), and by so many scatters of a single span.
LEAST_CHANGE, LEAST_SCATTERS = 0.1, 3.0
# Spans before that may lie nearer to the new level.
MOST_BEFORE = 0.1
# A level that has lasted for less than this share of what is left says little of it: what is short comes and goes.
LEAST_OF_LEFT = 0.02
_MAD_TO_SIGMA = 1.4826


def lasting_change(spans: Spans, left: float = 0.0) -> int:
    """How many spans lie before the latest lasting change; 0 where there is none. `left` steps are still to come."""
    paces = np.log(np.maximum(spans.seconds, 1e-9) / spans.steps)
    begin = 0
    while (place := _split(paces[begin:])) and _is_lasting(paces[begin : begin + place], paces[begin + place :]):
        if spans.steps[begin + place :].sum() < LEAST_OF_LEFT * left:
            break
        begin += place
    return begin


def _split(paces: np.ndarray) -> int:
    """Where two levels fit best (least squares on medians of five, so that single pauses do not count)."""
    count = len(paces)
    if count < 2 * LEAST_SPANS:
        return 0
    smooth = np.median(np.lib.stride_tricks.sliding_window_view(np.pad(paces, 2, mode="reflect"), 5), axis=1)
    sums = np.cumsum(smooth - smooth.mean())[LEAST_SPANS - 1 : count - LEAST_SPANS]
    before = np.arange(LEAST_SPANS, count - LEAST_SPANS + 1)
    return int(before[np.argmax(sums**2 / (before * (count - before)))])


def _is_lasting(before: np.ndarray, after: np.ndarray) -> bool:
    old, new = float(np.median(before)), float(np.median(after))
    change = abs(new - old)
    scatter = _MAD_TO_SIGMA * max(float(np.median(np.abs(side - np.median(side)))) for side in (before, after))
    if change < max(LEAST_CHANGE, LEAST_SCATTERS * scatter):
        return False
    middle = (old + new) / 2
    if np.mean((before > middle) == (new > old)) > MOST_BEFORE:
        return False
    return all((np.median(part) > middle) == (new > old) for part in np.array_split(after, 3))
