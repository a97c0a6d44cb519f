"""What each constant of the answer does: halved and doubled one by one, on the same logs it was chosen on.

A constant that moves nothing when it is halved or doubled was not fitted to these logs, whoever chose it.
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from epochcast.errors import EpochcastError
from epochcast.observe.runs import pace, pauses
from epochcast.observe.runs import pace_change as change
from epochcast.observe.runs import remaining_time as remaining
from epochcast.observe.runs import remaining_time as unseen
from epochcast.observe.runs import report_spans as spans
from epochcast.observe.runs.run_history import History
from studies.track.replay import Log

CONSTANTS: tuple[tuple[ModuleType, str], ...] = (
    (unseen, "BEFORE_AN_EPOCH_ENDED"),
    (unseen, "BEFORE_A_PAUSE"),
    (remaining, "OWN_SPANS"),
    (change, "LEAST_SPANS"),
    (change, "LEAST_CHANGE"),
    (change, "LEAST_SCATTERS"),
    (change, "MOST_BEFORE"),
    (change, "LEAST_OF_LEFT"),
    (spans, "LEAST_SHARE"),
    (spans, "LEAST_DEVIATIONS"),
    (spans, "NEIGHBOURS"),
    (spans, "START_FACTOR"),
    (spans, "MOST_START"),
    (pace, "LEAST_ERROR"),
    (pauses, "KIND_RATIO"),
    (pauses, "EVEN"),
    (pauses, "HALF_LIFE"),
    (pauses, "STAYED_AWAY"),
    (pauses, "LATE"),
    (pauses, "ODD_FACTOR"),
    (pauses, "ODD"),
)
AT = (10, 50)


@dataclass(frozen=True)
class Snapshot:
    """A run without restarts at a cut."""

    percent: int
    history: History
    total_steps: float
    passed_seconds: float
    true_seconds: float

    def error(self) -> float | None:
        try:
            left = remaining.remaining(self.history, self.total_steps).remaining_seconds.mid
        except EpochcastError:
            return None
        return abs((self.passed_seconds + left) / self.true_seconds - 1)


def snapshots(log: Log) -> Iterator[Snapshot]:
    """The history at those cuts that are looked at."""
    training = [one for one in log.seen if one.phase == "train"]
    if int(log.row["restarts"]) or not training:
        return
    total_steps = max(one.step for one in training if one.attempt == training[-1].attempt)
    for percent in AT:
        history = History()
        for one in log.seen[: log.known.get(percent, 0)]:
            history.add(one)
        if history.reports:
            passed, true = float(log.row[f"t_at_{percent}"]), float(log.row["true_total_seconds"])
            yield Snapshot(percent, deepcopy(history), total_steps, passed, true)


def as_text(kept: Sequence[Snapshot]) -> str:
    """A row for each constant: median and 90th percentile with half of it and with twice."""
    lines = [
        "| constant | value | halved: 10 % | 50 % | doubled: 10 % | 50 % |",
        "|---|---|---|---|---|---|",
        f"| none | | {_cells(kept)} | {_cells(kept)} |",
    ]
    for module, name in CONSTANTS:
        value = getattr(module, name)
        cells = []
        for factor in (0.5, 2.0):
            setattr(
                module, name, type(value)(max(1, round(value * factor)) if isinstance(value, int) else value * factor)
            )
            cells.append(_cells(kept))
        setattr(module, name, value)
        lines.append(f"| {module.__name__.rpartition('.')[2]}.{name} | {value:g} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cells(kept: Sequence[Snapshot]) -> str:
    cells = []
    for percent in AT:
        errors = [error for one in kept if one.percent == percent and (error := one.error()) is not None]
        cells.append(f"{100 * np.median(errors):.2f} / {100 * np.percentile(errors, 90):.1f}")
    return " | ".join(cells)
