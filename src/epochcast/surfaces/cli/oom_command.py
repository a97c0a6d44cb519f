"""`epochcast oom`"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from epochcast.surfaces.cli.command_line import Explain, Json, Wide, show, telling
from epochcast.surfaces.cli.completion import jobs, models
from epochcast.surfaces.cli.job_flags import MODEL_HELP, TypedOptions, optional_job, options_command

STANDARD_INPUT = "-"


@dataclass(frozen=True)
class OomRequest:
    """The command has no options of its own besides those of a job."""


@options_command(
    epilog="Examples: epochcast oom train.log · "
    "epochcast oom train.log gpt2 --device 'RTX 3090' --batch 32 · pbpaste | epochcast oom -",
    request=OomRequest,
)
def oom(
    typed: TypedOptions,
    _request: OomRequest,
    message: Annotated[
        str,
        typer.Argument(help="The error with its traceback: a log, the text itself, or - for standard input."),
    ],
    model: Annotated[str | None, typer.Argument(help=MODEL_HELP, show_default=False, autocompletion=models)] = None,
    job: Annotated[str | None, typer.Option(help="A job of epochcast.toml.", autocompletion=jobs)] = None,
    explain: Explain = False,
    wide: Wide = False,
    as_json: Json = False,
) -> int:
    """Say which part filled the card when a training ran out of memory, and what would fit."""
    from epochcast import api

    arguments = optional_job(typed, model, job)
    said = _message(message)
    if arguments is None:
        answer = api.oom(said)
    else:
        answer = api.oom(said, arguments.model, config=None, **arguments.options)

    def view() -> Any:
        from epochcast.surfaces import render

        return render.oom(answer)

    with telling(() if arguments is None else arguments.notes):
        show(answer.as_dict(), as_json, view, explain=explain, wide=wide)
    return 0


def _message(text: str) -> str | Path:
    """The text itself, or the file that has it."""
    from epochcast.observe.oom.oom_message import MOST_TEXT

    if text == STANDARD_INPUT:
        return sys.stdin.read(MOST_TEXT)
    path = Path(text)
    try:
        return path if path.is_file() else text
    except (OSError, ValueError):  # a text that is no path at all
        return text
