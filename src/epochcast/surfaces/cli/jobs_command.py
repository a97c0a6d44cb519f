"""`epochcast jobs`: the jobs of `epochcast.toml`, checked; `epochcast jobs init` writes one from a command line."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcast.surfaces.cli.command_line import FORECASTS, Json, command_group, show
from epochcast.surfaces.cli.job_flags import JobArguments, job_command, save_job

if TYPE_CHECKING:
    from epochcast.predict.forecast.job_file import NamedJob

jobs_app = command_group(
    "jobs",
    FORECASTS,
    invoke_without_command=True,
    epilog="Example: epochcast jobs",
    help="The jobs of epochcast.toml, found in this folder or above: listed and checked.",
)


@jobs_app.callback()
def jobs(
    context: typer.Context,
    file: Annotated[Path | None, typer.Option(help="A job file instead of the nearest epochcast.toml.")] = None,
    as_json: Json = False,
) -> int:
    """List and check the jobs of the nearest epochcast.toml."""
    from epochcast.errors import BadInput, EpochcastError

    if context.invoked_subcommand is not None:
        if file is not None:
            raise BadInput(f"--file goes behind the command: epochcast jobs {context.invoked_subcommand} --file {file}")
        return 0
    from epochcast.predict.forecast.job_file import find_job_file, read_jobs

    path = file or find_job_file()
    rows: list[tuple[NamedJob, str]] = []
    for job in read_jobs(path):
        try:
            _check(job)
            rows.append((job, ""))
        except EpochcastError as error:
            rows.append((job, str(error)))

    def view() -> Any:
        from epochcast.surfaces import render

        return render.jobs(str(path), rows)

    entries = [{"name": job.name, "options": _plain(job.given), "problem": problem or None} for job, problem in rows]
    show({"file": str(path), "jobs": entries}, as_json, view)
    return 2 if any(problem for _, problem in rows) else 0


def _check(job: "NamedJob") -> None:
    """Look up the model of a job, and the hardware if it names any. No Python code is run."""
    from epochcast.describe.capture.model_reference import ModelReference
    from epochcast.describe.capture.resolve import find_model
    from epochcast.errors import BadInput
    from epochcast.predict.forecast.job import AUTO, PLAIN

    if job.where.device is not None:
        job.where.placement(PLAIN["precision"] if job.job.precision == AUTO else job.job.precision)
    model = str(job.job.model)
    reference = ModelReference.of(model)
    if not reference.is_code:
        find_model(model, job.job.input_shape, aux=job.job.aux, contents=job.job.contents)
    elif reference.script and not Path(reference.script).is_file():
        raise BadInput(f"no file {reference.script!r}")


def _plain(options: Any) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}


@job_command(
    app=jobs_app,
    group="jobs",
    epilog="Example: epochcast jobs init resnet50 --name imagenet --device A100 --batch 128 --dataset imagenet-1k",
)
def init(
    arguments: JobArguments,
    name: Annotated[str, typer.Option(help="What the job is called.")] = "main",
    file: Annotated[Path | None, typer.Option(help="A job file instead of the nearest epochcast.toml.")] = None,
    as_json: Json = False,
) -> int:
    """Add a job to the nearest epochcast.toml, or create one here."""
    path = save_job(name, arguments, file)

    def view() -> Any:
        return f"job {name!r} is written to {path}; try: epochcast forecast --job {name}"

    show({"file": str(path), "name": name}, as_json, view)
    return 0


@jobs_app.command(epilog="Example: epochcast jobs schema > epochcast.schema.json")
def schema(as_json: Json = False) -> int:
    """Print the JSON schema of epochcast.toml, for editors."""
    import json

    from epochcast.predict.forecast.job_file import schema as job_schema

    sys.stdout.write(json.dumps(job_schema(), indent=None if as_json else 2) + "\n")
    return 0
