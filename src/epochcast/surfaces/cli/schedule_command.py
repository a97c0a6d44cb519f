"""`epochcast schedule simulate`: a queue of jobs on machines that can be rented, under one policy or many."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcast.errors import BadInput
from epochcast.surfaces.cli.command_line import FORECASTS, Explain, Json, Wide, app, show, telling, wrote
from epochcast.surfaces.cli.evaluate_command import progress_bar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epochcast.queues import ReadQueue
    from epochcast.schedule.policy_comparison import PolicyComparison
    from epochcast.schedule.queue_document import RefusedJob
    from epochcast.schedule.workload_jobs import QueueWorkload

schedule_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog="Example: epochcast schedule simulate queue.json --policy edf,atc_rollout",
    help="Plan and run a queue of jobs on several machines.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(schedule_app, name="schedule", rich_help_panel=FORECASTS)


@schedule_app.command(
    epilog="Example: epochcast schedule simulate queue.json --policy fifo,edf,atc_rollout --gantt q.png"
)
def simulate(
    file: Annotated[
        Path,
        typer.Argument(
            help="The workload: JSON or TOML with nodes, node_types and jobs; or a trace, CSV with submit_seconds, "
            "duration_seconds and gpus, and --machines.",
            show_default=False,
        ),
    ],
    policy: Annotated[str, typer.Option(help="Policies to compare; all for every one there is.")] = "atc_rollout",
    preemption: Annotated[
        str, typer.Option(help="Whether running jobs may be stopped and resized: with, without, or both.")
    ] = "with",
    resizing: Annotated[
        bool, typer.Option(help="Whether a preempted job may continue on another machine or number of GPUs.")
    ] = True,
    every: Annotated[
        str | None, typer.Option(help="Decide at least this often, like 10min, besides at events.")
    ] = None,
    machines: Annotated[
        Path | None, typer.Option(help="For a trace: a file with nodes and node_types; deadlines are drawn.")
    ] = None,
    error: Annotated[float, typer.Option(help="Forecasts err by exp(σz), one z per job: σ, like 0.3.")] = 0.0,
    reestimate: Annotated[
        bool, typer.Option("--reestimate", help="Let the progress of running jobs correct their forecasts.")
    ] = False,
    seed: Annotated[int, typer.Option(help="For what is drawn at random.")] = 0,
    bound: Annotated[bool, typer.Option(help="Solve for the lower bound, too.")] = True,
    gantt: Annotated[
        Path | None, typer.Option(help="Draw who ran where under the last policy: .png, .svg, .html.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw what each policy cost: .png, .svg, .html.")] = None,
    explain: Explain = False,
    wide: Wide = False,
    as_json: Json = False,
) -> int:
    """Compare scheduling policies on a workload: cost of machines and lateness, with a lower bound."""
    from epochcast.schedule.policies.policy_table import Switches
    from epochcast.schedule.policy_comparison import compare
    from epochcast.schedule.workload_file import with_error
    from epochcast.units import parse_seconds

    for path in (gantt, plot):
        if path is not None:
            from epochcast.surfaces import charts

            charts.check_chart_path(path)
    allowed = {"with": (True,), "without": (False,), "both": (True, False)}
    if preemption not in allowed:
        raise BadInput(f"--preemption is with, without or both, not {preemption!r}")
    every_seconds = None if every is None else parse_seconds(every, "--every", unit="min")
    if every_seconds is not None and every_seconds <= 0:
        raise BadInput(f"--every must be more than 0, got {every}")
    if not 0 <= error <= 3:
        raise BadInput(f"--error is a spread from 0 to 3, got {error:g}")
    read = _read(file, machines, seed)
    workload = with_error(read.workload, error, seed) if error else read.workload
    rules = replace(read.rules, reestimate=reestimate, seed=seed, tracking_error=1.0)
    if every_seconds is not None:
        rules = replace(rules, every_seconds=every_seconds)
    names = _policies(policy)
    tell_compiling(names)
    with progress_bar("simulating") as progress:
        answer = compare(
            workload,
            names,
            [Switches(may, may and resizing, seed) for may in allowed[preemption]],
            rules,
            bound,
            progress,
        )
    _draw(answer, workload, gantt, plot)

    def view() -> Any:
        from epochcast.surfaces import render

        return render.simulation(answer)

    with telling(read.notes):
        body = {**answer.as_dict(), "refused": [one.as_dict() for one in read.refused]}
        show(body, as_json, view, explain=explain, wide=wide)
    return tell_refused(read.refused, file)


def tell_compiling(policies: "Sequence[str]") -> None:
    """A word on a terminal where the first decision will take its time."""
    from epochcast.schedule.policies.policy_table import will_compile

    if sys.stderr.isatty() and will_compile(policies):
        sys.stderr.write("epochcast: compiling the scheduling policy (about 15 s, once)\n")


def tell_refused(refused: "Sequence[RefusedJob]", file: Path | None) -> int:
    """A line for each job that was left out; bad input where there is one."""
    for one in refused:
        where = f"{file}: " if file is not None else ""
        sys.stderr.write(f"epochcast: {where}{' '.join(one.why.split())}\n")
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


def _policies(names: str) -> list[str]:
    from epochcast.errors import UnknownName
    from epochcast.schedule.policies.policy_table import POLICIES

    if names == "all":
        return list(POLICIES)
    found = [name.strip() for name in names.split(",") if name.strip()]
    if not found:
        raise BadInput("--policy names no policy")
    for name in found:
        if name not in POLICIES:
            raise UnknownName("policy", name, POLICIES)
    return list(dict.fromkeys(found))


def _read(file: Path, machines: Path | None, seed: int) -> "ReadQueue":
    from epochcast.queues import read_queue, read_traced
    from epochcast.surfaces.cli.current_time import now

    if file.suffix.lower() == ".csv":
        if machines is None:
            raise BadInput(f"{file} is a trace: say on which machines, with --machines FILE (nodes and node_types)")
        return read_traced(file, machines, now(), seed)
    if machines is not None:
        raise BadInput(f"--machines is for a trace (.csv); {file} says its own")
    with progress_bar("forecasting") as progress:
        return read_queue(file, now(), progress=progress)


def _draw(answer: "PolicyComparison", workload: "QueueWorkload", gantt: Path | None, plot: Path | None) -> None:
    from epochcast.surfaces import charts

    if gantt is not None:
        name, outcome = list(answer.outcomes.items())[-1]
        charts.save_chart(charts.gantt(outcome, {job.id: job.deadline_seconds for job in workload.jobs}, name), gantt)
        wrote(gantt)
    if plot is not None:
        charts.save_chart(charts.policy_costs(answer), plot)
        wrote(plot)
