"""The verbs of a queue: a file, or a queue that is being run, as a timetable.

A file is parsed once, into the typed rows of a `QueueDocument`. Then times of the clock become seconds, machines of the
catalogue get their device and price, and models get their forecasts. The result is a workload with plain seconds, which
is all that `schedule` sees. A job that makes no sense is refused with one line, and the others stay.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from inspect import Parameter, Signature, signature
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epochcast.base.current_time import now
from epochcast.base.options import check_names, options_of
from epochcast.decide.plan.queue_forecasts import (
    QUEUE_JOB_OPTIONS,
    MachineKind,
    forecast_on_machines,
    trained_job,
)
from epochcast.errors import BadInput, EpochcastError
from epochcast.interval import Interval
from epochcast.predict.forecast.session import Session
from epochcast.schedule.cluster_traces import read_trace
from epochcast.schedule.node_types import with_instances
from epochcast.schedule.projection import project
from epochcast.schedule.queue_clock import QueueClock, with_seconds
from epochcast.schedule.queue_document import QueueDocument, QueueJobRow, RefusedJob, parse_queue, read_document
from epochcast.schedule.queue_file import command_line
from epochcast.schedule.queue_now import QueueNow, queue_now
from epochcast.schedule.queue_rows import KeptQueue
from epochcast.schedule.runtime_draws import STANDARD_TO_HIGH
from epochcast.schedule.schedule_request import ScheduleRequest
from epochcast.schedule.simulator import SimulationRules
from epochcast.schedule.timetable import PastJob, Timetable
from epochcast.schedule.workload_file import build_workload, fleet_of, rules_of
from epochcast.schedule.workload_jobs import GpuChoice, QueuedJob, QueueWorkload
from epochcast.units import show_seconds

if TYPE_CHECKING:
    from epochcast.observe.store.store import Store

Progress = Callable[[int, int], None]

FILES = ("queue.toml", "queue.json")
"""Looked for from the working directory upward where no file is named."""
UNSEEN_SECONDS = 600.0
"""A scheduler that works writes at every event; after so long without one a reader is warned."""


@dataclass(frozen=True)
class ReadQueue:
    """A queue as its file says it, and the clock; the rows of `document` have everything filled in."""

    workload: QueueWorkload
    rules: SimulationRules
    clock: QueueClock
    document: QueueDocument
    refused: tuple[RefusedJob, ...]
    notes: tuple[str, ...]

    def view(self, at: datetime, error: float | None = None) -> "QueueView":
        """Who waits and who runs at a time; `error` is the spread of seconds that have no interval."""
        workload, notes = _with_spread(self.workload, error)
        return QueueView(
            queue_now(workload, {row.id: row for row in self.document.jobs}, self.clock.seconds(at)),
            self.clock,
            self.rules,
            {row.id: command_line(row.command) for row in self.document.jobs if row.command is not None},
            self.refused,
            (*self.notes, *notes),
        )


@dataclass(frozen=True)
class QueueView:
    """A queue at a moment, from a file or from the store. `past` are jobs that are over."""

    now: QueueNow
    clock: QueueClock
    rules: SimulationRules
    commands: Mapping[str, str]
    refused: tuple[RefusedJob, ...] = ()
    notes: tuple[str, ...] = ()
    past: tuple[PastJob, ...] = ()
    policy: str | None = None
    """Who decides where it is run."""

    def timetable(self, request: ScheduleRequest, progress: Progress | None = None) -> Timetable:
        """The queue as it will go on."""
        request = replace(request, policy=request.policy or self.policy)
        plan = project(self.now, self.clock, request, self.rules, progress)
        return replace(
            plan,
            refused=self.refused,
            notes=(*self.notes, *plan.notes),
            commands=self.commands,
            past=self.past,
        )


def kept_view(store: "Store", name: str, at: datetime) -> QueueView:
    """A queue that `schedule run` works off, as the store has it."""
    from epochcast.schedule.queue_rows import ENDED
    from epochcast.schedule.stored_queue import kept_queue, state_of

    kept = kept_queue(store, name)
    clock = QueueClock(datetime.fromtimestamp(kept.added_at_seconds, at.tzinfo))
    now_at_seconds = at.timestamp()
    ended = {job for job, one in kept.jobs.items() if one.state == ENDED}
    over = {job for job, one in kept.jobs.items() if one.is_over}
    jobs = tuple(
        replace(one.job, after=tuple(other for other in one.job.after if other not in ended))
        for job, one in kept.jobs.items()
        if job not in over and not over.difference(ended).intersection(one.job.after)
    )
    starts = {start.job: start for start in reversed(kept.starts)}
    running = kept.open_starts()
    return QueueView(
        QueueNow(
            QueueWorkload(kept.fleet, jobs),
            state_of(kept, now_at_seconds),
            {job: kept.seconds(start.asked_at_seconds) for job, start in running.items()},
        ),
        clock,
        rules_of(kept.machine_rows),
        {job: command_line(one.work.command) for job, one in kept.jobs.items() if one.work is not None},
        notes=_age(kept.seen_at_seconds, now_at_seconds),
        past=tuple(
            PastJob(
                job,
                one.state,
                kept.seconds(starts[job].asked_at_seconds) if job in starts else None,
                None if one.ended_at_seconds is None else kept.seconds(one.ended_at_seconds),
            )
            for job, one in kept.jobs.items()
            if job in over
        ),
        policy=kept.policy,
    )


def _age(seen_at_seconds: float, now_at_seconds: float) -> tuple[str, ...]:
    """A word where nobody has written to a queue for long."""
    passed = now_at_seconds - seen_at_seconds
    if passed <= UNSEEN_SECONDS:
        return ()
    return (f"no scheduler has written to this queue for {show_seconds(passed)}: running jobs may have ended since",)


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
    into: KeptQueue | None = None,
) -> ReadQueue:
    """A queue file (or what one says), with everything filled in that it leaves to us. `at` is now, with its zone.

    `into` is a kept queue that its jobs are for: they get its machines, and may come after its jobs.
    """
    if isinstance(queue, Mapping):
        return _read(queue, Path.cwd(), at, session, progress, into)
    path = Path(queue)
    try:
        return _read(read_document(path), path.absolute().parent, at, session, progress, into)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def _read(
    document: Any,
    folder: Path,
    at: datetime,
    session: Session | None,
    progress: Progress | None,
    into: KeptQueue | None,
) -> ReadQueue:
    parsed = parse_queue(document, QUEUE_JOB_OPTIONS, None if into is None else into.machine_rows)
    timed = with_seconds(parsed, at)
    node_types, notes = with_instances(timed.document.node_types, at.date())
    filled, unplanned = with_forecasts(
        replace(timed.document, node_types=node_types), folder, session or Session(), progress
    )
    read = build_workload(filled, () if into is None else into.jobs)
    if read.refused and not read.workload.jobs:
        more = f" ({len(read.refused) - 1} more jobs are refused, too)" if len(read.refused) > 1 else ""
        raise BadInput(f"{read.refused[0].why}{more}")
    return ReadQueue(
        workload=read.workload,
        rules=rules_of(filled),
        clock=timed.clock,
        document=replace(filled, jobs=tuple(read.rows.values()), refused=()),
        refused=read.refused,
        notes=(*notes, *unplanned),
    )


def with_forecasts(
    document: QueueDocument, folder: Path, session: Session, progress: Progress | None = None
) -> tuple[QueueDocument, tuple[str, ...]]:
    """A document whose jobs all have seconds, and notes on machines that cannot run a job.

    Jobs that cannot be forecast are refused. Files are looked for in `folder`.
    """
    machines = [
        MachineKind(row.device, row.gpus, row.instance)
        for row in document.node_types
        if row.device is not None and row.gpus is not None
    ]
    jobs: list[QueueJobRow] = []
    notes: list[str] = []
    refused = list(document.refused)
    for place, row in enumerate(document.jobs):
        if progress is not None:
            progress(place, len(document.jobs))
        if not row.is_forecast:
            jobs.append(row)
            continue
        try:
            trained = trained_job(row.options, row.job, folder, row.min_gpus, row.max_gpus)
            forecasts = forecast_on_machines(trained, machines, session)
        except EpochcastError as error:
            refused.append(RefusedJob(row.id, f"job {row.id!r}: {error}"))
            continue
        seconds = {GpuChoice(one.device, one.gpus): one.seconds for one in forecasts if one.seconds is not None}
        jobs.append(replace(row, options={}, job=None, forecast_seconds=seconds))
        notes += [f"job {row.id!r} is not planned on {one}: {one.refusal}" for one in forecasts if one.seconds is None]
    return replace(document, jobs=tuple(jobs), refused=tuple(refused)), tuple(notes)


def read_traced(trace: Path, machines: Path, at: datetime, seed: int) -> ReadQueue:
    """Jobs of a cluster's trace (CSV) on the machines of a queue file, with deadlines drawn; second 0 is now."""
    try:
        content = read_document(machines)
        if not isinstance(content, Mapping):
            raise BadInput("machines must be an object with nodes and node_types")
        document = parse_queue({**content, "jobs": []})
        node_types, notes = with_instances(document.node_types, at.date())
        document = replace(document, node_types=node_types)
        fleet, rules = fleet_of(document), rules_of(document)
    except BadInput as error:
        raise BadInput(f"{machines}: {error}") from None
    read = read_trace(trace, fleet, seed)
    refused = tuple(RefusedJob("", line) for line in read.refused)
    drawn = "deadlines and costs of lateness are drawn; a duration counts on the first device"
    return ReadQueue(read.workload, rules, QueueClock(at), document, refused, (*notes, drawn))


