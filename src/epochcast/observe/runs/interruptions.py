"""Interruptions still to come, from those that were seen: time that nothing runs, and steps that are made again.

A run that broke off k times in n steps breaks off again as a Poisson process whose rate is not known better than that:
the number in the next m steps is negative binomial,

    P(j) = C(j + k − 1, j) · (n / (n + m))^k · (m / (n + m))^j,

so that one interruption in the first half makes another one in the second as likely as none. None seen, none expected:
nobody can foresee the first. A run that had ended before the next began in the same file was not interrupted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, log, sqrt
from statistics import median

# What two attempts of a run usually differ by (log), until those seen tell it better. An assumption.
ATTEMPTS_APART = 0.1


@dataclass(frozen=True, slots=True)
class Interruption:
    """One that was seen: until the next report of training, and the steps between that and the last one before."""

    down_seconds: float
    replayed_steps: float


@dataclass(frozen=True, slots=True)
class ToCome:
    """What interruptions still take: in the middle, and what they do not exceed in 19 of 20 cases."""

    down_seconds: float = 0.0
    seconds: float = 0.0
    high_seconds: float = 0.0


def interruptions_to_come(seen: Sequence[Interruption], watched: float, left: float, step_seconds: float) -> ToCome:
    """For `left` steps after `watched` ones, each interruption as long as the median of those seen."""
    if not seen or watched <= 0 or left <= 0:
        return ToCome()
    down = median(interruption.down_seconds for interruption in seen)
    each = down + step_seconds * median(interruption.replayed_steps for interruption in seen)
    middle, most = (count_at(quantile, len(seen), left / (watched + left)) for quantile in (0.5, 0.95))
    return ToCome(middle * down, middle * each, most * each)


def attempt_error(paces: Sequence[float]) -> float:
    """What attempts differ by (log): the next may run elsewhere, or on another share of the data. 0 of one attempt."""
    logs = [log(pace) for pace in paces if pace > 0]
    if len(logs) < 2:
        return 0.0
    middle = fsum(logs) / len(logs)
    return sqrt((fsum((value - middle) ** 2 for value in logs) + ATTEMPTS_APART**2) / len(logs))


def count_at(quantile: float, shape: int, chance: float) -> int:
    """The smallest j with P(count ≤ j) ≥ quantile."""
    term = (1 - chance) ** shape
    reached, count = term, 0
    # A chance near one has a long tail; what lies beyond so many is as good as never.
    while reached < quantile and count < 1000 * shape:
        count += 1
        term *= chance * (count + shape - 1) / count
        reached += term
    return count
