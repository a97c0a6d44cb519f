"""Where the time of a step goes: by layer, and by class of op."""

from dataclasses import dataclass

from epochcast.base.record import Record
from epochcast.describe.graph.trace import CLASSES
from epochcast.predict.forecast.forecast import Forecast


@dataclass(frozen=True, slots=True)
class Share(Record):
    """Seconds of one layer or class, and its fraction of all kernel seconds."""

    name: str
    seconds: float
    fraction: float
    flops: float
    bytes: float


@dataclass(frozen=True, slots=True)
class StepShares(Record):
    """Where the time of a step goes, the largest shares first."""

    by_class: tuple[Share, ...]
    by_layer: tuple[Share, ...]


def by_class(answer: Forecast) -> tuple[Share, ...]:
    """The largest first."""
    return _shares(answer, [CLASSES[i].value for i in answer.details.trace.columns.op_class])


def by_layer(answer: Forecast) -> tuple[Share, ...]:
    """The largest first; forward, backward and what follows of a layer together."""
    return _shares(answer, list(answer.details.trace.layers))


def _shares(answer: Forecast, names: list[str]) -> tuple[Share, ...]:
    details = answer.details
    columns, seconds = details.trace.columns, details.step.costs.mid
    totals: dict[str, list[float]] = {}
    for place, name in enumerate(names):
        total = totals.setdefault(name, [0.0, 0.0, 0.0])
        total[0] += float(seconds[place])
        total[1] += float(columns.flops[place])
        total[2] += float(columns.bytes[place])
    whole = float(seconds.sum()) or 1.0
    shares = [Share(name, s, s / whole, f, b) for name, (s, f, b) in totals.items()]
    return tuple(sorted(shares, key=lambda share: -share.seconds))


def explain_step(answer: Forecast, layers: int = 20) -> StepShares:
    """Every class and the heaviest layers."""
    return StepShares(by_class(answer), by_layer(answer)[:layers])