def schedule_plan(
    queue: str | Path | Mapping[str, Any],
    request: ScheduleRequest | None = None,
    *,
    session: Session | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Timetable:
    """The timetable of a queue: when each job starts and ends, with intervals, on what, and what that costs.

    `queue` is a file or what one says. `options` are those of a `ScheduleRequest`: `policy`, `at`, `preemption`,
    `every_seconds` (decide at least so often, besides at arrivals and ends), `error` (the spread σ of seconds that come
    without an interval, as exp(σz)), `draws` and `seed`.
    """
    check_names(options, _REQUEST_OPTIONS)
    request = replace(request or ScheduleRequest(), **options)
    at = now() if request.at is None else request.at if request.at.tzinfo else request.at.astimezone()
    view = read_queue(queue, at, session=session, progress=progress).view(at, request.error)
    return view.timetable(request, progress)


_REQUEST_OPTIONS = {option.name: option for option in options_of(ScheduleRequest)}
_own = [one for one in signature(schedule_plan).parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
_keywords = [
    Parameter(name, Parameter.KEYWORD_ONLY, default=option.default) for name, option in _REQUEST_OPTIONS.items()
]
setattr(schedule_plan, "__signature__", Signature([*_own, *_keywords], return_annotation=Timetable))  # noqa: B010


def _with_spread(workload: QueueWorkload, error: float | None) -> tuple[QueueWorkload, tuple[str, ...]]:
    """Intervals for seconds that have none; where none is asked for, a note says that they count as exact."""
    exact = [job for job in workload.jobs if any(run.low == run.high for run in job.seconds.values())]
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
            choice: Interval.around(run.mid, factor) if run.low == run.high else run
            for choice, run in job.seconds.items()
        }
        return replace(job, seconds=seconds)

    return replace(workload, jobs=tuple(map(widened, workload.jobs))), ()
