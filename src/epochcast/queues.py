"""The verbs of a queue: read a file or a stored queue, plan it as a timetable, run it.

A file is parsed once, into the typed rows of a `QueueDocument`. Then times of the clock become seconds, machines of the
catalogue get their device and price, and models get their forecasts. The result is a workload with plain seconds, which
is all that `schedule` sees. A job that makes no sense is refused with one line, and the others stay.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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
from epochcast.schedule.queue_file import QueueFile, command_line, runnable_queue
from epochcast.schedule.queue_now import QueueNow, queue_now
from epochcast.schedule.queue_rows import StoredQueue
from epochcast.schedule.runtime_draws import STANDARD_TO_HIGH
from epochcast.schedule.schedule_request import RunQueueRequest, ScheduleRequest
from epochcast.schedule.simulator import Policy, SimulationRules
from epochcast.schedule.timetable import PastJob, Timetable
from epochcast.schedule.workload_file import build_workload, fleet_of, rules_of
from epochcast.schedule.workload_jobs import GpuChoice, QueuedJob, QueueWorkload
from epochcast.units import show_seconds

if TYPE_CHECKING:
    from epochcast.observe.store.store import Store
    from epochcast.schedule.engines.executor import Executor
    from epochcast.schedule.job_launcher import SchedulerEvent
    from epochcast.schedule.scheduler_loop import Scheduler

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
    is_run: bool = False
    """Whether `schedule run` runs it, which stops running jobs for a gain only."""

    def timetable(self, request: ScheduleRequest, progress: Progress | None = None) -> Timetable:
        """The timetable from now on."""
        request = replace(request, policy=request.policy or self.policy)
        plan = project(self.now, self.clock, request, self.rules, progress, is_run=self.is_run)
        notes = (*self.notes, *plan.notes)
        return replace(plan, refused=self.refused, notes=notes, commands=self.commands, past=self.past)


def stored_view(store: "Store", name: str, at: datetime) -> QueueView:
    """A queue that `schedule run` runs, as the store has it."""
    from epochcast.schedule.decisions import with_restart
    from epochcast.schedule.queue_rows import ENDED
    from epochcast.schedule.stored_queue import load_queue, state_of

    queue = load_queue(store, name)
    state = state_of(queue, now_at_seconds := at.timestamp())
    for live in state.live.values():
        live.job = with_restart(live.job)
    clock = QueueClock(datetime.fromtimestamp(queue.added_at_seconds, at.tzinfo))
    ended = {name for name, stored in queue.jobs.items() if stored.state == ENDED}
    over = {name for name, stored in queue.jobs.items() if stored.is_over}
    jobs = tuple(
        replace(with_restart(stored.job), after=tuple(other for other in stored.job.after if other not in ended))
        for name, stored in queue.jobs.items()
        if name not in over and not over.difference(ended).intersection(stored.job.after)
    )
    starts = {start.job: start for start in reversed(queue.starts)}
    running = queue.open_starts()
    return QueueView(
        QueueNow(
            QueueWorkload(queue.fleet, jobs),
            state,
            {name: queue.seconds(start.asked_at_seconds) for name, start in running.items()},
        ),
        clock,
        rules_of(queue.machine_rows),
        {name: command_line(stored.work.command) for name, stored in queue.jobs.items() if stored.work is not None},
        notes=_age(queue.seen_at_seconds, now_at_seconds),
        past=tuple(
            PastJob(
                name,
                stored.state,
                queue.seconds(starts[name].asked_at_seconds) if name in starts else None,
                None if stored.ended_at_seconds is None else queue.seconds(stored.ended_at_seconds),
            )
            for name, stored in queue.jobs.items()
            if name in over
        ),
        policy=queue.policy,
        is_run=True,
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
    into: StoredQueue | None = None,
) -> ReadQueue:
    """A queue file (or what one says), with everything filled in that it leaves to us. `at` is now, with its zone.

    `into` is a stored queue that its jobs are for: they get its machines, and may come after its jobs.
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
    into: StoredQueue | None,
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
        seconds = {GpuChoice(run.device, run.gpus): run.seconds for run in forecasts if run.seconds is not None}
        jobs.append(replace(row, options={}, job=None, forecast_seconds=seconds))
        notes += [f"job {row.id!r} is not planned on {run}: {run.refusal}" for run in forecasts if run.seconds is None]
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


