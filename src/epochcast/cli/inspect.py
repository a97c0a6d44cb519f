"""`epochcast inspect`"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcast.cli.app import Json, app, show
from epochcast.cli.words import BATCH, DEVICE, INPUT, MODEL, NO_AUX
from epochcast.errors import BadInput

if TYPE_CHECKING:
    from epochcast.api import Inspection


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
    job = None if device is None or batch is None else api.forecast(found, device=device, batch=batch)
    if job is not None:
        body["memory"] = {
            key: job.as_dict()[key] for key in ("device", "batch_per_gpu", "peak_bytes", "memory_bytes", "fits")
        }
        body["memory"] |= {name: getattr(job.memory, name) for name in job.memory.__slots__}
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
    return 0
