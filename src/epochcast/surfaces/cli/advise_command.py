"""`epochcast advise`"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcast.decide.advise.advise_request import AdviseRequest
from epochcast.errors import BadInput, DoesNotFit
from epochcast.predict.forecast.post_training_options import SFT
from epochcast.surfaces.cli.command_line import Explain, Json, Wide, show
from epochcast.surfaces.cli.job_flags import JobArguments, job_command

if TYPE_CHECKING:
    from epochcast.measure.bench.loader_bench import LoaderMeasurement
    from epochcast.measure.bench.memory_probe import ProbeAnswer
    from epochcast.predict.forecast.job import Job


@job_command(
    epilog="Example: epochcast advise resnet50 --device V100 --host-memory 128GiB --cpus 16 --loader-seconds 8ms",
    needs=(("device",),),
    leave_out=("batch", "global_batch", "workers", "prefetch"),
    requests=(AdviseRequest,),
    dataset="A name of `epochcast datasets`: how much is read and cached.",
)
def advise(
    arguments: JobArguments,
    request: AdviseRequest,
    loader: Annotated[
        str | None,
        typer.Option(help="Measure your own loader on this host: pkg.module:make_loader or file.py:make_loader."),
    ] = None,
    probe_loader: Annotated[
        bool,
        typer.Option("--probe-loader", help="Measure a loader on this host: --loader, or one that decodes JPEG files."),
    ] = False,
    probe: Annotated[
        bool, typer.Option("--probe", help="Run real steps at two batches, and solve the thesis' memory equations.")
    ] = False,
    probe_batches: Annotated[str, typer.Option(help="The two batches of --probe.")] = "10,50",
    explain: Explain = False,
    wide: Wide = False,
    as_json: Json = False,
) -> int:
    """Recommend a batch size and data loader workers, or with --algorithm how GPUs are shared. Names the bottleneck."""
    from epochcast import api

    if "loader_seconds" in arguments.typed and (loader is not None or probe_loader):
        raise BadInput(
            "give the loader's time (--loader-seconds) or have it measured (--loader, --probe-loader), not both"
        )
    if arguments.options.get("algorithm", SFT) != SFT:
        return _show_placement(arguments, as_json)
    batches = _two_batches(probe_batches)
    measured_loader = _measured_loader(loader) if loader is not None or probe_loader else None
    answer = api.advise(
        arguments.model,
        request=request,
        loader=None if measured_loader is None else measured_loader.service(),
        config=None,
        **arguments.options,
    )
    body: dict[str, Any] = answer.as_dict()
    memory_bytes = answer.problem.placement.device.memory_bytes
    if measured_loader is not None:
        body["loader"] = {**body.get("loader", {}), **measured_loader.as_dict()}
    probed = _probed(arguments.model, answer.problem.job, batches, memory_bytes) if probe else None
    if probed is not None:
        body["probe"] = probed.as_dict()

    def view() -> Any:
        from rich.console import Group

        from epochcast.surfaces import render

        pieces = [render.advice(answer)]
        pieces += [] if measured_loader is None else [render.loader(measured_loader.as_dict())]
        pieces += [] if probed is None else [render.probe(probed)]
        return Group(*pieces)

    show(body, as_json, view, explain=explain, wide=wide)
    return 0 if answer.fits else DoesNotFit.exit_code


def _show_placement(arguments: JobArguments, as_json: bool) -> int:
    """How post-training shares its GPUs."""
    from epochcast import api

    answer = api.advise_placement(arguments.model, config=None, **arguments.options)

    def view() -> Any:
        from epochcast.surfaces import render

        return render.placement_advice(answer)

    show(answer.as_dict(), as_json, view)
    return 0 if answer.fits else DoesNotFit.exit_code


def _two_batches(text: str) -> tuple[int, int]:
    pieces = [piece.strip() for piece in text.split(",")]
    if len(pieces) != 2 or not all(piece.isdecimal() for piece in pieces):
        raise BadInput(f"{text!r} is not two batches; write two numbers, like 10,50")
    return int(pieces[0]), int(pieces[1])


def _measured_loader(reference: str | None) -> "LoaderMeasurement":
    from epochcast.measure.bench.loader_bench import measure_loader
    from epochcast.measure.bench.loader_rows import check_reference
    from epochcast.measure.bench.subprocess_bench import loader_measured_apart

    if reference is None:
        return measure_loader()
    check_reference(reference)
    return loader_measured_apart(reference)


def _probed(model: str, job: "Job", batches: tuple[int, int], memory_bytes: float) -> "ProbeAnswer":
    from epochcast.measure.bench.memory_probe import ProbeAnswer, probe_memory

    return ProbeAnswer(probe_memory(model, job.input_shape, optimizer=job.optimizer, batches=batches), memory_bytes)
