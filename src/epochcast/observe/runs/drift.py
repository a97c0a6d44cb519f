"""Change of pace: an alarm during the run, change points after the fact, and how steady steps are.

Live: a two-sided CUSUM (Page 1954) over the log of the pace. The first spans after start-up set the level and its
scatter; from then on, deviations beyond one scatter add up, each cut at three so that a pause alone raises nothing.
An alarm says since when and by how much, if the change is over 2 %; smaller ones cost less than they alarm. The
new level is then the one to watch.

After the fact: PELT (Killick et al. 2012) from `ruptures` on the same series. The coefficient of variation and the
augmented Dickey–Fuller test are reported as in AI Gauge; they decide nothing: half of all runs that vary by
0.2 % fail the test.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from math import exp, log
from statistics import median
from typing import Any
from warnings import catch_warnings, simplefilter

from epochcast.base.record import Record
from epochcast.errors import MissingExtra

# Spans that set the level, after those of the start.
SETTLING, LEVEL = 3, 20
# The CUSUM's slack and limit, and where one deviation is cut, in scatters. Chosen among six pairs on the logs of
# `studies/track`: a sixth of the false alarms of 0.5 and 10 in shuffled spans, two spans later.
SLACK, LIMIT, CUT = 1.0, 20.0, 3.0
# A smaller change is no alarm, and a scatter is never taken for less than half of it (log).
LEAST_CHANGE = 0.02
# A whole-second clock says little of shorter spans.
LEAST_TICKS_SECONDS = 10.0
MOST_RANKS = 1024
# Spans in a block whose means show whether neighbours are alike, and the blocks that this needs.
BLOCKS, LEAST_BLOCKS = (1, 4, 16), 8
_MAD_TO_SIGMA = 1.4826


@dataclass(frozen=True, slots=True)
class Drift(Record):
    """The pace changed: since which step and time of the log, and by which factor."""

    since_step: float
    since_seconds: float
    ratio: float
    step_seconds_before: float
    step_seconds_after: float


@dataclass(frozen=True, slots=True)
class RankDrift(Drift):
    """The pace of one rank changed."""

    rank: int


@dataclass(slots=True)
class DriftWatch:
    """The live CUSUM; `add` takes a span and gives an alarm, or None. Memory is a few dozen numbers."""

    level: float | None = None
    scatter: float = LEAST_CHANGE / 2
    latest: Drift | None = None
    _spans: int = 0
    _settling: list[float] = field(default_factory=list)
    _up: float = 0.0
    _down: float = 0.0
    _since: list[tuple[float, float]] = field(default_factory=lambda: [(0.0, 0.0), (0.0, 0.0)])
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=2 * LEVEL))
    _steps: float = 0.0
    _seconds: float = 0.0

    def add(self, at_step: float, at_seconds: float, steps: float, seconds: float) -> Drift | None:
        """One span that ended at a step and a time."""
        self._steps += steps
        self._seconds += seconds
        is_whole = self._seconds == int(self._seconds)
        if self._seconds <= 0 or (is_whole and self._seconds < LEAST_TICKS_SECONDS):
            return None
        step_seconds = self._seconds / self._steps
        if step_seconds <= 0:  # less than a number can say
            return None
        pace = log(step_seconds)
        self._steps = self._seconds = 0.0
        self._spans += 1
        if self._spans <= SETTLING:
            return None
        if self.level is None:
            self._settling.append(pace)
            if len(self._settling) == LEVEL:
                self._settle(self._settling)
            return None
        return self._watch(pace, at_step, at_seconds)

    def _settle(self, paces: Sequence[float]) -> None:
        self.level = median(paces)
        deviation = _MAD_TO_SIGMA * median(abs(pace - self.level) for pace in paces)
        self.scatter = max(deviation, LEAST_CHANGE / 2)
        self._up = self._down = 0.0
        self._settling = []
        self._recent.clear()

    def _watch(self, pace: float, at_step: float, at_seconds: float) -> Drift | None:
        assert self.level is not None
        score = max(-CUT, min(CUT, (pace - self.level) / self.scatter))
        self._recent.append(pace)
        sums = []
        for side, (total, sign) in enumerate(((self._up, 1), (self._down, -1))):
            total = max(0.0, total + sign * score - SLACK)
            if total == 0.0:
                self._since[side] = (at_step, at_seconds)
            sums.append(total)
        self._up, self._down = sums
        if max(sums) < LIMIT:
            return None
        return self._alarm(self._since[0 if self._up >= self._down else 1])

    def _alarm(self, since: tuple[float, float]) -> Drift | None:
        """The change, if it is large enough; either way what is usual now is the new level."""
        assert self.level is not None
        before, paces = self.level, list(self._recent)[-LEVEL // 2 :]
        after = median(paces)
        scatter = self.scatter
        self._settle(paces)
        self.scatter = max(self.scatter, scatter)
        if abs(after - before) < max(LEAST_CHANGE, scatter):
            return None
        self.latest = Drift(*since, exp(after - before), exp(before), exp(after))
        return self.latest


@dataclass(slots=True)
class RankWatch:
    """A watch for every rank that says what its own steps take; ranks beyond the first thousand are left out."""

    watches: dict[int, DriftWatch] = field(default_factory=dict)

    def add(self, rank: int, at_step: float, at_seconds: float, step_seconds: float) -> None:
        """What one rank reported."""
        if rank not in self.watches and len(self.watches) >= MOST_RANKS:
            return
        self.watches.setdefault(rank, DriftWatch()).add(at_step, at_seconds, 1.0, step_seconds)

    def latest(self) -> tuple[RankDrift, ...]:
        """The latest alarm of each rank that had one."""
        alarms = ((rank, watch.latest) for rank, watch in sorted(self.watches.items()))
        return tuple(RankDrift(**asdict(drift), rank=rank) for rank, drift in alarms if drift is not None)


@dataclass(frozen=True, slots=True)
class Steadiness(Record):
    """How steady steps are: coefficient of variation, p of the Dickey–Fuller test (small: stationary), changes."""

    variation: float
    dickey_fuller_p: float | None
    changes: tuple[Drift, ...]


def steadiness(at_steps: Sequence[float], at_seconds: Sequence[float], paces: Sequence[float]) -> Steadiness:
    """Of a run after the fact: paces (seconds per step, pauses left out) and where their spans end."""
    import numpy as np

    values = np.asarray(paces, dtype=float)
    variation = float(values.std() / values.mean()) if len(values) else 0.0
    return Steadiness(variation, _dickey_fuller(values), _changes(at_steps, at_seconds, values))


def _dickey_fuller(values: Any) -> float | None:
    """None where the test says nothing: too few values, or all alike."""
    try:
        from statsmodels.tsa.stattools import adfuller
    except ImportError:
        raise MissingExtra("track", "statsmodels") from None
    if len(values) < LEVEL or values.max() == values.min():
        return None
    # Lags as AI Gauge leaves them to the library; long series are cut so that the answer comes at once.
    with catch_warnings():
        simplefilter("ignore", FutureWarning)  # of a result type to come; the second item is p in both
        return float(adfuller(values[-2000:], autolag="AIC", maxlag=min(20, len(values) // 4))[1])


def _sigma(logs: Any, size: int) -> float:
    """Scatter of a value from differences of neighbouring means of `size`: larger than that of single ones (size 1)
    where neighbours are alike, as they are where a shared machine is slow for minutes."""
    import numpy as np

    means = logs[: len(logs) // size * size].reshape(-1, size).mean(axis=1)
    return float(_MAD_TO_SIGMA * np.median(np.abs(np.diff(means))) * (size / 2) ** 0.5)


def _changes(at_steps: Sequence[float], at_seconds: Sequence[float], values: Any) -> tuple[Drift, ...]:
    """PELT with a least-squares cost on log pace; the penalty is 3·σ²·ln n, σ² the long-run variance (`_sigma`)."""
    import numpy as np

    try:
        import ruptures
    except ImportError:
        raise MissingExtra("track", "ruptures") from None
    if len(values) < LEVEL:
        return ()
    logs = np.log(values)
    sigma = max(LEAST_CHANGE / 2, *(_sigma(logs, size) for size in BLOCKS if len(logs) >= LEAST_BLOCKS * size))
    cut = np.clip(logs, np.median(logs) - 50 * sigma, np.median(logs) + 50 * sigma)
    # A linear kernel is the least-squares cost; this form of PELT is written in C.
    segmentation = ruptures.KernelCPD(kernel="linear", min_size=5).fit(cut[:, None])
    ends = segmentation.predict(pen=3 * sigma**2 * log(len(values)))
    levels = [float(np.median(logs[a:b])) for a, b in pairwise([0, *ends])]
    return tuple(
        Drift(at_steps[place - 1], at_seconds[place - 1], exp(after - before), exp(before), exp(after))
        for place, (before, after) in zip(ends, pairwise(levels), strict=False)
        if abs(after - before) >= LEAST_CHANGE
    )
