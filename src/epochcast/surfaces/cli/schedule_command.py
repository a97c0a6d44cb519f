"""`epochcast schedule simulate`: a queue of jobs on machines that can be rented, under one policy or many."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcast.errors import BadInput
from epochcast.schedule.schedule_request import SimulationRequest
from epochcast.surfaces.cli.command_line import (
    FORECASTS,
    Explain,
    Json,
    Wide,
    check_plots,
    command_group,
    save_plot,
    show,
    telling,
)
from epochcast.surfaces.cli.evaluate_command import progress_bar
from epochcast.surfaces.cli.request_flags import request_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epochcast.queues import ReadQueue
    from epochcast.schedule.policy_comparison import PolicyComparison
    from epochcast.schedule.queue_document import RefusedJob
    from epochcast.schedule.workload_jobs import QueueWorkload

schedule_app = command_group(
    "schedule",
    FORECASTS,
    no_args_is_help=True,
    epilog="Example: epochcast schedule simulate queue.json --policy edf,atc_rollout",
    help="Plan and run a queue of jobs on several machines.",
)


@request_command(
    SimulationRequest,
    app=schedule_app,
    epilog="Example: epochcast schedule simulate queue.json --policy fifo,edf,atc_rollout --gantt q.png",
)
def simulate(
    request: SimulationRequest,
    file: Annotated[
        Path,
        typer.Argument(
            help="The workload: JSON or TOML with nodes, node_types and jobs; or a trace, CSV with submit_seconds, "
            "duration_seconds and gpus, and --machines.",
            show_default=False,
        ),
    ],
    machines: Annotated[
        Path | None, typer.Option(help="For a trace: a file with nodes and node_types; deadlines are drawn.")
    ] = None,
    gantt: Annotated[
        Path | None, typer.Option(help="Draw who ran where under the last policy: .png, .svg, .html.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw what each policy cost: .png, .svg, .html.")] = None,
    explain: Explain = False,
    wide: Wide = False,
    as_json: Json = False,
) -> int:
    """Compare scheduling policies on a workload: cost of machines and lateness, with a lower bound."""
    from epochcast.schedule.policy_comparison import compare_policies, policy_names
    from epochcast.schedule.workload_file import with_error

    check_plots(gantt, plot)
    tell_compiling(policy_names(request))
    read = _read(file, machines, request.seed)
    workload = with_error(read.workload, request.error, request.seed) if request.error else read.workload
    with progress_bar("simulating") as progress:
        answer = compare_policies(workload, request, read.rules, progress)
    _draw(answer, workload, gantt, plot)

    def view() -> Any:
        from epochcast.surfaces import render

        return render.simulation(answer)

    with telling(read.notes):
        body = {**answer.as_dict(), "refused": [job.as_dict() for job in read.refused]}
        show(body, as_json, view, explain=explain, wide=wide)
    return tell_refused(read.refused, file)


def tell_compiling(policies: "Sequence[str]") -> None:
    """A word on a terminal where the first decision will take its time."""
    from epochcast.schedule.policies.policy_table import will_compile

    if sys.stderr.isatty() and will_compile(policies):
        sys.stderr.write("epochcast: compiling the scheduling policy (about 15 s, once)\n")


def tell_refused(refused: "Sequence[RefusedJob]", file: Path | None) -> int:
    """A line for each job that was left out; bad input where there is one."""
    for job in refused:
        where = f"{file}: " if file is not None else ""
        sys.stderr.write(f"epochcast: {where}{' '.join(job.why.split())}\n")
    return BadInput.exit_code if refused else 0


@schedule_app.command(epilog="Example: epochcast schedule policies")
def policies(as_json: Json = False) -> int:
    """List the scheduling policies."""
    from epochcast.schedule.policies.policy_table import POLICIES

    def view() -> Any:
        from epochcast.surfaces import render

        return render.policies(POLICIES)

    show({"policies": [{"name": name, "about": entry.about} for name, entry in POLICIES.items()]}, as_json, view)
    return 0


def _read(file: Path, machines: Path | None, seed: int) -> "ReadQueue":
    from epochcast.base.current_time import now
    from epochcast.queues import read_queue, read_traced

    if file.suffix.lower() == ".csv":
        if machines is None:
            raise BadInput(f"{file} is a trace: say on which machines, with --machines FILE (nodes and node_types)")
        return read_traced(file, machines, now(), seed)
    if machines is not None:
        raise BadInput(f"--machines is for a trace (.csv); {file} says its own")
    with progress_bar("forecasting") as progress:
        return read_queue(file, now(), progress=progress)


def _draw(answer: "PolicyComparison", workload: "QueueWorkload", gantt: Path | None, plot: Path | None) -> None:
    name, outcome = list(answer.outcomes.items())[-1]
    deadlines = {job.id: job.deadline_seconds for job in workload.jobs}
    save_plot(gantt, lambda charts: charts.gantt(outcome, deadlines, name))
    save_plot(plot, lambda charts: charts.policy_costs(answer))
