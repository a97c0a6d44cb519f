"""`epochcast forecast`"""

from typing import Annotated, Any

import typer

from epochcast.cli.app import Json, app, show
from epochcast.cli.words import BATCH, DEVICE, INPUT, MODEL, NO_AUX
from epochcast.errors import DoesNotFit

_EXAMPLE = "Example: epochcast forecast resnet50 --device V100 --batch 64 --dataset imagenet-1k --epochs 90"


@app.command(epilog=_EXAMPLE)
def forecast(
    model: Annotated[str, typer.Argument(help=MODEL)],
    device: Annotated[str, typer.Option(help=DEVICE)],
    batch: Annotated[int, typer.Option(help=BATCH)],
    dataset: Annotated[
        str | None, typer.Option(help="A name of `epochcast datasets`: its samples are counted.")
    ] = None,
    samples: Annotated[int | None, typer.Option(help="Samples per epoch.")] = None,
    epochs: Annotated[int, typer.Option(help="Passes over the data.")] = 1,
    gpus: Annotated[int, typer.Option(help="GPUs in all.")] = 1,
    nodes: Annotated[int, typer.Option(help="Boxes they sit in.")] = 1,
    strategy: Annotated[
        str | None,
        typer.Option(help="ddp (default), horovod, mirrored, multi_worker_mirrored, parameter_server."),
    ] = None,
    link: Annotated[
        str | None, typer.Option(help="What joins the boxes (or the GPUs of one box), like ethernet_100g.")
    ] = None,
    precision: Annotated[str, typer.Option(help="fp32, tf32, amp (amp_fp16), amp_bf16, fp16, bf16, fp64.")] = "fp32",
    optimizer: Annotated[
        str, typer.Option(help="sgd, momentum, nesterov, adam, adamw, rmsprop, adagrad, adadelta, lamb.")
    ] = "sgd",
    mode: Annotated[str, typer.Option(help="training, forward or forward_backward.")] = "training",
    augment: Annotated[int, typer.Option(help="Augmented copies of each sample in a step.")] = 1,
    accumulate: Annotated[int, typer.Option(help="Forward and backward passes per update.")] = 1,
    freeze: Annotated[list[str] | None, typer.Option(help="Glob of parameters not trained; may be repeated.")] = None,
    price: Annotated[str | None, typer.Option(help="Dollars per GPU-hour instead of the catalogue's.")] = None,
    input_shape: Annotated[str | None, typer.Option("--input", help=INPUT)] = None,
    no_aux: Annotated[bool, typer.Option("--no-aux", help=NO_AUX)] = False,
    attention: Annotated[str, typer.Option(help="flash (one fused kernel) or eager (scores in memory).")] = "flash",
    channels_last: Annotated[bool, typer.Option("--channels-last", help="NHWC memory layout.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Where the time goes, by layer and class of op.")] = False,
    as_json: Json = False,
) -> int:
    """Step, epoch and job time, memory and dollars of a training job."""
    from epochcast import api
    from epochcast.units import parse_dollars_per_hour, parse_shape

    answer = api.forecast(
        model,
        device=device,
        batch=batch,
        dataset=dataset,
        samples=samples,
        epochs=epochs,
        gpus=gpus,
        nodes=nodes,
        strategy=strategy,
        link=link,
        precision=precision,
        optimizer=optimizer,
        mode=mode,
        augment=augment,
        accumulate=accumulate,
        freeze=freeze or (),
        dollars_per_gpu_hour=None if price is None else parse_dollars_per_hour(price),
        input_shape=None if input_shape is None else parse_shape(input_shape),
        aux=not no_aux,
        attention=attention,
        channels_last=channels_last,
    )
    body = answer.as_dict()
    if explain and as_json:
        from epochcast.forecast.explain import as_dict

        body["explain"] = as_dict(answer)

    def view() -> Any:
        from epochcast import render

        return render.forecast(answer, explain=explain)

    show(body, as_json, view)
    return 0 if answer.fits else DoesNotFit.exit_code
