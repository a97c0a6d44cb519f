"""`epochcast plan`"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from epochcast.decide.handover.handover_request import HandoverRequest
from epochcast.decide.plan.plan_request import PlanRequest
from epochcast.errors import DoesNotFit, OverLimit
from epochcast.surfaces.cli.command_line import Explain, Json, Wide, check_plots, save_plot, show
from epochcast.surfaces.cli.evaluate_command import progress_bar
from epochcast.surfaces.cli.job_flags import JobArguments, job_command


def until_deadline(text: str) -> float:
    """Seconds from now until a deadline as people say it."""
    from epochcast.base.current_time import now
    from epochcast.decide.plan.deadline import deadline_seconds

    return deadline_seconds(text, now())


@job_command(
    epilog=(
        "Example: epochcast plan resnet50 --dataset imagenet-1k --epochs 90 --batch 1024 --precision amp --deadline 6h"
    ),
    leave_out=("global_batch",),
    with_place=False,
    requests=(PlanRequest, HandoverRequest),
    parsers={"deadline_seconds": until_deadline},
    deadline_seconds="Choose the cheapest that is expected to finish by then: 6h, 'Friday 18:00', 2026-11-20T18:00.",
)
def plan(
    arguments: JobArguments,
    request: PlanRequest,
    handover: HandoverRequest,
    profile: Annotated[Path | None, typer.Option(help="Use this profile, written by `epochcast fit`.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw cost against time: .png, .svg, .html.")] = None,
    show_all: Annotated[
        bool,
        typer.Option(
            "--all", help="Show every offer of these GPUs [default: at most 8 rows, one per GPU type and count]."
        ),
    ] = False,
    explain: Explain = False,
    wide: Wide = False,
    as_json: Json = False,
) -> int:
    """Choose what to rent, by deadline or budget: a recommendation, then the time-cost frontier."""
    from epochcast import api
    from epochcast.base.current_time import now
    from epochcast.predict.forecast.job import Job

    check_plots(plot)
    options = arguments.options
    if "batch" in arguments.typed or request.has_policy:  # otherwise that of the job file, which is per GPU
        request, options = replace(request, batch=options.get("batch")), arguments.without("batch")
    with progress_bar("planning") as progress:
        answer = api.plan(
            Job(arguments.model, **options), request, today=now().date(), profile=profile, progress=progress
        )
    save_plot(plot if answer.fits else None, lambda charts: charts.plan(answer))

    def view() -> Any:
        from epochcast.surfaces import render

        return render.plan(answer, all_rows=show_all, explain=explain)

    texts: dict[str, str] = {}
    if handover:
        from epochcast.decide.handover.handover_files import plan_files

        texts = plan_files(answer, handover)
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
