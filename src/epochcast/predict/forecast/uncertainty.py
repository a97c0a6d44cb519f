"""What makes the interval of a step as wide as it is, and what would narrow it.

The same is said of the interval of peak memory, whose parts are those of `predict.memory.memory_spreads`; what was
assumed of the job is one of them.

Parts of a step err independently, so their variances add; a part's share is that of its variance. A note about a step
of which one part is most of the doubt can then say which single option helps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, hypot, log, sqrt

from epochcast.base.record import Record
from epochcast.predict.forecast.measured_step import AFTER_HIGH, AFTER_LOW, HOST_HIGH, HOST_LOW
from epochcast.predict.forecast.step import COMMUNICATION, FRAMEWORK, GPU, HOST, INPUT, NETWORK, SETUP
from epochcast.predict.memory.memory_spreads import ASSUMED, QUANTISED

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
MEMORY_PARTS = {
    "activations": "",
    "recomputation": "",
    QUANTISED: "",
    "fragmentation": "",
    "context": "",
    "communication": "",
    "sharding": "",
    SETUP: "",
    ASSUMED: "",
}
"""Parts of the interval of peak memory; what narrows `assumed` are the options that were."""
_SAID_BY = {"lengths": "--lengths", "lora": "--lora", "precision": "--precision"}
# Parts with a smaller share change nothing that anyone decides by.
LEAST_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class UncertainPart(Record):
    """A part of a step, its share of the uncertainty, and the option or command that narrows it."""

    part: str
    share: float
    narrow_by: str


def narrowed_width(width: float, parts: tuple[UncertainPart, ...], *, is_launch_bound: bool = False) -> float:
    """high ÷ low of a step after one of its steps was measured: what that leaves uncertain, and the parts it does not
    narrow. What was measured are kernels, or launches where the step waits for them; it has waited for its data, too.
    """
    low, high = (HOST_LOW, HOST_HIGH) if is_launch_bound else (AFTER_LOW, AFTER_HIGH)
    narrowed = (HOST, INPUT) if is_launch_bound else (GPU, FRAMEWORK, NETWORK, SETUP, INPUT)
    others = sum(part.share for part in parts if part.part not in narrowed)
    return exp(2 * hypot(log(width) / 2 * sqrt(others), log(high / low) / 2))


def uncertain_memory(variances: Mapping[str, float], assumed: Sequence[str]) -> tuple[UncertainPart, ...]:
    """Of the peak of memory, by MEMORY_PARTS, whose variants (a group's own set-up) are one part."""
    by_part: dict[str, float] = {}
    for part, variance in variances.items():
        name = part.partition(",")[0]
        by_part[name] = by_part.get(name, 0.0) + variance
    said_by = " ".join(_SAID_BY[name] for name in assumed if name in _SAID_BY)
    return _shares(by_part, {**MEMORY_PARTS, ASSUMED: said_by})


def uncertain_parts(variances: Mapping[str, float], *, is_host_measured: bool = False) -> tuple[UncertainPart, ...]:
    """Of a step, the largest first; shares sum to one. Nothing narrows a host that was measured with this job."""
    return _shares(variances, {**_NARROWED_BY, HOST: ""} if is_host_measured else _NARROWED_BY)


def _shares(variances: Mapping[str, float], narrowed_by: Mapping[str, str]) -> tuple[UncertainPart, ...]:
    total = sum(variances.values())
    shares = {part: variance / total for part, variance in variances.items()} if total > 0 else {}
    kept = {part: share for part, share in shares.items() if share >= LEAST_SHARE}
    whole = sum(kept.values())
    return tuple(
        UncertainPart(part, share / whole, narrowed_by[part])
        for part, share in sorted(kept.items(), key=lambda item: -item[1])
    )
