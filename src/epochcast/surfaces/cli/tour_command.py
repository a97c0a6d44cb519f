"""`epochcast tour`: three questions, then the forecast of the user's own job."""

import sys
from collections.abc import Callable
from pathlib import Path
from shlex import join
from typing import NamedTuple

import typer

from epochcast.errors import BadInput, EpochcastError
from epochcast.surfaces.cli.command_line import HELP, app, run
from epochcast.surfaces.cli.guide import program
from epochcast.surfaces.cli.help_groups import GroupedCommand

NONE = "none"


class Question(NamedTuple):
    """A question, the answer that Enter gives, and the arguments of `forecast` that an answer becomes."""

    text: str
    default: str
    arguments: Callable[[str], list[str]]


def _model_arguments(answer: str) -> list[str]:
    from epochcast.describe.capture.resolve import find_model
    from epochcast.errors import MissingExtra

    if answer.startswith("-"):
        raise BadInput(f"{answer!r} is no model: name one, for example resnet50, or a script, for example train.py")
    try:
        find_model(answer)
    except MissingExtra:
        raise
    except EpochcastError as error:
        # A script that needs more than its name is explained by `forecast`, which also says what to type.
        if Path(answer.partition(":")[0]).suffix not in {".py", ".ipynb"}:
            raise error from None
    return [answer]


def _device_arguments(answer: str) -> list[str]:
    from epochcast.hardware.catalogue import find_device

    find_device(answer)
    return ["--device", answer]


def _data_arguments(answer: str) -> list[str]:
    from epochcast.describe.datasets import find_dataset

    if answer.lower() == NONE:
        return []
    digits = answer.replace(",", "").replace("_", "")
    if digits.isdecimal():
        if int(digits) == 0:
            raise BadInput("0 samples: give a positive number")
        return ["--samples", digits]
    find_dataset(answer)
    return ["--dataset", answer]


QUESTIONS = (
    Question("1. Model or script (resnet50, hf:CONFIG.json, train.py:make_model)", "resnet50", _model_arguments),
    Question("2. GPU (A100, H100, RTX 4090)", "A100", _device_arguments),
    Question(f"3. Dataset or number of samples (imagenet-1k, 50000, {NONE})", "imagenet-1k", _data_arguments),
)


@app.command(epilog="Example: epochcast tour", cls=GroupedCommand, rich_help_panel=HELP)
def tour() -> int:
    """Ask three questions (model or script, GPU, data) and forecast that job."""
    if not (sys.stdin is not None and sys.stdin.isatty()):
        raise BadInput(
            "`epochcast tour` asks questions and needs a terminal; without one: "
            "epochcast forecast MODEL --device GPU --batch auto --dataset DATASET"
        )
    arguments = ["forecast"]
    for question in QUESTIONS:
        arguments += _answered(question)
    arguments += ["--batch", "auto"]
    typer.echo(f"\n{program()} {join(arguments)}\n")
    return run(arguments)


def _answered(question: Question) -> list[str]:
    """The arguments of the first valid answer; a refused one is explained, and asked for again."""
    while True:
        answer: str = typer.prompt(question.text, default=question.default)
        try:
            return question.arguments(answer.strip())
        except EpochcastError as error:
            typer.echo(f"   {' '.join(str(error).split())}")
