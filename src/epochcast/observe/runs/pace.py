"""The pace to expect for the rest of a run, and how well such a guess did earlier in the same run.

Pace changes: machines warm up, sequences grow, caches fill. A short memory follows that, a long one averages noise
away; which is right differs by run. So the candidates are means with different half-lives (as shares of the steps
seen), each is tried at earlier moments of the run itself ("at 45 % of what we know now, how well would it have
predicted the rest?"), and they are combined in log space by the inverse of their mean squared error.
"""

from dataclasses import dataclass
from math import exp, sqrt

import numpy as np

HALF_LIVES = (0.1, 0.25, 0.6, 2.0)
# Before anything was tried: middle memories first.
WEIGHTS = np.array([0.3, 1.0, 1.5, 1.0])
TRIED_AT = (0.3, 0.45, 0.6, 0.75)
# An error below this is luck.
LEAST_ERROR = 0.01


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds per step to expect, without pauses; `error` is the root mean square of the tries (log), None of none."""

    step_seconds: float
    error: float | None


def expected_pace(ends: np.ndarray, steps: np.ndarray, seconds: np.ndarray) -> Pace:
    """The candidates, combined by how well each did in the run so far."""
    begin, now = ends[0] - steps[0], ends[-1]
    paces = np.log([_mean(ends, steps, seconds, half * (now - begin)) for half in HALF_LIVES])
    tries = [errors for share in TRIED_AT if (errors := _tried(ends, steps, seconds, share)) is not None]
    if not tries:
        return Pace(exp(float(np.average(paces, weights=WEIGHTS))), None)
    squared = np.mean(np.square(tries), axis=0)
    weights = WEIGHTS / (squared + LEAST_ERROR**2)
    return Pace(exp(float(np.average(paces, weights=weights))), sqrt(float(np.average(squared, weights=weights))))


def _tried(ends: np.ndarray, steps: np.ndarray, seconds: np.ndarray, share: float) -> np.ndarray | None:
    """log(guess/truth) of each candidate, had it been asked when `share` of the steps were seen."""
    begin, now = ends[0] - steps[0], ends[-1]
    seen = int(np.searchsorted(ends, begin + share * (now - begin), side="right"))
    if seen < 3 or len(ends) - seen < 2:
        return None
    truth = seconds[seen:].sum() / steps[seen:].sum()
    width = ends[seen - 1] - begin
    guesses = [_mean(ends[:seen], steps[:seen], seconds[:seen], half * width) for half in HALF_LIVES]
    return np.asarray(np.log(guesses) - np.log(truth)) if truth > 0 and min(guesses) > 0 else None


def _mean(ends: np.ndarray, steps: np.ndarray, seconds: np.ndarray, half_life_steps: float) -> float:
    """Seconds over steps, older ones counting half as much every half-life."""
    weights = 0.5 ** ((ends[-1] - ends) / half_life_steps)
    return float((weights * seconds).sum() / (weights * steps).sum())
