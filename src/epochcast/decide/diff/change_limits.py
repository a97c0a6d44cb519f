"""How much a change may cost: limits, and what exceeds them.

A limit is compared with the middle of the change; `is_sure` says whether even the low end of its interval exceeds it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from epochcast.base.record import Record
from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.units import show_bytes

if TYPE_CHECKING:
    from epochcast.decide.diff.diff_answer import Diff


@dataclass(frozen=True, slots=True)
class ChangeLimits:
    """Increases are fractions: 0.05 is 5 % more than the base. `most_memory_bytes` is of the head alone."""

    time_increase: float | None = None
    cost_increase: float | None = None
    memory_increase: float | None = None
    most_memory_bytes: int | None = None

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if value is not None and not value >= 0:
                raise BadInput(f"{item.name} must be at least 0, got {value}")

    def __bool__(self) -> bool:
        return any(getattr(self, item.name) is not None for item in fields(self))


@dataclass(frozen=True, slots=True)
class Exceeded(Record):
    """One limit that a change does not keep."""

    what: str
    limit: float
    value: float
    is_sure: bool
    sentence: str


def exceeded(diff: "Diff", allowed: ChangeLimits) -> tuple[Exceeded, ...]:
    """Every limit that is exceeded. One that asks for what is unknown is refused: unknown is not within it."""
    beyond = []
    for name, (quantity, change_of) in _INCREASES.items():
        most = getattr(allowed, name)
        if most is None:
            continue
        change = change_of(diff)
        if change is None:
            raise BadInput(
                f"{diff.head.name}: its {quantity} is unknown, so its increase cannot be limited: {_NEEDS[name]}"
            )
        if change.mid - 1 > most * (1 + 1e-12):
            is_sure = change.low - 1 > most
            sentence = f"{quantity} {signed(change.mid - 1)}, more than the {percent(most)} that are allowed"
            beyond.append(Exceeded(name, most, change.mid - 1, is_sure, sentence + ("" if is_sure else " (not sure)")))
    return (*beyond, *_over_memory(diff, allowed))


def _over_memory(diff: "Diff", allowed: ChangeLimits) -> tuple[Exceeded, ...]:
    peak, most = diff.head.forecast.peak_bytes, allowed.most_memory_bytes
    if most is None or peak is None or peak.mid <= most:
        return ()
    sentence = f"memory {show_bytes(peak.mid)}, more than the {show_bytes(most)} that are allowed"
    is_sure = peak.low > most
    return (Exceeded("most_memory_bytes", most, peak.mid, is_sure, sentence + ("" if is_sure else " (not sure)")),)


def _seconds_change(diff: "Diff") -> Interval:
    """Of the job where its length is known, else of a sample."""
    return diff.total_seconds or diff.sample_seconds


_INCREASES: Mapping[str, tuple[str, Callable[["Diff"], Interval | None]]] = {
    "time_increase": ("time", _seconds_change),
    "cost_increase": ("cost", lambda diff: diff.dollars),
    "memory_increase": ("memory", lambda diff: diff.peak_bytes),
}

_NEEDS: Mapping[str, str] = {
    "cost_increase": "give a dataset or samples, and a device with a price, or its price",
    "memory_increase": "its memory was not forecast",
}


def percent(fraction: float) -> str:
    """5 %, 0.5 %, 12 %"""
    value = 100 * fraction
    digits = 0 if abs(value) >= 9.95 or value == round(value) else 1
    return f"{value:.{digits}f} %"


def signed(fraction: float) -> str:
    """+7.1 %, -3 %, or ±0 %."""
    text = percent(abs(fraction))
    if float(text.split()[0]) == 0:
        return "±0 %"
    return f"{'+' if fraction > 0 else '-'}{text}"
