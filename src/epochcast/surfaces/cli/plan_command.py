"""`epochcast plan`"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcast.errors import BadInput, DoesNotFit, OverLimit
from epochcast.surfaces.cli.command_line import Explain, Json, Wide, show, wrote
from epochcast.surfaces.cli.evaluate_command import progress_bar
from epochcast.surfaces.cli.handover_options import HandOver, Image, Kueue, Queue, Ray, Run, SkyPilot, Slurm
from epochcast.surfaces.cli.job_flags import PLACE_FLAGS, JobArguments, job_command

if TYPE_CHECKING:
    from epochcast.decide.plan.spot import Spot
    from epochcast.predict.forecast.job import Job


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
        str | None,
        typer.Option(help="Choose the cheapest that finishes by then: 6h, 'Friday 18:00', 2026-11-20T18:00."),
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="Choose the fastest that costs at most this many dollars.")
    ] = None,
    objective: Annotated[
        str | None, typer.Option(help="What to choose: cheapest, fastest or knee (most time saved per dollar).")
    ] = None,
    most_epochs: Annotated[
        bool, typer.Option("--most-epochs", help="Find how many epochs fit in the budget or before the deadline.")
    ] = False,
    clouds: Annotated[
        str | None,
        typer.Option(help="Only these clouds, like aws,gcp; your own machines and marketplaces count only if named."),
    ] = None,
    devices: Annotated[str | None, typer.Option(help="Only these devices, like A100,H100.")] = None,
    regions: Annotated[
        str | None, typer.Option(help="Only these regions, like us-east-1,europe [default: the cheapest].")
    ] = None,
    gpus: Annotated[
        str, typer.Option(help="Numbers of GPUs, in whole machines of one kind, like 1,8 or 1-64 (powers of two).")
    ] = "1,2,4,8,16",
    any_host: Annotated[
        bool, typer.Option("--any-host", help="Include machines with few CPUs or little host memory per GPU.")
    ] = False,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{PLACE_FLAGS['strategy'].help} Names may be listed, like ddp,zero3; the option may be repeated."
        ),
    ] = None,
    batch_policy: Annotated[
        str | None,
        typer.Option(
            help="fixed (--batch is the job's), scale (--batch is each GPU's) or auto (what each GPU holds; --batch is "
            "the one the epochs are meant for)."
        ),
    ] = None,
    max_global_batch: Annotated[int | None, typer.Option(help="Upper limit of the global batch.")] = None,
    critical_batch: Annotated[
        str | None,
        typer.Option(help="Larger batches need more epochs: the critical batch, like 15k, imagenet or loss=2.6."),
    ] = None,
    what_if: Annotated[
        list[str] | None,
        typer.Option(help="Also try these settings, like precision=amp,bf16 or compile=inductor; may be repeated."),
    ] = None,
    augment_epochs: Annotated[
        str | None,
        typer.Option(
            help="Time to an accuracy: copies of each sample with the epochs that reach it, like 1:100,4:45,16:25."
        ),
    ] = None,
    spot: Annotated[
        float | None, typer.Option(help="Spot prices, with this many interruptions per hour and machine, like 0.1.")
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(help="Time to write a checkpoint on spot machines, like 30s [default: its size at 1 GB/s]."),
    ] = None,
    restart: Annotated[
        str | None, typer.Option(help="Time from a spot interruption to the next step [default: 5m].")
    ] = None,
    billing: Annotated[
        str | None, typer.Option(help="Billed by second, minute or hour [default: the cloud's].")
    ] = None,
    boot: Annotated[str, typer.Option(help="Boot time of a rented machine, like 4m; it is billed.")] = "0s",
    storage: Annotated[str | None, typer.Option(help="Storage during the job, like 500GB, at --storage-price.")] = None,
    storage_dollars: Annotated[float, typer.Option("--storage-price", help="Dollars per GB and month.")] = 0.0,
    egress: Annotated[
        str | None, typer.Option(help="Data downloaded at the end, like 20GB, at --egress-price.")
    ] = None,
    egress_dollars: Annotated[float, typer.Option("--egress-price", help="Dollars per GB.")] = 0.0,
    profile: Annotated[Path | None, typer.Option(help="Use this profile, written by `epochcast fit`.")] = None,
    slurm: Slurm = False,
    skypilot: SkyPilot = False,
    kueue: Kueue = False,
    ray: Ray = False,
    command: Run = None,
    queue: Queue = None,
    image: Image = None,
    plot: Annotated[Path | None, typer.Option(help="Draw cost against time: .png, .svg, .html.")] = None,
    show_all: Annotated[bool, typer.Option("--all", help="Show all rows [default: at most 8].")] = False,
    explain: Explain = False,
    wide: Wide = False,
    as_json: Json = False,
) -> int:
    """Choose what to rent, by deadline or budget. Shows the time-cost frontier."""
    from epochcast import api
    from epochcast.base.current_time import now
    from epochcast.decide.plan.billing import Extras
    from epochcast.decide.plan.deadline import deadline_seconds
    from epochcast.decide.plan.offers import gpu_counts
    from epochcast.decide.plan.plan_options import augment_epochs_in
    from epochcast.decide.plan.plan_search import strategies_in
    from epochcast.decide.scaling import names_in
    from epochcast.units import parse_bytes, parse_seconds

    if budget is not None and not 0 < budget < float("inf"):
        raise BadInput(f"--budget must be a number of dollars above 0, got {budget:g}")
    if plot is not None:
        from epochcast.surfaces import charts

        charts.check_chart_path(plot)
    extras = Extras(
        billing,
        parse_seconds(boot, "--boot", unit="m"),
        0.0 if storage is None else parse_bytes(storage),
        storage_dollars,
        0.0 if egress is None else parse_bytes(egress),
        egress_dollars,
    )
    taken_back = _spot(spot, checkpoint, restart)
    at = now()
    with progress_bar("planning") as progress:
        answer = api.plan(
            _job(arguments, has_policy=batch_policy is not None or max_global_batch is not None),
            batch=arguments.options.get("batch") if batch_policy or max_global_batch else None,
            deadline_seconds=None if deadline is None else deadline_seconds(deadline, at),
            budget_dollars=budget,
            objective=objective,
            most_epochs=most_epochs,
            clouds=names_in(clouds),
            devices=names_in(devices),
            regions=names_in(regions),
            gpus=gpu_counts(gpus),
            any_host=any_host,
            strategies=strategies_in(strategy or ()),
            batch_policy=batch_policy,
            max_global_batch=max_global_batch,
            critical_batch=critical_batch,
            what_if=what_if or (),
            augment_epochs=None if augment_epochs is None else dict(augment_epochs_in(augment_epochs)),
            spot=taken_back,
            extras=extras,
            today=at.date(),
            profile=profile,
            progress=progress,
        )
    if plot is not None and answer.fits:
        from epochcast.surfaces import charts

        charts.save_chart(charts.plan(answer), plot)
        wrote(plot)

    def view() -> Any:
        from epochcast.surfaces import render

        return render.plan(answer, all_rows=show_all)

    wanted = HandOver(slurm=slurm, skypilot=skypilot, kueue=kueue, ray=ray, command=command, queue=queue, image=image)
    texts = wanted.of_plan(answer)
    show(
        {**answer.as_dict(), **texts},
        as_json,
        view,
        as_text="\n".join(texts.values()) or None,
        explain=explain,
        wide=wide,
    )
    if not answer.fits and not answer.counts_epochs:
        return DoesNotFit.exit_code
    return 0 if answer.is_within_limits and answer.fits else OverLimit.exit_code


def _job(arguments: JobArguments, *, has_policy: bool) -> "Job":
    """The job. A batch on the command line is over all GPUs unless a policy says otherwise; one in the job file may be
    per GPU.
    """
    from epochcast.predict.forecast.job import Job

    if has_policy:
        return Job(arguments.model, **arguments.without("batch"))
    batch = {"global_batch" if "batch" in arguments.typed else "batch": arguments.options.get("batch")}
    return Job(arguments.model, **{**batch, **arguments.without("batch")})


def _spot(interruptions: float | None, checkpoint: str | None, restart: str | None) -> "Spot | None":
    """Interruptions as they are typed."""
    from epochcast.decide.plan.spot import RESTART_SECONDS, Spot
    from epochcast.units import parse_seconds

    if interruptions is None:
        if checkpoint is not None or restart is not None:
            raise BadInput("--checkpoint and --restart are about interruptions: give their rate with --spot, like 0.1")
        return None
    return Spot(
        interruptions,
        None if checkpoint is None else parse_seconds(checkpoint, "--checkpoint", unit="s"),
        RESTART_SECONDS if restart is None else parse_seconds(restart, "--restart", unit="m"),
    )
