"""`epochcast schedule run`, `submit` and `cancel`: a queue worked off on this machine, on Ray or on Slurm."""

import json
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event as Flag
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcast.errors import BadInput
from epochcast.surfaces.cli.command_line import Json, show
from epochcast.surfaces.cli.schedule_command import schedule_app, tell_compiling, tell_refused

if TYPE_CHECKING:
    from epochcast.observe.store.store import Store
    from epochcast.schedule.engines.executor import Executor
    from epochcast.schedule.job_launcher import SchedulerEvent
    from epochcast.schedule.queue_changes import CancelledJob
    from epochcast.schedule.queue_document import RefusedJob
    from epochcast.schedule.queue_file import QueueFile
    from epochcast.schedule.queue_rows import KeptQueue
    from epochcast.schedule.scheduler_loop import Scheduler

StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store",
        "--database",
        help="SQLite file or postgresql://… [default: EPOCHCAST_STORE, or a file in your data folder].",
    ),
]


@schedule_app.command(epilog="Example: epochcast schedule run queue.json --engine slurm --sbatch='--partition=gpu'")
def run(
    queue: Annotated[str, typer.Argument(help="A queue file, or the name of a stored queue to continue.")],
    engine: Annotated[str, typer.Option(help="Engine that runs the jobs: local, ray or slurm.")] = "local",
    name: Annotated[str | None, typer.Option(help="Name of the queue in the store [default: the file's].")] = None,
    store: StoreUrl = None,
    policy: Annotated[str, typer.Option(help="Scheduling policy, see `epochcast schedule policies`.")] = "atc_rollout",
    keep_running: Annotated[
        bool, typer.Option("--keep-running", help="Never preempt or resize a running job.")
    ] = False,
    every: Annotated[str, typer.Option(help="Reschedule at least this often, and at every event.")] = "30s",
    look: Annotated[str, typer.Option(help="Poll the engine this often.")] = "2s",
    address: Annotated[str | None, typer.Option(help="Ray's dashboard, like http://head:8265.")] = None,
    sbatch: Annotated[str, typer.Option(help="Extra options for sbatch, like '--partition=gpu'.")] = "",
    stay: Annotated[bool, typer.Option("--stay", help="Wait for more jobs when all have finished.")] = False,
    stop_jobs: Annotated[
        bool, typer.Option("--stop-jobs", help="When interrupted, also stop the jobs [default: they keep running].")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per event, one per line.")] = False,
) -> int:
    """Run the queue: start, watch, stop and resize jobs until all have finished.

    Everything is kept in the store: killed and started again, it goes on where it was. Ctrl-C leaves the jobs running.
    """
    from epochcast.observe.store.store_opening import open_store
    from epochcast.schedule.policies.policy_table import PolicyPermissions, policy_named
    from epochcast.schedule.queue_lease import take_queue
    from epochcast.schedule.scheduler_loop import LoopOptions, Scheduler

    manner = LoopOptions(_positive(look, "--look"), _positive(every, "--every"), stay)
    decides = policy_named(policy, PolicyPermissions(stops=not keep_running, resizes=not keep_running))
    tell_compiling([policy])
    with open_store(store) as opened:
        kept_name, refused = _kept(opened, queue, name)
        executor = _engine(engine, address, sbatch)
        held, _ = take_queue(opened, kept_name, engine, policy)
        tell = _teller(as_json)
        scheduler = Scheduler(held, executor, decides, tell, manner)
        try:
            with _leaving(scheduler.leave):
                last = scheduler.run()
            if scheduler.leave.is_set() and stop_jobs:
                last = scheduler.stop_jobs()
            tell(_farewell(last, scheduler))
        finally:
            scheduler.hands.close()
            held.release()
    if any(kept.state == "failed" for kept in last.jobs.values()):
        return 3
    return refused


@schedule_app.command(epilog="Example: epochcast schedule submit nightly more.json")
def submit(
    name: Annotated[str, typer.Argument(help="Name of a stored queue.")],
    file: Annotated[Path, typer.Argument(help="A file with jobs; times count from now, machines are the queue's.")],
    store: StoreUrl = None,
    as_json: Json = False,
) -> int:
    """Add jobs to a queue, running or not."""
    from epochcast.observe.store.store_opening import open_store
    from epochcast.schedule.queue_changes import submit as add
    from epochcast.schedule.stored_queue import kept_queue

    with open_store(store) as opened:
        found = _read(file, kept_queue(opened, name))
        added = add(opened, name, found.queue, found.start_at_seconds)

    def view() -> Any:
        from rich.text import Text

        return Text(f"{len(added)} added to {name}: {', '.join(added)}")

    show({"queue": name, "added": added, "refused": [one.as_dict() for one in found.refused]}, as_json, view)
    return tell_refused(found.refused, file)


@schedule_app.command(epilog="Examples: epochcast schedule cancel nightly bert · epochcast schedule cancel nightly a b")
def cancel(
    name: Annotated[str, typer.Argument(help="Name of a stored queue.")],
    jobs: Annotated[list[str], typer.Argument(help="The jobs to cancel, by their ids.")],
    store: StoreUrl = None,
    as_json: Json = False,
) -> int:
    """Cancel jobs of a queue. A running job gets SIGTERM, and is killed after its grace period."""
    from epochcast.observe.store.store_opening import open_store
    from epochcast.schedule.queue_changes import cancel as ask

    with open_store(store) as opened:
        cancelled, is_worked_on = ask(opened, name, jobs)

    def view() -> Any:
        from rich.text import Text

        return Text("\n".join(line for job in cancelled for line in _cancelled(name, job, is_worked_on)))

    show(
        {"queue": name, "cancelled": [job.as_dict() for job in cancelled], "is_worked_on": is_worked_on}, as_json, view
    )
    return 0


def _cancelled(queue: str, one: "CancelledJob", is_worked_on: bool) -> list[str]:
    if one.is_over:
        line = f"{one.job} is cancelled"
    elif is_worked_on:
        line = f"{one.job} will be {'asked to save itself and stop' if one.is_running else 'cancelled'} in a moment"
    else:
        line = f"{one.job} was left running without a scheduler; this stops it: epochcast schedule run {queue}"
    return [line, *(f"{other} comes after it and will not run" for other in one.followers)]


def _positive(text: str, flag: str) -> float:
    from epochcast.units import parse_seconds

    seconds = parse_seconds(text, flag, unit="s")
    if seconds <= 0:
        raise BadInput(f"{flag} must be more than 0")
    return seconds


def _kept(store: "Store", queue: str, name: str | None) -> tuple[str, int]:
    """The name of the queue in the store, kept from its file where one is given, and the exit code of jobs refused."""
    from epochcast.schedule.stored_queue import changed_jobs, keep_queue, kept_queue

    path = Path(queue)
    if not path.is_file():
        if path.suffix in (".json", ".toml"):
            raise BadInput(f"there is no file {queue}")
        return kept_queue(store, queue).name, 0
    found = _read(path)
    code = tell_refused(found.refused, path)
    kept_name = path.stem if name is None else name
    keep_queue(store, kept_name, found.queue, found.start_at_seconds)
    for job in changed_jobs(store, kept_name, found.queue):
        sys.stderr.write(
            f"epochcast: job {job!r} of the file differs from the one that is kept, which stays as it is\n"
        )
    return kept_name, code


@dataclass(frozen=True)
class _Found:
    """A queue file with everything filled in, the time of its second 0, and who was refused."""

    queue: "QueueFile"
    start_at_seconds: float
    refused: "tuple[RefusedJob, ...]"


def _read(path: Path, into: "KeptQueue | None" = None) -> _Found:
    from datetime import datetime

    from epochcast.queues import read_queue
    from epochcast.schedule.queue_file import runnable_queue

    read = read_queue(path, datetime.now().astimezone(), into=into)
    try:
        queue = runnable_queue(read.document, path.absolute().parent, () if into is None else into.jobs)
        queue.check_runnable()
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    return _Found(queue, read.clock.start_at.timestamp(), read.refused)


def _engine(name: str, address: str | None, sbatch: str) -> "Executor":
    if name == "local":
        from epochcast.schedule.engines.local_engine import LocalEngine

        return LocalEngine()
    if name == "ray":
        from epochcast.schedule.engines.ray_engine import RayEngine

        return RayEngine(address)
    if name == "slurm":
        from epochcast.schedule.engines.slurm_engine import SlurmEngine

        return SlurmEngine(tuple(shlex.split(sbatch)))
    raise BadInput(f"--engine is local, ray or slurm, not {name!r}")


def _teller(as_json: bool) -> "Callable[[SchedulerEvent], None]":
    def tell(event: "SchedulerEvent") -> None:
        if as_json:
            line = json.dumps(event.as_dict(), allow_nan=False)
        else:
            line = f"{time.strftime('%H:%M:%S', time.localtime(event.at_seconds))}  {event.line}"
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    return tell


@contextmanager
def _leaving(leave: Flag) -> Iterator[None]:
    """SIGTERM and Ctrl-C end the loop between two rounds."""

    def ask(_signal: int, _frame: object) -> None:
        leave.set()

    before = {kind: signal.signal(kind, ask) for kind in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


def _farewell(queue: "KeptQueue", scheduler: "Scheduler") -> "SchedulerEvent":
    from epochcast.schedule.job_launcher import SchedulerEvent

    now = time.time()
    states = [kept.state for kept in queue.jobs.values()]
    machines, late = queue.dollars(now)
    told = {
        "jobs": {state: states.count(state) for state in sorted(set(states))},
        "running": sorted(queue.open_starts()),
        "machine_dollars": machines,
        "tardiness_dollars": late,
        "dollars": machines + late,
    }
    counts = ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states)))
    bill = f"machines ${machines:.2f}, lateness ${late:.2f}"
    if not scheduler.leave.is_set():
        return SchedulerEvent(now, "done", f"all jobs are over: {counts}; {bill}", None, told)
    going = f"{len(queue.open_starts())} jobs keep running" if queue.open_starts() else "no job runs"
    line = f"scheduler stopped: {going} ({counts}; {bill}); continue with: epochcast schedule run {queue.name}"
    return SchedulerEvent(now, "left", f"{line} --engine {scheduler.engine.name}", None, told)
