"""`epochcast forecast`"""

from pathlib import Path
from typing import Annotated, Any

import typer

from epochcast.cli.app import Json, app, show
from epochcast.cli.words import (
    ATTENTION,
    BATCH,
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
    strategy: Annotated[str | None, typer.Option(help=STRATEGY)] = None,
    allreduce: Annotated[str | None, typer.Option(help="The collective instead of the strategy's, like ring.")] = None,
    link: Annotated[
        str | None, typer.Option(help="What joins the boxes (or the GPUs of one box), like ethernet_100g.")
    ] = None,
    topology: Annotated[
        str | None, typer.Option(help="A box of `epochcast topologies`, whose wires count where no link is given.")
    ] = None,
    precision: Annotated[
        str, typer.Option(help="fp32, tf32, amp (amp_fp16), amp_bf16, fp16, bf16, fp64, fp8, mxfp8, nvfp4.")
    ] = "fp32",
    optimizer: Annotated[
        str,
        typer.Option(
            help="sgd, momentum, nesterov, adam, adamw, rmsprop, adagrad, adadelta, lamb, adam8bit, adamw8bit."
        ),
    ] = "sgd",
    mode: Annotated[str, typer.Option(help="training, forward or forward_backward.")] = "training",
    augment: Annotated[int, typer.Option(help="Augmented copies of each sample in a step.")] = 1,
    accumulate: Annotated[int, typer.Option(help="Forward and backward passes per update.")] = 1,
    uneven: Annotated[str | None, typer.Option(help=UNEVEN)] = None,
    freeze: Annotated[list[str] | None, typer.Option(help="Glob of parameters not trained; may be repeated.")] = None,
    price: Annotated[str | None, typer.Option(help="Dollars per GPU-hour instead of the catalogue's.")] = None,
    input_shape: Annotated[str | None, typer.Option("--input", help=INPUT)] = None,
    no_aux: Annotated[bool, typer.Option("--no-aux", help=NO_AUX)] = False,
    attention: Annotated[str, typer.Option(help=ATTENTION)] = "flash",
    channels_last: Annotated[bool, typer.Option("--channels-last", help="NHWC memory layout.")] = False,
    framework: Annotated[str, typer.Option(help="pytorch or tensorflow (Keras).")] = "pytorch",
    update_style: Annotated[str, typer.Option(help=UPDATE_STYLE)] = "foreach",
    checkpointing: Annotated[bool, typer.Option("--checkpointing", help=CHECKPOINTING)] = False,
    lora: Annotated[int, typer.Option(help="Rank of LoRA: low-rank updates are trained, the network is frozen.")] = 0,
    lora_target: Annotated[
        list[str] | None, typer.Option(help="Last name of layers LoRA stands beside, like q_proj; may be repeated.")
    ] = None,
    four_bit: Annotated[bool, typer.Option("--four-bit", help="Frozen weights in four bits (QLoRA).")] = False,
    keep_gradients: Annotated[
        bool, typer.Option("--keep-gradients", help="Gradients are zeroed between steps, not dropped.")
    ] = False,
    loader_seconds: Annotated[str | None, typer.Option(help=LOADER_SECONDS)] = None,
    workers: Annotated[int | None, typer.Option(help="Loader workers per GPU; one per idle processor.")] = None,
    prefetch: Annotated[int, typer.Option(help="Batches ahead of each worker.")] = 2,
    cpus: Annotated[float | None, typer.Option(help=CPUS)] = None,
    profile: Annotated[Path | None, typer.Option(help="A file of `epochcast fit` to answer with.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Where the time goes, by layer and class of op.")] = False,
    as_json: Json = False,
) -> int:
    """Step, epoch and job time, memory and dollars of a training job."""
    from epochcast import api
    from epochcast.units import parse_dollars_per_hour, parse_seconds_per_sample, parse_shape, parse_uneven

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
        allreduce=allreduce,
        link=link,
        topology=topology,
        precision=precision,
        optimizer=optimizer,
        mode=mode,
        augment=augment,
        accumulate=accumulate,
        uneven=0.0 if uneven is None else parse_uneven(uneven),
        freeze=freeze or (),
        dollars_per_gpu_hour=None if price is None else parse_dollars_per_hour(price),
        input_shape=None if input_shape is None else parse_shape(input_shape),
        aux=not no_aux,
        attention=attention,
        channels_last=channels_last,
        framework=framework,
        update_style=update_style,
        checkpointing=checkpointing,
        lora=lora,
        lora_targets=lora_target or (),
        four_bit=four_bit,
        set_to_none=not keep_gradients,
        loader_seconds=None if loader_seconds is None else parse_seconds_per_sample(loader_seconds),
        workers=workers,
        prefetch=prefetch,
        cpus=cpus,
        profile=profile,
    )
    body = answer.as_dict()
    if explain and as_json:
        from epochcast.forecasting.explain import as_dict

        body["explain"] = as_dict(answer)

    def view() -> Any:
        from epochcast import render

        return render.forecast(answer, explain=explain)

    show(body, as_json, view)
    return 0 if answer.fits else DoesNotFit.exit_code
