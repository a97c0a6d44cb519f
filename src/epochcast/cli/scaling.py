"""`epochcast scaling`"""

from pathlib import Path
from typing import Annotated, Any

import typer

from epochcast.cli.app import Json, show
from epochcast.cli.evaluate import progress_bar
from epochcast.cli.job_options import PLACE_FLAGS, Asked, job_command, missing
from epochcast.errors import DoesNotFit


@job_command(
    epilog="Example: epochcast scaling resnet50 --device V100 --gpus 1,2,4,8,16 --batch 64 --regime both --plot s.png",
    needs=("device",),
    leave_out=("gpus", "nodes", "allreduce"),
    batch="Samples per GPU and step at the least number of GPUs.",
    global_batch="What strong scaling keeps, instead of the batch of the least number.",
    strategy=f"{PLACE_FLAGS['strategy'].help} Without dp, it is what GPUs are left for.",
)
def scaling(
    asked: Asked,
    gpus: Annotated[str, typer.Option(help="Numbers of GPUs, like 1,2,4,8,16.")],
    regime: Annotated[str, typer.Option(help="weak (batch per GPU kept), strong (batch of the job kept) or both.")] = (
        "weak"
    ),
    allreduce: Annotated[str | None, typer.Option(help="Collectives side by side, like nccl,ring.")] = None,
    nodes: Annotated[int | None, typer.Option(help="Boxes, whatever the number of GPUs.")] = None,
    gpus_per_node: Annotated[int | None, typer.Option(help="GPUs that fit in a box (default: 8).")] = None,
    profile: Annotated[Path | None, typer.Option(help="A file of `epochcast fit` to answer with.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the charts: .png, .svg, .html.")] = None,
    as_json: Json = False,
) -> int:
    """Throughput, time, cost and efficiency against the number of GPUs."""
    if asked.options.get("batch") is None and asked.options.get("global_batch") is None:
        raise missing("option '--batch'", scaling)
    from epochcast import api
    from epochcast.forecasting.scaling import counts_in, names_in

    if plot is not None:
        from epochcast import charts

        charts.check_chart_path(plot)
    with progress_bar("forecasting") as progress:
        answer = api.scaling(
            asked.model,
            **asked.options,
            gpus=counts_in(gpus),
            regime=regime,
            allreduce=names_in(allreduce),
            nodes=nodes,
            gpus_per_node=gpus_per_node,
            profile=profile,
            progress=progress,
        )
    if plot is not None:
        from epochcast import charts

        charts.save_chart(charts.scaling(answer), plot)

    def view() -> Any:
        from epochcast import render

        return render.scaling(answer)

    show(answer.as_dict(), as_json, view)
    return 0 if all(row.forecast.fits for row in answer.rows) else DoesNotFit.exit_code
