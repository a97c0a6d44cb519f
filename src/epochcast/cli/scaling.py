"""`epochcast scaling`"""

from pathlib import Path
from typing import Annotated, Any

import typer

from epochcast.cli.app import Json, app, show
from epochcast.cli.evaluate import progress_bar
from epochcast.cli.words import (
    ATTENTION,
    CHECKPOINTING,
    CPUS,
    DEVICE,
    INPUT,
    LOADER_SECONDS,
    MODEL,
    NO_AUX,
    STRATEGY,
    UNEVEN,
    UPDATE_STYLE,
)
from epochcast.errors import DoesNotFit

_EXAMPLE = "Example: epochcast scaling resnet50 --device V100 --gpus 1,2,4,8,16 --batch 64 --regime both --plot s.png"


@app.command(epilog=_EXAMPLE)
def scaling(
    model: Annotated[str, typer.Argument(help=MODEL)],
    device: Annotated[str, typer.Option(help=DEVICE)],
    gpus: Annotated[str, typer.Option(help="Numbers of GPUs, like 1,2,4,8,16.")],
    batch: Annotated[int, typer.Option(help="Samples per GPU and step at the least number of GPUs.")],
    global_batch: Annotated[
        int | None, typer.Option(help="What strong scaling keeps, instead of the batch of the least number.")
    ] = None,
    regime: Annotated[str, typer.Option(help="weak (batch per GPU kept), strong (batch of the job kept) or both.")] = (
        "weak"
    ),
    allreduce: Annotated[str | None, typer.Option(help="Collectives side by side, like nccl,ring.")] = None,
    strategy: Annotated[str | None, typer.Option(help=f"{STRATEGY} Without dp, it is what GPUs are left for.")] = None,
    nodes: Annotated[int | None, typer.Option(help="Boxes, whatever the number of GPUs.")] = None,
    gpus_per_node: Annotated[int | None, typer.Option(help="GPUs that fit in a box (default: 8).")] = None,
    link: Annotated[str | None, typer.Option(help="What joins the boxes (or the GPUs of one box).")] = None,
    topology: Annotated[str | None, typer.Option(help="A box of `epochcast topologies`, like dgx_a100.")] = None,
    dataset: Annotated[str | None, typer.Option(help="A name of `epochcast datasets`.")] = None,
    samples: Annotated[int | None, typer.Option(help="Samples per epoch.")] = None,
    epochs: Annotated[int, typer.Option(help="Passes over the data.")] = 1,
    precision: Annotated[
        str, typer.Option(help="fp32, tf32, amp (amp_fp16), amp_bf16, fp16, bf16, fp64, fp8, mxfp8, nvfp4.")
    ] = "fp32",
    optimizer: Annotated[str, typer.Option(help="sgd, momentum, adam, adamw, …")] = "sgd",
    accumulate: Annotated[int, typer.Option(help="Forward and backward passes (micro-batches) per update.")] = 1,
    checkpointing: Annotated[bool, typer.Option("--checkpointing", help=CHECKPOINTING)] = False,
    attention: Annotated[str, typer.Option(help=ATTENTION)] = "flash",
    update_style: Annotated[str, typer.Option(help=UPDATE_STYLE)] = "foreach",
    uneven: Annotated[str | None, typer.Option(help=UNEVEN)] = None,
    price: Annotated[str | None, typer.Option(help="Dollars per GPU-hour instead of the catalogue's.")] = None,
    loader_seconds: Annotated[str | None, typer.Option(help=LOADER_SECONDS)] = None,
    workers: Annotated[int | None, typer.Option(help="Loader workers per GPU.")] = None,
    cpus: Annotated[float | None, typer.Option(help=CPUS)] = None,
    input_shape: Annotated[str | None, typer.Option("--input", help=INPUT)] = None,
    no_aux: Annotated[bool, typer.Option("--no-aux", help=NO_AUX)] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the charts: .png, .svg, .html.")] = None,
    as_json: Json = False,
) -> int:
    """Throughput, time, cost and efficiency against the number of GPUs."""
    from epochcast import api
    from epochcast.forecasting.scaling import counts_in, names_in
    from epochcast.units import parse_dollars_per_hour, parse_seconds_per_sample, parse_shape, parse_uneven

    if plot is not None:
        from epochcast import charts

        charts.check_chart_path(plot)
    with progress_bar("forecasting") as progress:
        answer = api.scaling(
            model,
            device=device,
            gpus=counts_in(gpus),
            batch=batch,
            global_batch=global_batch,
            regime=regime,
            allreduce=names_in(allreduce),
            strategy=strategy,
            nodes=nodes,
            gpus_per_node=gpus_per_node,
            topology=topology,
            accumulate=accumulate,
            checkpointing=checkpointing,
            attention=attention,
            update_style=update_style,
            uneven=0.0 if uneven is None else parse_uneven(uneven),
            input_shape=None if input_shape is None else parse_shape(input_shape),
            aux=not no_aux,
            progress=progress,
            link=link,
            dataset=dataset,
            samples=samples,
            epochs=epochs,
            precision=precision,
            optimizer=optimizer,
            dollars_per_gpu_hour=None if price is None else parse_dollars_per_hour(price),
            loader_seconds=None if loader_seconds is None else parse_seconds_per_sample(loader_seconds),
            workers=workers,
            cpus=cpus,
        )
    if plot is not None:
        from epochcast import charts

        charts.save_chart(charts.scaling(answer), plot)

    def view() -> Any:
        from epochcast import render

        return render.scaling(answer)

    show(answer.as_dict(), as_json, view)
    return 0 if all(row.forecast.fits for row in answer.rows) else DoesNotFit.exit_code
