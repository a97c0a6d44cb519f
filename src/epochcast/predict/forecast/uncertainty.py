"""What makes the interval of a step as wide as it is, and what would narrow it.

Parts of a step err independently, so their variances add; a part's share is that of its variance. A note about a step
of which one part is most of the doubt can then say which single option helps.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, hypot, log, sqrt

from epochcast.base.record import Record
from epochcast.predict.forecast.measured_step import AFTER_HIGH, AFTER_LOW
from epochcast.predict.forecast.step import COMMUNICATION, FRAMEWORK, GPU, HOST, INPUT, NETWORK, SETUP

MEASURE = "--step-seconds"
"""One measured step replaces what was estimated of kernels."""

_NARROWED_BY = {
    GPU: MEASURE,
    FRAMEWORK: MEASURE,
    NETWORK: MEASURE,
    SETUP: MEASURE,
    HOST: "--host-class",
    COMMUNICATION: "--link",
    INPUT: "epochcast bench loader",
}
# Parts with a smaller share change nothing that anyone decides by.
LEAST_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class UncertainPart(Record):
    """A part of a step, its share of the uncertainty, and the option or command that narrows it."""

    part: str
    share: float
    narrow_by: str


def narrowed_width(width: float, parts: tuple[UncertainPart, ...]) -> float:
    """high ÷ low of a step after one of its steps was measured: what that leaves uncertain, and the parts it does not
    narrow.
    """
    others = sum(part.share for part in parts if part.narrow_by != MEASURE)
    after = log(AFTER_HIGH / AFTER_LOW) / 2
    return exp(2 * hypot(log(width) / 2 * sqrt(others), after))


def uncertain_parts(variances: Mapping[str, float]) -> tuple[UncertainPart, ...]:
    """Of a step, the largest first; shares sum to one."""
    total = sum(variances.values())
    shares = {part: variance / total for part, variance in variances.items()} if total > 0 else {}
    kept = {part: share for part, share in shares.items() if share >= LEAST_SHARE}
    whole = sum(kept.values())
    return tuple(
        UncertainPart(part, share / whole, _NARROWED_BY[part])
        for part, share in sorted(kept.items(), key=lambda item: -item[1])
    )
