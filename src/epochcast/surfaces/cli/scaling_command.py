"""`epochcast scaling`"""

from pathlib import Path
from typing import Annotated, Any

import typer

from epochcast.errors import DoesNotFit
from epochcast.surfaces.cli.command_line import Explain, Json, Wide, show, wrote
from epochcast.surfaces.cli.evaluate_command import progress_bar
from epochcast.surfaces.cli.job_flags import PLACE_FLAGS, JobArguments, job_command


@job_command(
    epilog="Example: epochcast scaling resnet50 --device V100 --gpus 1,2,4,8,16 --batch 64 --regime both --plot s.png",
    needs=(("device",), ("batch", "global_batch")),
    leave_out=("gpus", "nodes", "allreduce"),
    batch="Samples per GPU and step at the smallest number of GPUs.",
    global_batch="The batch that strong scaling keeps; default: that of the smallest number of GPUs.",
    strategy=f"{PLACE_FLAGS['strategy'].help} Without dp, the remaining GPUs are data parallel.",
)
def scaling(
    arguments: JobArguments,
    gpus: Annotated[str, typer.Option(help="Numbers of GPUs, like 1,2,4,8,16.")],
    regime: Annotated[str, typer.Option(help="weak (same batch per GPU), strong (same global batch) or both.")] = (
        "weak"
    ),
    allreduce: Annotated[str | None, typer.Option(help="All-reduce algorithms to compare, like nccl,ring.")] = None,
    nodes: Annotated[int | None, typer.Option(help="Nodes, for every number of GPUs.")] = None,
    gpus_per_node: Annotated[int | None, typer.Option(help="GPUs per node (default: 8).")] = None,
    profile: Annotated[Path | None, typer.Option(help="Use this profile, written by `epochcast fit`.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the charts: .png, .svg, .html.")] = None,
    explain: Explain = False,
    wide: Wide = False,
    as_json: Json = False,
) -> int:
    """Compare numbers of GPUs: time, cost, efficiency."""
    from epochcast import api
    from epochcast.decide.scaling import counts_in, names_in

    if plot is not None:
        from epochcast.surfaces import charts

        charts.check_chart_path(plot)
    with progress_bar("forecasting") as progress:
        answer = api.scaling(
            arguments.model,
            **arguments.options,
            config=None,
            gpus=counts_in(gpus),
            regime=regime,
            allreduce=names_in(allreduce),
            nodes=nodes,
            gpus_per_node=gpus_per_node,
            profile=profile,
            progress=progress,
        )
    if plot is not None:
        from epochcast.surfaces import charts

        charts.save_chart(charts.scaling(answer), plot)
        wrote(plot)

    def view() -> Any:
        from epochcast.surfaces import render

        return render.scaling(answer)

    show(answer.as_dict(), as_json, view, explain=explain, wide=wide)
    return 0 if all(row.forecast.fits for row in answer.rows) else DoesNotFit.exit_code
