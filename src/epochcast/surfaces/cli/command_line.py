"""The application, and how errors become one line and an exit code.

Exit codes: 0 success · 2 bad input · 3 over a given limit · 4 does not fit in memory · 5 no confident answer.

A command registers itself when its module is imported; `COMMANDS` says which modules those are. Each imports what it
needs when it runs, so that `--help` loads neither numpy nor rich.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from epochcast.errors import BadInput, EpochcastError, MissingExtra
from epochcast.surfaces.cli.ascii_streams import ascii_where_asked
from epochcast.surfaces.cli.help_groups import COMMAND_HEADINGS, GroupedCommands

if TYPE_CHECKING:
    from rich.console import RenderableType

    from epochcast.describe.capture.script import NeedsFactory

app = typer.Typer(
    name="epochcast",
    help="Forecast the time, memory and cost of a training job before it runs.",
    epilog="Example: epochcast forecast resnet50 --device V100 --batch 64",
    cls=GroupedCommands,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# In the order of the help text.
COMMANDS = (
    "demo",
    "tour",
    "forecast",
    "inspect",
    "advise",
    "scaling",
    "plan",
    "afford",
    "diff",
    "track",
    "check",
    "oom",
    "schedule",
    "schedule_plan",
    "schedule_run",
    "serve",
    "mcp",
    "runs",
    "bill",
    "jobs",
    "evaluate",
    "calibrate",
    "bench",
    "fit",
    "share",
    "history",
    "catalogues",
    "instances",
    "store",
    "doctor",
)

HELP, FORECASTS, MEASURES, NAMES = COMMAND_HEADINGS


def command_group(name: str, panel: str | None, parent: typer.Typer = app, **properties: Any) -> typer.Typer:
    """A command with commands of its own, such as `schedule`; `properties` are those of `typer.Typer`."""
    context = {"help_option_names": ["-h", "--help"]}
    group = typer.Typer(rich_markup_mode=None, context_settings=context, **properties)
    parent.add_typer(group, name=name, rich_help_panel=panel)
    return group


# The width of tables in files and pipes, unless COLUMNS is set.
FILE_COLUMNS = 120
# No table is wider.
_COMPLETION = "_EPOCHCAST_COMPLETE"
"""Set by a shell that asks what could follow."""

WIDEST = 1000

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Explain = Annotated[bool, typer.Option("--explain", help="Show all notes.")]
Wide = Annotated[bool, typer.Option("--wide", help="Show all columns, even wider than the terminal.")]

# The base class of usage errors. Newer versions of typer include their own copy of click, so it is taken from typer.
_USAGE_ERROR = typer.BadParameter.__mro__[1]


# Where answers go while the user's own code may print.
_ANSWERS: ContextVar[TextIO | None] = ContextVar("answers", default=None)


@contextmanager
def user_prints_to_stderr() -> Iterator[None]:
    """What a user's own code prints goes to standard error, so that standard output has the answer alone."""
    token = _ANSWERS.set(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _ANSWERS.reset(token)


# Notes on what was read for a command besides its command line; its answer shows them.
_NOTES: ContextVar[tuple[str, ...]] = ContextVar("notes", default=())


@contextmanager
def telling(notes: tuple[str, ...]) -> Iterator[None]:
    """Answers that are shown meanwhile end in these notes."""
    token = _NOTES.set(notes)
    try:
        yield
    finally:
        _NOTES.reset(token)


def run(arguments: Sequence[str]) -> int:
    """Run one command and give its exit code."""
    if sys.stdout is None or sys.stderr is None:  # closed by whoever started us
        nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  (for the rest of the process)
        sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere
    if not arguments and _COMPLETION not in os.environ:
        from epochcast.surfaces.cli.guide import guide

        sys.stdout.write(guide())
        return 0
    for module in COMMANDS:
        import_module(f"epochcast.surfaces.cli.{module}_command")
    with ascii_where_asked(), _warnings_as_lines():
        return _run(arguments)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """A warning is one line as errors are, printed once, without the place in our code that gave it."""
    import warnings

    printed: set[str] = set()

    def line_once(message: object, *_: object, **__: object) -> str:
        line = f"epochcast: {' '.join(str(message).split())}\n"
        text = "" if line in printed else line
        printed.add(line)
        return text

    shown = warnings.formatwarning
    warnings.formatwarning = line_once
    try:
        yield
    finally:
        warnings.formatwarning = shown


def _run(arguments: Sequence[str]) -> int:
    from epochcast.surfaces.cli.job_flags import with_words

    try:
        code = app(args=with_words(arguments), prog_name="epochcast", standalone_mode=False)
        sys.stdout.flush()
    except EpochcastError as error:
        return _report(error, error.exit_code, arguments)
    except (typer.Abort, KeyboardInterrupt):
        return _report("interrupted", 130)
    except BrokenPipeError:
        # The reader has closed the pipe (`| head`). Python would report it again when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _report(f"{error.strerror or error}: {error.filename!r}" if error.filename else error, 2)
    except ModuleNotFoundError as error:
        missing = _missing(error)
        if missing is None:
            raise
        return _report(missing, missing.exit_code)
    except Exception as error:
        if isinstance(error, _USAGE_ERROR):
            return _report(_usage(error), 2)
        raise
    return code if isinstance(code, int) else 0


def _missing(error: ModuleNotFoundError) -> MissingExtra | None:
    """A package of one of our extras that is not installed, wherever it was first asked for."""
    from epochcast.surfaces.doctor import extra_with

    package = (error.name or "").partition(".")[0]
    extra = extra_with(package)
    return None if extra is None else MissingExtra(extra, package)


def _version(is_asked: bool) -> None:
    if is_asked:
        from epochcast import __version__

        sys.stdout.write(f"epochcast {__version__}\n")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Forecast the time, memory and cost of a training job before it runs."""


def _usage(error: Exception) -> str:
    """What is wrong with the command line, and the command that lists its options."""
    message: Callable[[], str] = getattr(error, "format_message", error.__str__)
    context = getattr(error, "ctx", None)
    command = getattr(context, "command_path", None) or "epochcast"
    if type(error).__name__ == "NoArgsIsHelpError" and context is not None:  # its message is the whole help
        return f"{command} needs one of {', '.join(context.command.list_commands(context))}; see: {command} --help"
    return f"{message().rstrip('.')}{_given(error)}; see: {command} --help"


def _given(error: Exception) -> str:
    """The value that was refused, where the message has it not."""
    details = getattr(error.__cause__, "errors", None)
    return f", got {details()[0].get('input')!r}" if callable(details) else ""


def _with_flags(line: str) -> str:
    """The library names a parameter in backticks; here it is a flag: `input_shape` becomes --input."""
    if "`" not in line:
        return line
    from epochcast.surfaces.cli.job_flags import JOB_FLAGS, PLACE_FLAGS
    from epochcast.surfaces.cli.request_flags import REQUEST_FLAGS

    flags = {name: option.command_flag for name, option in {**JOB_FLAGS, **PLACE_FLAGS}.items()} | REQUEST_FLAGS
    return re.sub(r"`(\w+)`", lambda match: flags.get(match[1], match[0]), line)


def _report(message: object, code: int, arguments: Sequence[str] = ()) -> int:
    """Print the message on one line, then its notes, such as the end of the user's own traceback."""
    line = _with_flags(" ".join(str(message).split()))
    notes = [str(note) for note in getattr(message, "__notes__", ())]
    if notes and isinstance(message, BadInput):
        from epochcast.describe.capture.script import NeedsFactory

        if isinstance(message, NeedsFactory) and message.reference in arguments:
            for place, each in enumerate(message.lines):
                notes[place] = _command_of(message, each.text, arguments) if each.is_reference else notes[place]
    sys.stderr.write("\n".join([f"epochcast: {line}", *notes]) + "\n")
    return code


def _command_of(error: "NeedsFactory", instead: str, arguments: Sequence[str]) -> str:
    """The whole command to type, with a reference that works instead of the user's."""
    from epochcast.describe.capture.model_reference import LIBRARIES, ModelReference

    reference = ModelReference.of(instead)
    words = [instead if word == error.reference else word for word in arguments]
    # The script says how the model is trained, and how large its images are; a published network does not.
    if error.settings_file and reference.file != error.settings_file and "--config" not in arguments:
        words += ["--config", error.settings_file]
    shape = error.input_shape or (error.published_shape if reference.script else None)
    if shape and (reference.script or reference.prefix in LIBRARIES) and "--input" not in arguments:
        words += ["--input", "x".join(map(str, shape))]
    return f"    epochcast {join([*words, *error.missing])}"


def wrote(path: Path) -> None:
    """Say where a file is, beside the answer."""
    sys.stderr.write(f"epochcast: written to {path}\n")


def check_plots(*paths: Path | None) -> None:
    """Raise for a chart that cannot be written, before any work is done."""
    for path in paths:
        if path is not None:
            from epochcast.surfaces import charts

            charts.check_chart_path(path)


def save_plot(path: Path | None, draw: Callable[[Any], Any]) -> None:
    """Write a chart where one is wanted; `draw` makes it with the module of charts."""
    if path is not None:
        from epochcast.surfaces import charts

        charts.save_chart(draw(charts), path)
        wrote(path)


def show(
    answer: dict[str, Any],
    as_json: bool,
    view: Callable[[], "RenderableType"],
    *,
    as_text: str | None = None,
    explain: bool | None = None,
    wide: bool | None = None,
) -> None:
    """One JSON object, or what `view` draws; `as_text` is a file to pass on, printed as it is instead.

    `explain` shows all notes and `wide` all columns; None where the command has no such option.
    """
    output = _ANSWERS.get() or sys.stdout
    notes = _NOTES.get()
    if as_json:
        import json

        spelled_notes = [_with_flags(note) for note in notes]
        answer = {**answer, "warnings": [*answer.get("warnings", []), *spelled_notes]} if spelled_notes else answer
        output.write(json.dumps(answer, allow_nan=False) + "\n")
        return
    if as_text is not None:
        output.write(as_text)
        return
    from epochcast.surfaces.render.notes_view import with_notes
    from epochcast.surfaces.render.shown_notes import Shown, showing

    settings = Shown(
        all_columns=bool(wide),
        columns_hint="" if wide is None else "--wide",
        all_notes=bool(explain),
        notes_hint="" if explain is None else "--explain",
        spelled=_with_flags,
    )
    with showing(settings):
        _draw(with_notes(view(), notes), output)


def _draw(renderable: "RenderableType", output: TextIO) -> None:
    """Print a drawing, at the width of the terminal or of a file."""
    from rich.console import Console
    from rich.measure import Measurement

    width = None if output.isatty() or os.environ.get("COLUMNS", "").isdecimal() else FILE_COLUMNS
    console = Console(file=output, width=width, highlight=False, emoji=False, markup=False)
    # In a terminal that is too narrow lines wrap: a number that is cut off would read as another number.
    console.width = max(
        console.width, Measurement.get(console, console.options.update(width=WIDEST), renderable).minimum
    )
    if console.is_terminal:
        console.print(renderable)
        return
    with console.capture() as captured:
        console.print(renderable)
    # A table pads every line to its width; in a file the spaces are removed.
    output.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
