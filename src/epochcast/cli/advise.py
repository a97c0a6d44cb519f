"""`epochcast advise`"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcast.cli.app import Json, app, show
from epochcast.cli.words import CPUS, DEVICE, INPUT, LOADER_SECONDS, MODEL, NO_AUX
from epochcast.errors import BadInput, DoesNotFit, UnknownName

if TYPE_CHECKING:
    from epochcast.bench.loader import LoaderMeasurement

_EXAMPLE = "Example: epochcast advise resnet50 --device V100 --host-memory 128GiB --cpus 16 --loader-seconds 8ms"
RULES = ("exact", "thesis")


@app.command(epilog=_EXAMPLE)
def advise(
    model: Annotated[str, typer.Argument(help=MODEL)],
    device: Annotated[str, typer.Option(help=DEVICE)],
    host_memory: Annotated[str | None, typer.Option(help="Memory of a box, like 128GiB.")] = None,
    cpus: Annotated[float | None, typer.Option(help=CPUS)] = None,
    disk: Annotated[str | None, typer.Option(help="What a box reads from disk, like 500MB/s; no limit.")] = None,
    dataset: Annotated[
        str | None, typer.Option(help="A name of `epochcast datasets`: how much is read and cached.")
    ] = None,
    loader_seconds: Annotated[str | None, typer.Option(help=LOADER_SECONDS)] = None,
    loader: Annotated[
        str | None, typer.Option(help="Your loader, measured here: pkg.module:make_loader or file.py:make_loader.")
    ] = None,
    probe_loader: Annotated[
        bool, typer.Option("--probe-loader", help="Measure the loader here: yours, or one that decodes JPEG files.")
    ] = False,
    probe: Annotated[
        bool, typer.Option("--probe", help="Run the real step at two batches and solve the thesis' equations.")
    ] = False,
    probe_batches: Annotated[str, typer.Option(help="The two batches of --probe.")] = "10,50",
    rule: Annotated[str, typer.Option(help="exact, or thesis: the thesis' formulas beside it.")] = "exact",
    gpus: Annotated[int, typer.Option(help="GPUs in all.")] = 1,
    nodes: Annotated[int, typer.Option(help="Boxes they sit in.")] = 1,
    strategy: Annotated[str | None, typer.Option(help="As for forecast; ddp for several GPUs.")] = None,
    link: Annotated[str | None, typer.Option(help="What joins the boxes, like ethernet_100g.")] = None,
    precision: Annotated[str, typer.Option(help="fp32, tf32, amp (amp_fp16), amp_bf16, fp16, bf16.")] = "fp32",
    optimizer: Annotated[str, typer.Option(help="sgd, momentum, adam, adamw, …")] = "sgd",
    freeze: Annotated[list[str] | None, typer.Option(help="Glob of parameters not trained; may be repeated.")] = None,
    attention: Annotated[str, typer.Option(help="flash or eager.")] = "flash",
    channels_last: Annotated[bool, typer.Option("--channels-last", help="NHWC memory layout.")] = False,
    max_batch: Annotated[int | None, typer.Option(help="No larger batch than this per GPU.")] = None,
    input_shape: Annotated[str | None, typer.Option("--input", help=INPUT)] = None,
    no_aux: Annotated[bool, typer.Option("--no-aux", help=NO_AUX)] = False,
    as_json: Json = False,
) -> int:
    """Largest and best batch, loader workers and prefetch, and what binds."""
    from epochcast import api
    from epochcast.units import parse_bytes, parse_rate, parse_seconds_per_sample, parse_shape

    if rule not in RULES:
        raise UnknownName("rule", rule, RULES)
    if loader_seconds is not None and (loader is not None or probe_loader):
        raise BadInput("the loader is either told (--loader-seconds) or measured (--loader, --probe-loader), not both")
    if max_batch is not None and max_batch < 1:
        raise BadInput(f"--max-batch must be at least 1, got {max_batch}")
    batches = _two(probe_batches)
    shape = None if input_shape is None else parse_shape(input_shape)
    told = None if loader_seconds is None else parse_seconds_per_sample(loader_seconds)
    measured = _measured(loader) if loader is not None or probe_loader else None
    answer = api.advise(
        model,
        device=device,
        gpus=gpus,
        nodes=nodes,
        strategy=strategy,
        link=link,
        precision=precision,
        optimizer=optimizer,
        freeze=freeze or (),
        attention=attention,
        channels_last=channels_last,
        dataset=dataset,
        cpus=cpus,
        host_memory_bytes=None if host_memory is None else parse_bytes(host_memory),
        disk_bytes_per_second=None if disk is None else parse_rate(disk),
        loader_seconds=told,
        loader=None if measured is None else measured.service(),
        most_batch=max_batch,
        with_thesis=rule == "thesis",
        input_shape=shape,
        aux=not no_aux,
    )
    body: dict[str, Any] = answer.as_dict()
    memory_bytes = answer.question.placement.device.memory_bytes
    if measured is not None:
        body["loader"] = {**body.get("loader", {}), **measured.as_dict()}
    if probe:
        body["probe"] = _probed(model, shape, optimizer, batches, memory_bytes)

    def view() -> Any:
        from rich.console import Group

        from epochcast import render

        pieces = [render.advice(answer)]
        pieces += [] if measured is None else [render.loader(measured.as_dict())]
        pieces += [render.probe(body["probe"], memory_bytes)] if probe else []
        return Group(*pieces)

    show(body, as_json, view)
    return 0 if answer.fits else DoesNotFit.exit_code


def _two(text: str) -> tuple[int, int]:
    pieces = [piece.strip() for piece in text.split(",")]
    if len(pieces) != 2 or not all(piece.isdecimal() for piece in pieces):
        raise BadInput(f"{text!r} is not two batches; write them like 10,50")
    return int(pieces[0]), int(pieces[1])


def _measured(reference: str | None) -> "LoaderMeasurement":
    from epochcast.bench.loader import find_loader, measure_loader

    return measure_loader(None if reference is None else find_loader(reference), name=reference)


def _probed(
    model: str, shape: tuple[int, ...] | None, optimizer: str, batches: tuple[int, int], memory_bytes: float
) -> dict[str, object]:
    from epochcast.bench.probe import probe_memory

    return probe_memory(model, shape, optimizer=optimizer, batches=batches).as_dict(memory_bytes)
