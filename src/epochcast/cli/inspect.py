"""`epochcast inspect`"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcast.cli.app import Json, app, show
from epochcast.cli.words import BATCH, DEVICE, INPUT, MODEL, NO_AUX
from epochcast.errors import BadInput, DoesNotFit

if TYPE_CHECKING:
    from epochcast.api import Forecast, Inspection

_MEMORY = (
    "device",
    "batch_per_gpu",
    "peak_bytes",
    "peak_breakdown",
    "peak_op",
    "allocated_bytes",
    "reserved_bytes",
    "memory_bytes",
    "fits",
    "would_fit",
)


@app.command(epilog="Example: epochcast inspect inception_naive --versus inception_reduced")
def inspect(
    model: Annotated[str, typer.Argument(help=MODEL)],
    no_bias: Annotated[bool, typer.Option("--no-bias", help="Leave biases out of the parameter counts.")] = False,
    brief: Annotated[
        bool, typer.Option("--brief", help="Only layers with weights or matrix work, or that change the size.")
    ] = False,
    versus: Annotated[str | None, typer.Option(help="Another model, to compare the totals with.")] = None,
    device: Annotated[str | None, typer.Option(help=f"With --batch: peak memory of a training step. {DEVICE}")] = None,
    batch: Annotated[int | None, typer.Option(help=BATCH)] = None,
    optimizer: Annotated[str, typer.Option(help="Of the step whose memory is asked for.")] = "sgd",
    precision: Annotated[str, typer.Option(help="Of the step whose memory is asked for.")] = "fp32",
    checkpointing: Annotated[bool, typer.Option("--checkpointing", help="Every block runs again in backward.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the step's memory over time (.png, .svg, .html).")] = None,
    input_shape: Annotated[str | None, typer.Option("--input", help=INPUT)] = None,
    no_aux: Annotated[bool, typer.Option("--no-aux", help=NO_AUX)] = False,
    save: Annotated[Path | None, typer.Option(help="Write the model as a spec file.")] = None,
    as_json: Json = False,
) -> int:
    """Layers of a model: shapes, parameters, activations, flops, bytes, receptive field."""
    from epochcast import api
    from epochcast.capture.comparison import Comparison
    from epochcast.units import parse_shape

    if (device is None) != (batch is None):
        raise BadInput("memory needs both --device and --batch")
    if plot is not None:
        if device is None:
            raise BadInput("--plot draws the memory of a step: it needs --device and --batch")
        from epochcast.charts import check_chart_path

        check_chart_path(plot)
    shape = None if input_shape is None else parse_shape(input_shape)

    def look(reference: object) -> "Inspection":
        seen = api.inspect(reference, input_shape=shape, aux=not no_aux, count_bias=not no_bias)
        return seen.brief() if brief else seen

    found = api.find_model(model, shape, aux=not no_aux)
    answer = look(found)
    body: dict[str, Any] = answer.as_dict()
    compared = None if versus is None else Comparison(answer, look(versus))
    if compared is not None:
        body["versus"] = compared.as_dict()
    job = None if device is None or batch is None else _job(found, device, batch, optimizer, precision, checkpointing)
    if job is not None:
        whole = job.as_dict()
        body["memory"] = {key: whole[key] for key in _MEMORY}
    if plot is not None and job is not None:
        from epochcast.charts import memory_timeline, save_chart

        save_chart(memory_timeline(job), plot)
    if save is not None:
        from epochcast.capture.spec import save_spec

        save_spec(found, save)

    def view() -> Any:
        from rich.console import Group

        from epochcast import render

        pieces = [render.inspection(answer)]
        pieces += [] if compared is None else [render.comparison(compared)]
        pieces += [] if job is None else [render.memory(job)]
        return Group(*pieces)

    show(body, as_json, view)
    return DoesNotFit.exit_code if job is not None and not job.fits else 0


def _job(model: object, device: str, batch: int, optimizer: str, precision: str, checkpointing: bool) -> "Forecast":
    from epochcast import api

    return api.forecast(
        model, device=device, batch=batch, optimizer=optimizer, precision=precision, checkpointing=checkpointing
    )
