"""`epochcast scaling`"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from epochcast.decide.scaling_request import ScalingRequest
from epochcast.errors import DoesNotFit
from epochcast.surfaces.cli.command_line import Explain, Json, Wide, check_plots, save_plot, show
from epochcast.surfaces.cli.evaluate_command import progress_bar
from epochcast.surfaces.cli.job_flags import PLACE_FLAGS, JobArguments, job_command
from epochcast.surfaces.cli.price_age import price_age


@job_command(
    epilog="Example: epochcast scaling resnet50 --device V100 --gpus 1,2,4,8,16 --batch 64 --regime both --plot s.png",
    needs=(("device",), ("batch", "global_batch")),
    requests=(ScalingRequest,),
    batch="Samples per GPU and step at the smallest number of GPUs.",
    strategy=f"{PLACE_FLAGS['strategy'].help} Without dp, the remaining GPUs are data parallel.",
)
def scaling(
    arguments: JobArguments,
    request: ScalingRequest,
    profile: Annotated[Path | None, typer.Option(help="Use this profile, written by `epochcast fit`.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the charts: .png, .svg, .html.")] = None,
    explain: Explain = False,
    wide: Wide = False,
    as_json: Json = False,
) -> int:
    """Compare numbers of GPUs: time, cost, efficiency."""
    from epochcast import api

    check_plots(plot)
    with progress_bar("forecasting") as progress:
        answer = api.scaling(
            arguments.model,
            replace(request, global_batch=arguments.options.get("global_batch")),
            **arguments.without("global_batch"),
            config=None,
            profile=profile,
            progress=progress,
        )
    save_plot(plot, lambda charts: charts.scaling(answer))
    ages = price_age(row.forecast.price_source for row in answer.rows)
    show({**answer.as_dict(), **ages}, as_json, answer.__rich__, explain=explain, wide=wide)
    return 0 if all(row.forecast.fits for row in answer.rows) else DoesNotFit.exit_code
