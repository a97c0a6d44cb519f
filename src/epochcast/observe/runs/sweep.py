"""A folder of runs as one: a sweep of trials, some done, some running, some perhaps still to come."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from epochcast.base.record import Record
from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.observe.runs.standing import Standing


@dataclass(frozen=True, slots=True)
class Sweep(Record):
    """How far a sweep is. A running trial counts by its progress, one that has not begun counts nothing yet."""

    trials: int
    done: int
    running: int
    fraction: float
    remaining_seconds: Interval
    dollars_so_far: float | None

    json_also: ClassVar[tuple[str, ...]] = ("format",)

    @property
    def format(self) -> str:
        """In place of the format of a log."""
        return "sweep"


def sweep(runs: Sequence[Standing], trials: int | None = None) -> Sweep:
    """All runs as one. Trials to come take the mean of those seen and run as many at a time as run now.

    The sweep ends with its last trial: not before the slowest that runs now, nor before all work is done by as many.
    """
    if not runs:
        raise BadInput("a sweep needs at least one run")
    if trials is not None and trials < len(runs):
        raise BadInput(f"`trials` must be at least the {len(runs)} runs there are, got {trials}")
    count = trials or len(runs)
    running = [run for run in runs if not run.is_done]
    lasts = [run.elapsed_seconds - run.down_seconds for run in runs]
    to_come, places = count - len(runs), max(1, len(running))

    def left(end: str) -> float:
        ends: list[float] = [getattr(run.remaining_seconds, end) for run in running]
        durations: list[float] = [
            last + (0.0 if run.is_done else getattr(run.remaining_seconds, end))
            for run, last in zip(runs, lasts, strict=True)
        ]
        work = sum(ends) + to_come * sum(durations) / len(durations)
        return max(0.0, *ends, work / places)

    costs = [run.dollars_so_far for run in runs]
    return Sweep(
        trials=count,
        done=len(runs) - len(running),
        running=len(running),
        fraction=sum(1.0 if run.is_done else run.fraction for run in runs) / count,
        remaining_seconds=Interval(left("low"), left("mid"), left("high")),
        dollars_so_far=None if None in costs else sum(cost for cost in costs if cost is not None),
    )
