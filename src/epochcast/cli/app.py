"""The application, and how errors become one line and an exit code.

Exit codes: 0 fine · 2 bad input · 3 over a given limit · 4 does not fit in memory · 5 no confident answer.
"""

import json
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import click
import typer

from epochcast.errors import EpochcastError

app = typer.Typer(
    name="epochcast",
    help="How long a training job takes, what memory it needs and what it costs, before it runs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def run(arguments: Sequence[str]) -> int:
    """Run one command and give its exit code."""
    from epochcast.cli import catalogues, demo, forecast, inspect  # noqa: F401  (they register themselves)

    try:
        code = app(args=list(arguments), standalone_mode=False)
    except EpochcastError as error:
        return _complain(error, error.exit_code)
    except click.UsageError as error:
        return _complain(error.format_message().replace("\n", " "), 2)
    except (click.Abort, KeyboardInterrupt):
        return _complain("interrupted", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code if isinstance(code, int) else 0


def _complain(message: object, code: int) -> int:
    sys.stderr.write(f"epochcast: {message}\n")
    for note in getattr(message, "__notes__", ()):
        sys.stderr.write(f"{note}\n")
    return code


def show(answer: dict[str, Any], as_json: bool, renderable: Any = None) -> None:
    """One JSON object, or the table."""
    if as_json:
        sys.stdout.write(json.dumps(answer, ensure_ascii=False, allow_nan=False) + "\n")
        return
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    console.print(renderable)
