"""`epochcast share`"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcast.errors import BadInput
from epochcast.surfaces.cli.command_line import Json, show
from epochcast.surfaces.cli.completion import jobs, models
from epochcast.surfaces.cli.database_options import Database
from epochcast.surfaces.cli.job_flags import MODEL_HELP, JobArguments, TypedOptions, optional_job, options_command

if TYPE_CHECKING:
    from epochcast.measure.shared.shared_run import SharedRun


@dataclass(frozen=True)
class ShareRequest:
    """The command has no options of its own besides those of a job."""


@options_command(
    epilog="Examples: epochcast share imagenet-3 · epochcast share train.log gpt2 --device 'RTX 3090' --batch 8 · "
    "epochcast share measured.jsonl --key model-resnet18",
    request=ShareRequest,
)
def share(
    typed: TypedOptions,
    _request: ShareRequest,
    run: Annotated[
        str,
        typer.Argument(help="A tracked run of the store; or a log, a trace or a speed with its job; or a bench file."),
    ],
    model: Annotated[str | None, typer.Argument(help=MODEL_HELP, show_default=False, autocompletion=models)] = None,
    job: Annotated[str | None, typer.Option(help="A job of epochcast.toml.", autocompletion=jobs)] = None,
    key: Annotated[
        str | None, typer.Option(help="Of a bench file with several steps, the beginning of the key of one.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write here [default: this folder, named after device and model].")
    ] = None,
    contributor: Annotated[str | None, typer.Option(help="Your name, if you want to be named [default: none].")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Write without asking.")] = False,
    database: Database = None,
    as_json: Json = False,
) -> int:
    """Write one measured run as a small anonymous JSON for a pull request; it is shown before it is written."""
    from epochcast.base.atomic_files import write_text

    shared = _shared(run, optional_job(typed, model, job), key, database, contributor)
    path = out if out is not None and not out.is_dir() else (out or Path()) / shared.file_name
    if not as_json:
        show(shared.as_dict(), as_json, lambda: _text(shared.text().rstrip()))
    is_written = yes or (not as_json and sys.stdin.isatty() and typer.confirm(f"Write this to {path}?", err=True))
    if is_written:
        write_text(path, shared.text())

    body = {"shared": shared.as_dict(), "file": str(path) if is_written else None}
    show(body, as_json, lambda: _text(f"written: {path}" if is_written else "not written; to write it: --yes"))
    return 0


def _text(content: str) -> Any:
    from rich.text import Text

    return Text(content)


def _shared(
    run: str, arguments: JobArguments | None, key: str | None, database: str | None, contributor: str | None
) -> "SharedRun":
    from epochcast import api

    if arguments is not None:
        return api.share(arguments.model, run, contributor=contributor, config=None, **arguments.options)
    path = Path(run)
    if path.is_file():
        return _of_bench(path, key, contributor)
    from epochcast.observe.share.run_sharing import shared_stored
    from epochcast.observe.store.store_opening import existing_store
    from epochcast.predict.forecast.session import Session

    store = existing_store(database)
    if store is None:
        raise BadInput(f"no run called {run!r}: there is no store yet; a log or a speed needs its MODEL and --device")
    with store:
        return shared_stored(store, run, Session(), contributor=contributor)


def _of_bench(path: Path, key: str | None, contributor: str | None) -> "SharedRun":
    """The one step of a measurement file, or the one that the key names."""
    from epochcast.measure.bench.measurements import is_measurements, read
    from epochcast.observe.share.run_sharing import shared_measurement

    if not is_measurements(path):
        raise BadInput(f"{path.name} is a log: say what it trained, too: epochcast share {path.name} MODEL --device …")
    steps = [row for row in read(path).of("model") if row.seconds and row.question.get("part", "step") == "step"]
    chosen = [row for row in steps if row.key.startswith(key or "")]
    if len(chosen) != 1:
        keys = ", ".join(row.key for row in (chosen or steps)[:5]) or "none; epochcast bench models measures some"
        raise BadInput(f"{path.name} has {len(chosen)} measured steps to share; name one with --key: {keys}")
    return shared_measurement(chosen[0], contributor=contributor)
