"""The verbs of a queue: a file, or a queue that is being run, as a timetable.

A queue file is read in steps, each from a document to a plainer one: times of the clock become seconds, machines of the
catalogue get their device and price, models get their forecasts. What is left is a workload with plain seconds, which
is all that `scheduling` sees. A job that makes no sense is refused with a line, and the others go on.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from math import exp
from pathlib import Path
from typing import Any

from epochcast.display import register_view
from epochcast.errors import BadInput
from epochcast.forecasting.session import Session
from epochcast.interval import Interval
from epochcast.planning.queue_forecasts import with_forecasts
from epochcast.scheduling.drawing import STANDARD_TO_HIGH
from epochcast.scheduling.instances import with_instances
from epochcast.scheduling.policies.registry import DEFAULT, Switches
from epochcast.scheduling.projection import DRAWS, Asked, project
from epochcast.scheduling.queue_clock import Clock, timed
from epochcast.scheduling.queue_now import QueueNow, queue_now
from epochcast.scheduling.simulator import Rules
from epochcast.scheduling.timetable import Timetable
from epochcast.scheduling.workload import QueuedJob, Workload
from epochcast.scheduling.workload_file import Refused, read_document, read_rows

Progress = Callable[[int, int], None]

FILES = ("queue.toml", "queue.json")
"""Looked for from the working directory upward where no file is named."""


@dataclass(frozen=True)
class ReadQueue:
    """A queue as its file says it, and the clock; `rows` are the plain rows of its jobs."""

    workload: Workload
    rules: Rules
    clock: Clock
    rows: Mapping[str, Mapping[str, Any]]
    document: Mapping[str, Any]
    refused: tuple[Refused, ...]
    notes: tuple[str, ...]

    def now(self, at: datetime) -> QueueNow:
        """Who waits and who runs at a time."""
        return queue_now(self.workload, self.rows, self.clock.seconds(at))


def find_queue_file(start: Path | None = None) -> Path:
    """The nearest queue file, from a folder upward."""
    folder = (start or Path.cwd()).absolute()
    for candidate in (folder, *folder.parents):
        for name in FILES:
            if (candidate / name).is_file():
                return candidate / name
    raise BadInput(f"no {' or '.join(FILES)} in {folder} or above it: name a queue file")


def read_queue(
    queue: str | Path | Mapping[str, Any],
    at: datetime,
    *,
    session: Session | None = None,
    progress: Progress | None = None,
) -> ReadQueue:
    """A queue file (or what one says), with everything filled in that it leaves to us. `at` is now, with its zone."""
    if isinstance(queue, Mapping):
        return _read(queue, Path.cwd(), at, session, progress)
    path = Path(queue)
    try:
        return _read(read_document(path), path.absolute().parent, at, session, progress)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def _read(document: Any, folder: Path, at: datetime, session: Session | None, progress: Progress | None) -> ReadQueue:
    if not isinstance(document, Mapping):
        raise BadInput("a queue is an object with nodes, node_types and jobs")
    on_clock = timed(document, at)
    known = with_instances(on_clock.document, at.date())
    filled = with_forecasts(known.document, folder, session or Session(), progress)
    read = read_rows(filled.document)
    return ReadQueue(
        workload=read.workload,
        rules=read.rules,
        clock=on_clock.clock,
        rows=read.rows,
        document={**filled.document, "jobs": list(read.rows.values())},
        refused=(*on_clock.refused, *(Refused(*pair) for pair in filled.refused), *read.refused),
        notes=(*known.notes, *filled.notes),
    )


def schedule_plan(
    queue: str | Path | Mapping[str, Any],
    *,
    at: datetime | None = None,
    policy: str = DEFAULT,
    preemption: bool = True,
    every_seconds: float | None = None,
    error: float | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    session: Session | None = None,
    progress: Progress | None = None,
) -> Timetable:
    """The timetable of a queue: when each job starts and ends, with intervals, on what, and what that costs.

    `queue` is a file or what one says. `error` is the spread σ of seconds that come without an interval, as exp(σz);
    `every_seconds` has the policy decide at least so often, besides at arrivals and ends.
    """
    moment = (at or datetime.now()).astimezone() if at is None or at.tzinfo is None else at
    read = read_queue(queue, moment, session=session, progress=progress)
    rules = read.rules if every_seconds is None else replace(read.rules, every_seconds=every_seconds)
    asked = Asked(policy, Switches(preemption, preemption, seed), rules, draws, seed)
    return planned(read, moment, asked, error, progress)


def planned(
    read: ReadQueue, at: datetime, asked: Asked, error: float | None = None, progress: Progress | None = None
) -> Timetable:
    """The timetable of a queue that was read."""
    widened, notes = _with_spread(read.workload, error)
    now = replace(read, workload=widened).now(at)
    found = project(now, read.clock, asked, progress)
    return replace(found, refused=read.refused, notes=(*read.notes, *notes), rows=read.rows)


def _with_spread(workload: Workload, error: float | None) -> tuple[Workload, tuple[str, ...]]:
    """Intervals for seconds that have none; where none is asked for, a note says that they count as exact."""
    if error is not None and not 0 <= error <= 3:
        raise BadInput(f"error is a spread from 0 to 3, got {error:g}")
    exact = [job for job in workload.jobs if any(told.low == told.high for told in job.seconds.values())]
    if error is None:
        if not exact:
            return workload, ()
        some = "all jobs" if len(exact) == len(workload.jobs) else f"{len(exact)} of {len(workload.jobs)} jobs"
        return workload, (
            f"the seconds of {some} have no interval and count as exact: give [low, mid, high], or `error`",
        )
    factor = exp(STANDARD_TO_HIGH * error)

    def widened(job: QueuedJob) -> QueuedJob:
        seconds = {
            choice: Interval.around(told.mid, factor) if told.low == told.high else told
            for choice, told in job.seconds.items()
        }
        return replace(job, seconds=seconds)

    return replace(workload, jobs=tuple(map(widened, workload.jobs))), ()


def _view(answer: Timetable) -> Any:
    from epochcast import render

    return render.timetable(answer)


register_view(Timetable, _view)
