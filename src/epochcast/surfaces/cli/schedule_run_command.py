"""`epochcast schedule run`, `submit` and `cancel`: run a queue on this machine, on Ray or on Slurm."""

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event as Flag
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcast.errors import BadInput
from epochcast.schedule.schedule_request import RunQueueRequest
from epochcast.surfaces.cli.command_line import Json, show
from epochcast.surfaces.cli.request_flags import request_command
from epochcast.surfaces.cli.schedule_command import schedule_app, tell_compiling, tell_refused

if TYPE_CHECKING:
    from epochcast.observe.store.store import Store
    from epochcast.schedule.job_launcher import SchedulerEvent
    from epochcast.schedule.queue_changes import CancelledJob
    from epochcast.schedule.queue_rows import StoredQueue
    from epochcast.schedule.scheduler_loop import Scheduler

StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store",
        "--database",
        help="SQLite file or postgresql://… [default: EPOCHCAST_STORE, or a file in your data folder].",
    ),
]


@request_command(
    RunQueueRequest,
    app=schedule_app,
    epilog="Example: epochcast schedule run queue.json --engine slurm --sbatch='--partition=gpu'",
)
def run(
    request: RunQueueRequest,
    queue: Annotated[str, typer.Argument(help="A queue file, or the name of a stored queue to continue.")],
    store: StoreUrl = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per event, one per line.")] = False,
) -> int:
    """Run the queue: start, watch, stop and resize jobs until all have finished.

    All state is in the store: a scheduler that is killed and started again continues where it was. Ctrl-C leaves the
    jobs running.
    """
    from epochcast.observe.store.store_opening import open_store
    from epochcast.queues import held_scheduler, policy_of

    policy = policy_of(request)
    tell_compiling([request.policy])
    tell = _teller(as_json)
    with open_store(store) as opened:
        name, refused = _stored(opened, queue, request.name)
        with held_scheduler(opened, name, request, policy, tell) as scheduler:
            with _leaving(scheduler.leave):
                last = scheduler.run()
            if scheduler.leave.is_set() and request.stop_jobs:
                last = scheduler.stop_jobs()
            tell(_farewell(last, scheduler))
    if any(job.state == "failed" for job in last.jobs.values()):
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
    from epochcast.queues import read_runnable
    from epochcast.schedule.queue_changes import submit as add
    from epochcast.schedule.stored_queue import load_queue

    with open_store(store) as opened:
        read = read_runnable(file, load_queue(opened, name))
        added = add(opened, name, read.queue, read.start_at_seconds)

    def view() -> Any:
        from rich.text import Text

        return Text(f"{len(added)} added to {name}: {', '.join(added)}")

    show({"queue": name, "added": added, "refused": [job.as_dict() for job in read.refused]}, as_json, view)
    return tell_refused(read.refused, file)


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


def _cancelled(queue: str, cancelled: "CancelledJob", is_worked_on: bool) -> list[str]:
    job = cancelled.job
    if cancelled.is_over:
        line = f"{job} is cancelled"
    elif is_worked_on:
        line = f"{job} will be {'asked to save itself and stop' if cancelled.is_running else 'cancelled'} in a moment"
    else:
        line = f"{job} was left running without a scheduler; this stops it: epochcast schedule run {queue}"
    return [line, *(f"{other} comes after it and will not run" for other in cancelled.followers)]


def _stored(store: "Store", queue: str, name: str | None) -> tuple[str, int]:
    """The name of the queue in the store, saved from its file where one is given, and the exit code of jobs refused."""
    from epochcast.queues import read_runnable
    from epochcast.schedule.stored_queue import changed_jobs, load_queue, save_queue

    path = Path(queue)
    if not path.is_file():
        if path.suffix in (".json", ".toml"):
            raise BadInput(f"there is no file {queue}")
        return load_queue(store, queue).name, 0
    read = read_runnable(path)
    code = tell_refused(read.refused, path)
    stored_name = path.stem if name is None else name
    save_queue(store, stored_name, read.queue, read.start_at_seconds)
    for job in changed_jobs(store, stored_name, read.queue):
        sys.stderr.write(f"epochcast: job {job!r} of the file differs from the stored one, which stays as it is\n")
    return stored_name, code


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


def _farewell(queue: "StoredQueue", scheduler: "Scheduler") -> "SchedulerEvent":
    from epochcast.schedule.job_launcher import SchedulerEvent

    now = time.time()
    states = [job.state for job in queue.jobs.values()]
    machines, late = queue.dollars(now)
    details = {
        "jobs": {state: states.count(state) for state in sorted(set(states))},
        "running": sorted(queue.open_starts()),
        "machine_dollars": machines,
        "tardiness_dollars": late,
        "dollars": machines + late,
    }
    counts = ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states)))
    bill = f"machines ${machines:.2f}, lateness ${late:.2f}"
    if not scheduler.leave.is_set():
        return SchedulerEvent(now, "done", f"all jobs are over: {counts}; {bill}", None, details)
    going = f"{len(queue.open_starts())} jobs keep running" if queue.open_starts() else "no job runs"
    line = f"scheduler stopped: {going} ({counts}; {bill}); continue with: epochcast schedule run {queue.name}"
    return SchedulerEvent(now, "left", f"{line} --engine {scheduler.engine.name}", None, details)
