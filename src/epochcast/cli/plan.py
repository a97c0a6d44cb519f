"""`epochcast plan`"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcast.cli.app import Json, show, wrote
from epochcast.cli.evaluate import progress_bar
from epochcast.cli.hand_over import HandOver, Image, Kueue, Queue, Ray, Run, SkyPilot, Slurm
from epochcast.cli.job_options import PLACE_FLAGS, JobArguments, job_command
from epochcast.errors import BadInput, DoesNotFit, OverLimit

if TYPE_CHECKING:
    from epochcast.forecasting.job import Job


@job_command(
    epilog=(
        "Example: epochcast plan resnet50 --dataset imagenet-1k --epochs 90 --batch 1024 --precision amp --deadline 6h"
    ),
    leave_out=("global_batch",),
    with_place=False,
    batch="Samples per step over all GPUs; without it, the largest power of two each GPU holds.",
)
def plan(
    arguments: JobArguments,
    deadline: Annotated[
        str | None, typer.Option(help="Choose the cheapest that finishes in this time, like 6h or 2d.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="Choose the fastest that costs at most this many dollars.")
    ] = None,
    clouds: Annotated[
        str | None, typer.Option(help="Only these clouds, like aws,gcp; in-house machines are offered only if named.")
    ] = None,
    devices: Annotated[str | None, typer.Option(help="Only these devices, like A100,H100.")] = None,
    gpus: Annotated[str, typer.Option(help="Numbers of GPUs, in whole machines of one kind.")] = "1,2,4,8,16",
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{PLACE_FLAGS['strategy'].help} Names may be listed, like ddp,zero3; the option may be repeated."
        ),
    ] = None,
    profile: Annotated[Path | None, typer.Option(help="Forecast with this file of `epochcast fit`.")] = None,
    slurm: Slurm = False,
    skypilot: SkyPilot = False,
    kueue: Kueue = False,
    ray: Ray = False,
    command: Run = None,
    queue: Queue = None,
    image: Image = None,
    plot: Annotated[Path | None, typer.Option(help="Draw cost against time: .png, .svg, .html.")] = None,
    as_json: Json = False,
) -> int:
    """What to rent: the time-cost frontier, the cheapest by a deadline, the fastest within a budget."""
    from epochcast import api
    from epochcast.forecasting.scaling import counts_in, names_in
    from epochcast.planning.search import strategies_in
    from epochcast.units import parse_seconds

    if budget is not None and not 0 < budget < float("inf"):
        raise BadInput(f"--budget must be a number of dollars above 0, got {budget:g}")
    if plot is not None:
        from epochcast import charts

        charts.check_chart_path(plot)
    with progress_bar("planning") as progress:
        answer = api.plan(
            _job(arguments),
            deadline_seconds=None if deadline is None else parse_seconds(deadline),
            budget_dollars=budget,
            clouds=names_in(clouds),
            devices=names_in(devices),
            gpus=counts_in(gpus),
            strategies=strategies_in(strategy or ()),
            profile=profile,
            progress=progress,
        )
    if plot is not None and answer.fits:
        from epochcast import charts

        charts.save_chart(charts.plan(answer), plot)
        wrote(plot)

    def view() -> Any:
        from epochcast import render

        return render.plan(answer)

    wanted = HandOver(slurm=slurm, skypilot=skypilot, kueue=kueue, ray=ray, command=command, queue=queue, image=image)
    texts = wanted.of_plan(answer)
    show({**answer.as_dict(), **texts}, as_json, view, as_text="\n".join(texts.values()) or None)
    if not answer.fits:
        return DoesNotFit.exit_code
    return 0 if answer.is_within_limits else OverLimit.exit_code


def _job(arguments: JobArguments) -> "Job":
    """The job. A batch on the command line is over all GPUs; one in the job file may be per GPU."""
    from epochcast.forecasting.job import Job

    batch = {"global_batch" if "batch" in arguments.typed else "batch": arguments.options.get("batch")}
    return Job(arguments.model, **{**batch, **arguments.without("batch")})
