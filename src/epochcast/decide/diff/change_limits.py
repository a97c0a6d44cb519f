"""How much a change may cost: limits, and what exceeds them.

A limit is compared with the middle of the change; `is_sure` says whether even the low end of its interval exceeds it.
A limit on change counts in both directions: a training that is suddenly twice as fast is often a mistake, too.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from epochcast.base.record import Record
from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.units import show_bytes, show_dollars

if TYPE_CHECKING:
    from epochcast.decide.diff.diff_answer import Diff


@dataclass(frozen=True, slots=True)
class ChangeLimits:
    """Increases and changes are fractions: 0.05 is 5 % more than the base, or 5 % more or less. `dollar_increase` is in
    dollars of the job, `most_memory_bytes` of the head alone. `quiet_below` is no limit: smaller changes are not worth
    a comment.
    """

    time_increase: float | None = None
    cost_increase: float | None = None
    memory_increase: float | None = None
    most_memory_bytes: int | None = None
    time_change: float | None = None
    cost_change: float | None = None
    dollar_increase: float | None = None
    quiet_below: float | None = None

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if value is not None and not value >= 0:
                raise BadInput(f"{item.name} must be at least 0, got {value}")

    def __bool__(self) -> bool:
        return any(getattr(self, item.name) is not None for item in fields(self) if item.name != "quiet_below")


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
            sentence = f"{quantity} {signed(change.mid - 1)}, more than the allowed {percent(most)}"
            beyond.append(Exceeded(name, most, change.mid - 1, is_sure, sentence + ("" if is_sure else " (not sure)")))
    return (*beyond, *_changed(diff, allowed), *_over_dollars(diff, allowed), *_over_memory(diff, allowed))


def is_quiet(diff: "Diff", allowed: ChangeLimits) -> bool:
    """Whether time, cost and memory all change by less than `quiet_below`, in both directions."""
    if allowed.quiet_below is None or not diff.is_comparable or diff.exceeded:
        return False
    changes = (_seconds_change(diff), diff.dollars, diff.peak_bytes)
    return all(abs(change.mid - 1) < allowed.quiet_below for change in changes if change is not None)


def _changed(diff: "Diff", allowed: ChangeLimits) -> Iterator[Exceeded]:
    """Limits in both directions."""
    for name, of in (("time_change", "time_increase"), ("cost_change", "cost_increase")):
        most = getattr(allowed, name)
        if most is None:
            continue
        quantity, change_of = _INCREASES[of]
        change = change_of(diff)
        if change is None:
            raise BadInput(
                f"{diff.head.name}: its {quantity} is unknown, so its change cannot be limited: {_NEEDS[of]}"
            )
        if abs(change.mid - 1) > most * (1 + 1e-12):
            is_sure = change.low - 1 > most or 1 - change.high > most
            sentence = f"{quantity} {signed(change.mid - 1)}, a change of more than the allowed {percent(most)}"
            yield Exceeded(name, most, change.mid - 1, is_sure, sentence + ("" if is_sure else " (not sure)"))


def _over_dollars(diff: "Diff", allowed: ChangeLimits) -> Iterator[Exceeded]:
    """The increase of the job's cost in dollars."""
    most, base, change = allowed.dollar_increase, diff.base.forecast.dollars, diff.dollars
    if most is None:
        return
    if base is None or change is None:
        raise BadInput(
            f"{diff.head.name}: its cost is unknown, so its increase cannot be limited: {_NEEDS['cost_increase']}"
        )
    increase = base.mid * (change.mid - 1)
    if increase > most * (1 + 1e-12):
        is_sure = base.mid * (change.low - 1) > most
        sentence = f"cost +{show_dollars(increase)}, more than the allowed {show_dollars(most)}"
        yield Exceeded("dollar_increase", most, increase, is_sure, sentence + ("" if is_sure else " (not sure)"))


def _over_memory(diff: "Diff", allowed: ChangeLimits) -> tuple[Exceeded, ...]:
    peak, most = diff.head.forecast.peak_bytes, allowed.most_memory_bytes
    if most is None or peak is None or peak.mid <= most:
        return ()
    sentence = f"memory {show_bytes(peak.mid)}, more than the allowed {show_bytes(most)}"
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
