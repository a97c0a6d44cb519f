"""`epochcast plan`"""

from pathlib import Path
from typing import Annotated, Any

import typer

from epochcast.cli.app import Json, app, show
from epochcast.cli.evaluate import progress_bar
from epochcast.cli.words import INPUT, MODEL, NO_AUX, STRATEGY
from epochcast.errors import DoesNotFit, OverLimit

_EXAMPLE = (
    "Example: epochcast plan resnet50 --dataset imagenet-1k --epochs 90 --batch 1024 --precision amp --deadline 6h"
)


@app.command(epilog=_EXAMPLE)
def plan(
    model: Annotated[str, typer.Argument(help=MODEL)],
    dataset: Annotated[
        str | None, typer.Option(help="A name of `epochcast datasets`: its samples are counted.")
    ] = None,
    samples: Annotated[int | None, typer.Option(help="Samples per epoch.")] = None,
    epochs: Annotated[int, typer.Option(help="Passes over the data.")] = 1,
    batch: Annotated[
        int | None,
        typer.Option(help="Samples per step over all GPUs; without it, the largest power of two each GPU holds."),
    ] = None,
    deadline: Annotated[
        str | None, typer.Option(help="Choose the cheapest that is done by then, like 6h or 2d.")
    ] = None,
    budget: Annotated[float | None, typer.Option(help="Choose the fastest for so many dollars.")] = None,
    clouds: Annotated[
        str | None, typer.Option(help="Of these only, like aws,gcp; in-house boxes are offered by name alone.")
    ] = None,
    devices: Annotated[str | None, typer.Option(help="On these only, like A100,H100.")] = None,
    gpus: Annotated[str, typer.Option(help="Numbers of GPUs, in whole boxes of one kind.")] = "1,2,4,8,16",
    strategy: Annotated[
        list[str] | None,
        typer.Option(help=f"{STRATEGY} Names may be listed, like ddp,zero3; the option may be repeated."),
    ] = None,
    precision: Annotated[
        str, typer.Option(help="fp32, tf32, amp (amp_fp16), amp_bf16, fp16, bf16, fp64, fp8, mxfp8, nvfp4.")
    ] = "fp32",
    optimizer: Annotated[str, typer.Option(help="sgd, momentum, adam, adamw, …")] = "sgd",
    accumulate: Annotated[int, typer.Option(help="Forward and backward passes (micro-batches) per update.")] = 1,
    freeze: Annotated[list[str] | None, typer.Option(help="Glob of parameters not trained; may be repeated.")] = None,
    channels_last: Annotated[bool, typer.Option("--channels-last", help="NHWC memory layout.")] = False,
    checkpointing: Annotated[bool, typer.Option("--checkpointing", help="Every block runs again in backward.")] = False,
    input_shape: Annotated[str | None, typer.Option("--input", help=INPUT)] = None,
    no_aux: Annotated[bool, typer.Option("--no-aux", help=NO_AUX)] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw cost against time: .png, .svg, .html.")] = None,
    as_json: Json = False,
) -> int:
    """What to rent: the time-cost frontier of offers, the cheapest by a deadline, the fastest under a budget."""
    from epochcast import api
    from epochcast.forecasting.scaling import counts_in, names_in
    from epochcast.planning.search import strategies_in
    from epochcast.units import parse_seconds, parse_shape

    if plot is not None:
        from epochcast import charts

        charts.check_chart_path(plot)
    with progress_bar("planning") as progress:
        answer = api.plan(
            model,
            dataset=dataset,
            samples=samples,
            epochs=epochs,
            batch=batch,
            deadline_seconds=None if deadline is None else parse_seconds(deadline),
            budget_dollars=budget,
            clouds=names_in(clouds),
            devices=names_in(devices),
            gpus=counts_in(gpus),
            strategies=strategies_in(strategy or ()),
            precision=precision,
            optimizer=optimizer,
            accumulate=accumulate,
            freeze=tuple(freeze or ()),
            channels_last=channels_last,
            checkpointing=checkpointing,
            input_shape=None if input_shape is None else parse_shape(input_shape),
            aux=not no_aux,
            progress=progress,
        )
    if plot is not None and answer.fits:
        from epochcast import charts

        charts.save_chart(charts.plan(answer), plot)

    def view() -> Any:
        from epochcast import render

        return render.plan(answer)

    show(answer.as_dict(), as_json, view)
    if not answer.fits:
        return DoesNotFit.exit_code
    return 0 if answer.is_within_limits else OverLimit.exit_code
