"""`epochcast forecast`"""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from epochcast.decide.handover.handover_request import HandoverRequest
from epochcast.errors import BadInput, DoesNotFit
from epochcast.predict.forecast.generation_options import GENERATE
from epochcast.predict.forecast.post_training_options import SFT
from epochcast.surfaces.cli.command_line import Json, check_plots, save_plot, show
from epochcast.surfaces.cli.job_flags import JobArguments, job_command, save_job
from epochcast.surfaces.cli.neighbours_option import Neighbours, nearest_runs
from epochcast.surfaces.cli.price_age import price_age


@job_command(
    epilog="Example: epochcast forecast resnet50 --device V100 --batch 64 --dataset imagenet-1k --epochs 90",
    needs=(("device",), ("batch", "global_batch")),
    requests=(HandoverRequest,),
    with_auto_batch=True,
)
def forecast(
    arguments: JobArguments,
    handover: HandoverRequest,
    profile: Annotated[Path | None, typer.Option(help="Use this profile, written by `epochcast fit`.")] = None,
    history: Annotated[
        Path | None,
        typer.Option(help="Correct the forecast by past jobs: a file written by `epochcast history fit`."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show where the time goes, by layer and operator class, and all notes.")
    ] = False,
    with_neighbours: Neighbours = False,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw memory over the step and at its peak by layer: .png, .svg, .html."),
    ] = None,
    save_as: Annotated[
        str | None, typer.Option("--save-job", help="Save this job in epochcast.toml under this name.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Forecast time, memory and cost of a training job, of generation (--mode generate) or of post-training."""
    from epochcast import api

    of_steps = {"--history": history, "--profile": profile, "--explain": explain, "--neighbours": with_neighbours}
    if arguments.options.get("mode") == GENERATE:
        _refuse({**of_steps, "--plot": plot, "--save-job": save_as, "a hand-over": handover})
        return show_generation(arguments, as_json)
    if arguments.options.get("algorithm", SFT) != SFT:
        _refuse({**of_steps, "--plot": plot, "--save-job": save_as, "a hand-over": handover})
        return show_post_training(arguments, as_json)
    check_plots(plot)
    if arguments.is_batch_auto:
        arguments = _with_advised_batch(arguments)
    answer = api.forecast(arguments.model, profile=profile, history=history, config=None, **arguments.options)
    body = {**answer.as_dict(), "would_fit": [remedy.as_dict() for remedy in answer.remedies()]}
    if explain and as_json:
        from epochcast.predict.forecast.step_explain import explain_step

        body["explain"] = explain_step(answer).as_dict()
    nearest = nearest_runs(answer, with_neighbours)
    if with_neighbours:
        body["neighbours"] = [each.as_dict() for each in nearest]
    texts: dict[str, str] = {}
    if handover:
        from epochcast.decide.handover.handover_files import forecast_files

        texts = forecast_files(answer, handover)
        body |= texts

    def view() -> Any:
        from epochcast.surfaces import render

        return render.with_neighbours(render.forecast(answer, explain=explain), nearest)

    save_plot(plot, lambda charts: charts.memory_timeline(answer))
    if save_as is not None:
        path = save_job(save_as, arguments)
        sys.stderr.write(f"epochcast: job {save_as!r} is written to {path}\n")
    show(
        {**body, **price_age([answer.price_source])},
        as_json,
        view,
        as_text="\n".join(texts.values()) or None,
        explain=explain,
    )
    return 0 if answer.fits else DoesNotFit.exit_code


def show_generation(arguments: JobArguments, as_json: bool) -> int:
    """The answer of `--mode generate`."""
    from epochcast import api

    answer = api.generate(arguments.model, config=None, **arguments.options)

    def view() -> Any:
        from epochcast.surfaces import render

        return render.generation(answer)

    show(answer.as_dict(), as_json, view)
    return 0 if answer.fits else DoesNotFit.exit_code


def show_post_training(arguments: JobArguments, as_json: bool) -> int:
    """The answer of `--algorithm`."""
    from epochcast import api

    answer = api.post_train(arguments.model, config=None, **arguments.options)

    def view() -> Any:
        from epochcast.surfaces import render

        return render.post_training(answer)

    show(answer.as_dict(), as_json, view)
    return 0 if answer.fits else DoesNotFit.exit_code


def _refuse(given: Mapping[str, object]) -> None:
    """Raise for the first flag that was given: all are about training steps."""
    for flag, value in given.items():
        if value:
            raise BadInput(f"{flag} is about plain training steps, not about generation and post-training")


def _with_advised_batch(arguments: JobArguments) -> JobArguments:
    """With the batch that `epochcast advise` chooses, and a line that says so."""
    from epochcast import api

    options = arguments.without("batch", "global_batch", "workers")
    advice = api.advise(arguments.model, config=None, **options)
    if advice.solution is None:
        raise BadInput("--batch auto: not even one sample fits; see `epochcast advise` for what would")
    batch = advice.solution.smallest.batch
    sys.stderr.write(f"epochcast: --batch auto: {batch:,} per GPU (`epochcast advise`)\n")
    return replace(arguments, options={**arguments.without("batch", "global_batch"), "batch": batch})
