"""`epochcast inspect`"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcast.errors import BadInput, DoesNotFit
from epochcast.surfaces.cli.command_line import Explain, Json, Wide, check_plots, save_plot, show, wrote
from epochcast.surfaces.cli.job_flags import JOB_FLAGS, PLACE_FLAGS, JobArguments, job_command

if TYPE_CHECKING:
    from epochcast.api import Inspection

# The options that the memory of one step depends on.
_OPTIONS = (
    *(name for name, option in JOB_FLAGS.items() if option.group in ("model", "recipe", "framework")),
    *(name for name in PLACE_FLAGS if name not in ("dollars_per_gpu_hour", "gemm_seconds")),
)


@job_command(
    epilog="Example: epochcast inspect inception_naive --versus inception_reduced",
    leave_out=tuple(name for name in (*JOB_FLAGS, *PLACE_FLAGS) if name not in _OPTIONS),
    device=f"With --batch: peak memory of a training step. {PLACE_FLAGS['device'].help}",
)
def inspect(
    arguments: JobArguments,
    no_bias: Annotated[bool, typer.Option("--no-bias", help="Leave biases out of the parameter counts.")] = False,
    brief: Annotated[
        bool, typer.Option("--brief", help="Only layers with weights or matrix work, or that change the size.")
    ] = False,
    versus: Annotated[str | None, typer.Option(help="Another model, to compare the totals with.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the step's memory over time (.png, .svg, .html).")] = None,
    save: Annotated[Path | None, typer.Option(help="Write the model as a spec file.")] = None,
    explain: Explain = False,
    wide: Wide = False,
    as_json: Json = False,
) -> int:
    """List the layers of a model. Shows shapes, parameters, activations, FLOPs, bytes, receptive field."""
    from epochcast import api
    from epochcast.describe.capture.model_comparison import compare_models
    from epochcast.predict.forecast.forecast import MEMORY_KEYS

    asks_memory = arguments.options.get("device") is not None
    options = arguments.options if asks_memory else arguments.without(*arguments.read)
    batches = [name for name in ("batch", "global_batch") if options.get(name) is not None]
    wants_memory = asks_memory and bool(batches)
    if asks_memory != bool(batches):
        raise BadInput("memory needs both --device and --batch")
    if plot is not None:
        if not wants_memory:
            raise BadInput("--plot draws the memory of a step: it needs --device and --batch")
        check_plots(plot)
    shape, aux = arguments.options.get("input_shape"), arguments.options.get("aux", True)

    def inspected(reference: object) -> "Inspection":
        inspection = api.inspect(reference, input_shape=shape, aux=aux, count_bias=not no_bias)
        return inspection.brief() if brief else inspection

    model = api.find_model(arguments.model, shape, aux=aux)
    answer = inspected(model)
    body: dict[str, Any] = answer.as_dict()
    comparison = None if versus is None else compare_models(answer, inspected(versus))
    if comparison is not None:
        body["versus"] = comparison.as_dict()
    step = api.forecast(model, config=None, **arguments.options) if wants_memory else None
    if step is not None:
        forecast = step.as_dict()
        remedies = [remedy.as_dict() for remedy in step.details.remedies()]
        body["memory"] = {**{key: forecast[key] for key in MEMORY_KEYS}, "would_fit": remedies}
    save_plot(plot, lambda charts: charts.memory_timeline(step))
    if save is not None:
        from epochcast.describe.capture.spec import save_spec

        save_spec(model, save)
        wrote(save)

    def view() -> Any:
        from rich.console import Group

        from epochcast.surfaces import render

        pieces = [render.inspection(answer)]
        pieces += [] if comparison is None else [render.comparison(comparison)]
        pieces += [] if step is None else [render.memory(step)]
        return Group(*pieces)

    show(body, as_json, view, explain=explain, wide=wide)
    return DoesNotFit.exit_code if step is not None and not step.fits else 0