@dataclass(frozen=True)
class RunnableQueue:
    """A queue file with everything filled in, the time of its second 0, and the jobs that were refused."""

    queue: QueueFile
    start_at_seconds: float
    refused: tuple[RefusedJob, ...]


def read_runnable(path: Path, into: StoredQueue | None = None) -> RunnableQueue:
    """A queue file all of whose jobs can be started; `into` as for `read_queue`."""
    read = read_queue(path, now(), into=into)
    try:
        queue = runnable_queue(read.document, path.absolute().parent, () if into is None else into.jobs)
        queue.check_runnable()
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    return RunnableQueue(queue, read.clock.start_at.timestamp(), read.refused)


def policy_of(request: RunQueueRequest) -> Policy:
    """The policy that a queue is run under: it stops running jobs for a gain only, unless stopping is its purpose."""
    from epochcast.schedule.policies.policy_table import POLICIES, PolicyPermissions, policy_named
    from epochcast.schedule.policies.stops_with_gain import StopsWithGain

    may_stop = not request.keep_running
    policy = policy_named(request.policy, PolicyPermissions(stops=may_stop, resizes=may_stop))
    return StopsWithGain(policy) if may_stop and not POLICIES[request.policy].shares_time else policy


def engine_of(request: RunQueueRequest) -> "Executor":
    """The engine that runs the jobs."""
    match request.engine:
        case "ray":
            from epochcast.schedule.engines.ray_engine import RayEngine

            return RayEngine(request.address)
        case "slurm":
            from epochcast.schedule.engines.slurm_engine import SlurmEngine

            return SlurmEngine(tuple(shlex.split(request.sbatch)))
    from epochcast.schedule.engines.local_engine import LocalEngine

    return LocalEngine()


@contextmanager
def held_scheduler(
    store: "Store", name: str, request: RunQueueRequest, policy: Policy, tell: "Callable[[SchedulerEvent], None]"
) -> "Iterator[Scheduler]":
    """A scheduler that holds a stored queue until the block ends. `tell` gets every event."""
    from epochcast.schedule.queue_lease import take_queue
    from epochcast.schedule.scheduler_loop import Scheduler

    engine = engine_of(request)
    held, _ = take_queue(store, name, request.engine, request.policy)
    scheduler = Scheduler(held, engine, policy, tell, request)
    try:
        yield scheduler
    finally:
        scheduler.launcher.close()
        held.release()


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

    >>> import epochcast as ec
    >>> box = {"name": "box", "device": "V100", "gpus": 2, "in_house": True, "count": 1}
    >>> jobs = [{"id": name, "deadline": "+6h", "run_seconds": {"V100": {"2": 600}}} for name in ("first", "second")]
    >>> timetable = ec.schedule_plan({"nodes": 1, "node_types": [box], "jobs": jobs})
    >>> [round(line.end.mid - line.start.mid) for line in timetable.lines]
    [600, 600]
    """
    check_names(options, _REQUEST_OPTIONS)
    request = replace(request or ScheduleRequest(), **options)
    at = now() if request.at is None else request.at if request.at.tzinfo else request.at.astimezone()
    view = read_queue(queue, at, session=session, progress=progress).view(at, request.error)
    return view.timetable(request, progress)


_REQUEST_OPTIONS = {option.name: option for option in options_of(ScheduleRequest)}
_parameters = [item for item in signature(schedule_plan).parameters.values() if item.kind is not Parameter.VAR_KEYWORD]
_keywords = [
    Parameter(name, Parameter.KEYWORD_ONLY, default=option.default) for name, option in _REQUEST_OPTIONS.items()
]
setattr(schedule_plan, "__signature__", Signature([*_parameters, *_keywords], return_annotation=Timetable))  # noqa: B010


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
