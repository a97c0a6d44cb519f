"""`epochcast schedule plan` and `epochcast schedule queue`: a queue now as a timetable."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcast.decide.handover.handover_request import GROUP, HANDOVER_OPTIONS
from epochcast.errors import BadInput, OverLimit
from epochcast.schedule.schedule_request import DEFAULT_POLICY, ScheduleRequest
from epochcast.surfaces.cli.command_line import Explain, Json, Wide, check_plots, save_plot, show, wrote
from epochcast.surfaces.cli.database_options import Database
from epochcast.surfaces.cli.evaluate_command import progress_bar
from epochcast.surfaces.cli.request_flags import PANELS, request_command
from epochcast.surfaces.cli.schedule_command import schedule_app, tell_compiling, tell_refused

if TYPE_CHECKING:
    from datetime import datetime

    from epochcast.queues import QueueView
    from epochcast.schedule.queue_document import RefusedJob
    from epochcast.schedule.timetable import Timetable

QueueFile = Annotated[
    Path | None,
    typer.Argument(
        help="The queue: TOML or JSON with nodes, node_types and jobs; else the nearest queue.toml or queue.json.",
        show_default=False,
    ),
]
_HANDOVER_HELP = {option.name: option.help for option in HANDOVER_OPTIONS}
RunName = Annotated[
    str | None, typer.Option("--run", help="A queue that `schedule run` works off, by its name in the store.")
]


@request_command(
    ScheduleRequest,
    app=schedule_app,
    epilog="Examples: epochcast schedule plan queue.toml · epochcast schedule plan queue.toml --gantt plan.png "
    "--skypilot tasks/",
)
def plan(
    request: ScheduleRequest,
    queue: QueueFile = None,
    run: RunName = None,
    deadline: Annotated[
        str | None,
        typer.Option(help="Exit with code 3 if the last job may end later, like 'Friday 18:00'."),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(help="Exit with code 3 if machines may cost more dollars than this."),
    ] = None,
    gantt: Annotated[Path | None, typer.Option(help="Write a Gantt chart: .png, .svg, .html.")] = None,
    skypilot: Annotated[
        Path | None, typer.Option(help="Write a task of SkyPilot for each job into this folder.")
    ] = None,
    kueue: Annotated[
        Path | None, typer.Option(help="Write a Kubernetes Job for Kueue for each job into this folder.")
    ] = None,
    local_queue: Annotated[
        str | None, typer.Option("--queue", help=_HANDOVER_HELP["queue"], rich_help_panel=PANELS[GROUP])
    ] = None,
    image: Annotated[str | None, typer.Option(help=_HANDOVER_HELP["image"], rich_help_panel=PANELS[GROUP])] = None,
    database: Database = None,
    explain: Explain = False,
    as_json: Json = False,
) -> int:
    """Plan a queue: which job runs where and when, on which machines, at what cost."""
    from epochcast.base.current_time import now

    check_plots(gantt)
    if kueue is not None and (local_queue is None or image is None):
        raise BadInput("a job of Kueue needs its local queue and its container image: give --queue and --image")
    if budget is not None and not 0 < budget < float("inf"):
        raise BadInput(f"--budget must be a number of dollars above 0, got {budget:g}")
    answer = _timetable(request, queue, run, database)
    exceeded = _exceeded(answer, _until(deadline, request.at or now()), budget)
    save_plot(gantt if answer.lines else None, lambda charts: charts.timetable(answer))
    files, unwritten = _hand_over(answer, skypilot, kueue, local_queue, image)

    show({**answer.as_dict(), "exceeded": exceeded, "files": files}, as_json, answer.__rich__, explain=explain)
    for line in exceeded:
        sys.stderr.write(f"epochcast: {line}\n")
    code = tell_refused((*answer.refused, *unwritten), queue)
    return code or (OverLimit.exit_code if exceeded else 0)


@request_command(
    ScheduleRequest,
    app=schedule_app,
    epilog="Examples: epochcast schedule queue queue.toml · epochcast schedule queue --run lab --job imagenet",
)
def queue(
    request: ScheduleRequest,
    queue: QueueFile = None,
    run: RunName = None,
    job: Annotated[str | None, typer.Option(help="Only this job.")] = None,
    database: Database = None,
    explain: Explain = False,
    wide: Wide = False,
    as_json: Json = False,
) -> int:
    """List queued jobs: position, start time with an interval, and what each waits for."""
    answer = _timetable(request, queue, run, database)
    refused = [refused_job for refused_job in answer.refused if job in (None, refused_job.job)]
    lines = answer.jobs if job is None else () if refused else (answer.line(job),)

    def drawn() -> Any:
        from epochcast.surfaces import render

        return render.queue(answer, lines)

    show(answer.listing(lines).as_dict(), as_json, drawn, explain=explain, wide=wide)
    return tell_refused(refused, queue)


def _until(deadline: str | None, moment: "datetime") -> "datetime | None":
    from datetime import timedelta

    from epochcast.decide.plan.deadline import deadline_seconds

    return None if deadline is None else moment + timedelta(seconds=deadline_seconds(deadline, moment))


def _view(
    queue: Path | None, run: str | None, at: "datetime", error: float | None, database: str | None
) -> "QueueView":
    """The queue of a file, or one of the store."""
    from epochcast.queues import find_queue_file, read_queue, stored_view

    if run is None:
        with progress_bar("forecasting") as progress:
            return read_queue(queue or find_queue_file(), at, progress=progress).view(at, error)
    if queue is not None:
        raise BadInput("give a queue file or --run, not both")
    from epochcast.observe.store.store_location import database_url, shown_url
    from epochcast.observe.store.store_opening import existing_store

    store = existing_store(database)
    if store is None:
        raise BadInput(f"no queue called {run!r}: there is no store yet at {shown_url(database_url(database))}")
    with store:
        return stored_view(store, run, at)


def _timetable(request: ScheduleRequest, queue: Path | None, run: str | None, database: str | None) -> "Timetable":
    from epochcast.base.current_time import now

    view = _view(queue, run, request.at or now(), request.error, database)
    tell_compiling([request.policy or view.policy or DEFAULT_POLICY])
    with progress_bar("planning") as progress:
        return view.timetable(request, progress)


def _exceeded(answer: "Timetable", until: "datetime | None", budget: float | None) -> list[str]:
    """Limits of the command line that the high ends do not keep."""
    from epochcast.units import show_dollars

    sentences = []
    if until is not None and answer.end is not None and answer.end.high > answer.clock.seconds(until):
        latest = answer.clock.at(answer.end.high)
        sentences.append(
            f"the last job may end {latest:%a %d %b %H:%M %Z}, after the deadline {until:%a %d %b %H:%M %Z}"
        )
    if budget is not None and answer.machine_dollars.high > budget:
        sentences.append(f"machines may cost {show_dollars(answer.machine_dollars.high)}, over {show_dollars(budget)}")
    return sentences


def _hand_over(
    answer: "Timetable", skypilot: Path | None, kueue: Path | None, queue: str | None, image: str | None
) -> "tuple[list[str], tuple[RefusedJob, ...]]":
    """Write what is asked for; the files, and jobs without one."""
    from epochcast.schedule.timetable_handover import kueue_jobs, skypilot_tasks

    files: list[str] = []
    unwritten: dict[str, RefusedJob] = {}
    for folder, handed in (
        (skypilot, None if skypilot is None else skypilot_tasks(answer)),
        (kueue, None if kueue is None else kueue_jobs(answer, queue=queue, image=image)),
    ):
        if folder is not None and handed is not None:
            files += _write(folder, handed.texts)
            unwritten |= {refused_job.job: refused_job for refused_job in handed.refused}
    return files, tuple(unwritten.values())


def _write(folder: Path, texts: Mapping[str, str]) -> list[str]:
    from epochcast.base.atomic_files import write_text

    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_text(folder / name, text)
    if texts:
        wrote(folder)
    return [str(folder / name) for name in texts]
