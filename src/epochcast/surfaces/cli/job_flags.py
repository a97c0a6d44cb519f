"""The options of a job, of where it runs and of a verb's request, as flags of a command.

They are declared in `Job`, `Where` and the request (`PlanRequest`, …). The first parameter of a command is a
`JobArguments`, behind it come its requests. `job_command` adds MODEL, `--job` and the flags to the command,
and passes on what was given. With `--job NAME` the options of that job in `epochcast.toml` are used; options on the
command line override them.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.models import ArgumentInfo

from epochcast.base.options import Option, options_of
from epochcast.describe.capture.capture_listeners import shown_by
from epochcast.errors import BadInput
from epochcast.predict.forecast.generation_options import counts_otherwise
from epochcast.predict.forecast.job import JOB_OPTIONS
from epochcast.predict.forecast.job_alternatives import without_replaced
from epochcast.predict.forecast.where import PLACE_OPTIONS
from epochcast.surfaces.cli.command_line import app, telling, user_prints_to_stderr
from epochcast.surfaces.cli.completion import configs, jobs, models
from epochcast.surfaces.cli.request_flags import Function, OptionFlags, add_command, command_parameters

MODEL_HELP = next(option.help for option in JOB_OPTIONS if option.name == "model")
JOB_FLAGS: Mapping[str, Option] = {
    option.name: option for option in JOB_OPTIONS if option.name != "model" and option.flag is not None
}
PLACE_FLAGS: Mapping[str, Option] = {option.name: option for option in PLACE_OPTIONS}

# A heading of the help text.
WRITTEN = "Job and settings files"


@dataclass(frozen=True)
class JobArguments:
    """The job on a command line: the model, and the options that were given, by name, with their values parsed."""

    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    typed: frozenset[str] = frozenset()
    """The names of the options from the command line; the others are from the job file or other files."""
    read: frozenset[str] = frozenset()
    """The names of those from a script or a file of settings."""
    notes: tuple[str, ...] = ()
    """What was read from there."""
    is_batch_auto: bool = False
    """Whether the batch is asked for, too (`--batch auto`)."""

    def without(self, *names: str) -> dict[str, Any]:
        """The options except those named."""
        return {name: value for name, value in self.options.items() if name not in names}


@dataclass(frozen=True)
class TypedOptions:
    """The options of jobs on a command line, by name, with their values parsed, and the files of `--config`."""

    options: Mapping[str, Any]
    config: tuple[str, ...]


def job_command(
    *,
    epilog: str,
    needs: Sequence[tuple[str, ...]] = (),
    leave_out: Sequence[str] = (),
    with_place: bool = True,
    requests: Sequence[type] = (),
    parsers: Mapping[str, Callable[[str], Any]] | None = None,
    app: typer.Typer = app,
    group: str = "",
    with_auto_batch: bool = False,
    more_settings: Callable[[Mapping[str, Any], bool], Sequence[str]] | None = None,
    **help_texts: str,
) -> Callable[[Function], Function]:
    """Register a command about a job. Of each of `needs` it requires one option; `leave_out` are those that it does not
    take. `requests` are the classes of the verb's own options, `parsers` read some of them in another way. `group` is
    the command it belongs to, with its `app`; `help_texts` replace the help of an option. `with_auto_batch`: it finds
    the batch where that is `auto`. `more_settings` names files that count before those of `--config`, from what was
    typed and whether nothing else says what is trained.
    """
    flags_of = {request: OptionFlags.of(request, help_texts, parsers) for request in requests}
    # Options that have another meaning in this verb, and the flag of the job's.
    renamed = [each for request in requests for each in options_of(request) if each.flag is None]
    help_texts = {each.name: each.help for each in renamed} | help_texts
    taken = {name for request_flags in flags_of.values() for name in request_flags.options}
    declared = {**JOB_FLAGS, **(PLACE_FLAGS if with_place else {})}
    flags = OptionFlags(
        {
            name: replace(option, help=help_texts.get(name, option.help))
            for name, option in declared.items()
            if name not in (*leave_out, *taken)
        }
    )
    if with_auto_batch:
        batch = flags.options["batch"]
        text = f"{batch.help.rstrip('.')}, or auto: as `epochcast advise` says."
        flags = OptionFlags({**flags.options, "batch": replace(batch, help=text, parse=_parse_batch)})

    def register(command: Function) -> Function:
        path = f"epochcast {group} {command.__name__}" if group else f"epochcast {command.__name__}"

        def missing(name: str) -> BadInput:
            return BadInput(f"Missing {name}; see: {path} --help")

        def run(**arguments: Any) -> int:
            typed = flags.read(arguments)
            model, job, config = arguments.pop("model"), arguments.pop("job"), arguments.pop("config") or ()
            if more_settings is not None:
                config = (*more_settings(arguments, model is None and job is None and not config), *config)
            if model is None and job is None and not config:
                raise missing("argument 'MODEL' (or --job NAME, or --config FILE)")
            is_batch_auto = "batch" in typed and typed["batch"] is None
            if is_batch_auto:
                del typed["batch"]
            job_arguments = _with_settings(_job_arguments(model, job, flags, typed), config, flags)
            if is_batch_auto:
                job_arguments = replace(job_arguments, options=job_arguments.without("batch", "global_batch"))
                job_arguments = replace(job_arguments, is_batch_auto=True)
            is_batchless = is_batch_auto or counts_otherwise(job_arguments.options)
            needed = [names for names in needs if not (is_batchless and "batch" in names)]
            absent = [names for names in needed if all(job_arguments.options.get(name) is None for name in names)]
            for names in absent:
                _answer_script(job_arguments.model, absent)
                raise missing(f"option '{flags.options[names[0]].command_flag}'")
            verb_requests = [request(**request_flags.read(arguments)) for request, request_flags in flags_of.items()]
            with user_prints_to_stderr(), telling(job_arguments.notes), shown_by(capture_clock):
                return command(job_arguments, *verb_requests, **arguments)

        of_requests = [parameter for request_flags in flags_of.values() for parameter in request_flags.parameters]
        rest = command_parameters(command, 1 + len(flags_of))
        parameters = [*_LEADING, *flags.parameters, *of_requests, *rest]
        add_command(run, command, parameters, epilog=epilog, app=app)
        return command

    return register


def optional_job(typed: TypedOptions, model: str | None, job: str | None) -> JobArguments | None:
    """The job of a command that can do without one; None where none is named."""
    if model is None and job is None and not typed.config:
        if typed.options:
            raise BadInput("options of a job need a MODEL, --job NAME or --config FILE")
        return None
    flags = OptionFlags({**JOB_FLAGS, **PLACE_FLAGS})
    return _with_settings(_job_arguments(model, job, flags, typed.options), typed.config, flags)


def _parse_batch(text: str) -> int | None:
    """A number, or None where it is to be found."""
    if text.strip().casefold() == "auto":
        return None
    try:
        return int(text)
    except ValueError:
        raise BadInput(f"must be a whole number or auto, got {text!r}") from None


def options_command(
    *, epilog: str, request: type, with_place: bool = True, parsers: Mapping[str, Callable[[str], Any]] | None = None
) -> Callable[[Function], Function]:
    """Register a command that has arguments of its own instead of MODEL, and the options of jobs: its first parameter
    is a `TypedOptions`, the second its request. `parsers` replace those of its options by name.
    """
    request_flags = OptionFlags.of(request, parsers=parsers)
    flags = OptionFlags({**JOB_FLAGS, **(PLACE_FLAGS if with_place else {})})

    def register(command: Function) -> Function:
        def run(**arguments: Any) -> int:
            typed = TypedOptions(flags.read(arguments), tuple(arguments.pop("config") or ()))
            with user_prints_to_stderr(), shown_by(capture_clock):
                return command(typed, request(**request_flags.read(arguments)), **arguments)

        rest = command_parameters(command, 2)
        arguments = [parameter for parameter in rest if _is_argument(parameter)]
        others = [parameter for parameter in rest if not _is_argument(parameter)]
        parameters = [_CONFIG, *flags.parameters, *arguments, *request_flags.parameters, *others]
        add_command(run, command, parameters, epilog=epilog)
        return command

    return register


def _is_argument(parameter: Parameter) -> bool:
    return any(isinstance(each, ArgumentInfo) for each in parameter.annotation.__metadata__)


@contextmanager
def capture_clock(name: str) -> Iterator[None]:
    """While a model is captured, its name and a clock on standard error, in a terminal alone."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("capturing {task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as progress:
        progress.add_task(name, total=None)
        yield


def with_words(arguments: Sequence[str]) -> list[str]:
    """Arguments in which a flag that may have a word has one: bare it means true, with `--no-` false."""
    spelt = {flag.command_flag: flag for flag in (*JOB_FLAGS.values(), *PLACE_FLAGS.values()) if flag.words}
    completed: list[str] = []
    for place, argument in enumerate(arguments):
        positive = f"--{argument.removeprefix('--no-')}" if argument.startswith("--no-") else argument
        flag = spelt.get(positive)
        following = arguments[place + 1] if place + 1 < len(arguments) else ""
        if flag is None or (positive == argument and following in flag.words):
            completed.append(argument)
            continue
        meant = positive == argument
        word = next(word for word, value in flag.words.items() if value is meant)
        completed.append(f"{positive}={word}")
    return completed


# What a printed command has where an option is missing that the script does not say.
_EXAMPLES = {"device": "A100", "batch": "32"}


def _answer_script(model: str, absent: Sequence[tuple[str, ...]]) -> None:
    """Raise for a script, with what can be forecast in it, before asking for missing options; the commands that it
    prints have them.
    """
    if not model.endswith((".py", ".ipynb")):
        return
    from epochcast.describe.capture.resolve import find_model
    from epochcast.describe.capture.script import NeedsFactory

    try:
        find_model(model)
    except NeedsFactory as error:
        unsaid = [names[0] for names in absent if names[0] in _EXAMPLES and error.stated_options.isdisjoint(names)]
        error.missing = tuple(word for name in unsaid for word in (f"--{name}", _EXAMPLES[name]))
        raise


_CONFIG = Parameter(
    "config",
    Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[
        list[str] | None,
        typer.Option(
            "--config",
            help="What a trainer reads (axolotl, LLaMA-Factory, torchtune, ms-swift, kohya, SimpleTuner, ultralytics, "
            "nnU-Net, lerobot, Megatron-LM, NeMo, TRL, verl, EasyR1, OpenRLHF, NeMo-RL, DeepSpeed, Accelerate, "
            "Lightning), a training script, or a shell script that starts one; may be repeated. Options override it, "
            "and MODEL can be left out.",
            show_default=False,
            autocompletion=configs,
            rich_help_panel=WRITTEN,
        ),
    ],
)

_LEADING = (
    Parameter(
        "model",
        Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[str | None, typer.Argument(help=MODEL_HELP, show_default=False, autocompletion=models)],
    ),
    Parameter(
        "job",
        Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[
            str | None,
            typer.Option(
                help="A job of epochcast.toml; MODEL and options given beside it override it.",
                autocompletion=jobs,
                rich_help_panel=WRITTEN,
            ),
        ],
    ),
    _CONFIG,
)


def _job_arguments(model: str | None, job: str | None, flags: OptionFlags, typed: Mapping[str, Any]) -> JobArguments:
    """The options of the command line, which override those of the job file."""
    if job is None:  # without a model, a file of settings says it
        return JobArguments(model or "", typed, frozenset(typed))
    from epochcast.predict.forecast.job_file import read_job

    job_options = without_replaced(read_job(job).given, typed)
    job_model = job_options.pop("model")
    usable = {name: value for name, value in job_options.items() if name in flags.options or name not in PLACE_FLAGS}
    if model is not None:
        usable.pop("fingerprint", None)
    return JobArguments(model or job_model, {**usable, **typed}, frozenset(typed))


def _with_settings(arguments: JobArguments, config: Sequence[str], flags: OptionFlags) -> JobArguments:
    """With what the files of `--config` and the script around the model say; they override a job of the job file.

    A script without a name is answered elsewhere, with the models in it.
    """
    from epochcast.predict.forecast.job_settings import filled

    typed = {name: value for name, value in arguments.options.items() if name in arguments.typed}
    stated = typed if config else arguments.options
    read = filled(None if config and not arguments.model else arguments.model, stated, config, flags.options)
    options = {**without_replaced(arguments.options, read.options), **read.options}
    read_names = frozenset(set(read.options) - set(stated))
    return replace(arguments, model=str(read.model), options=options, read=read_names, notes=read.notes)


def save_job(name: str, job_arguments: JobArguments, file: Path | None = None) -> Path:
    """Append the job to a job file: the given one, the nearest, or a new one in this folder."""
    from epochcast.hardware.catalogue import is_sheet
    from epochcast.predict.forecast.job_file import FILE, append_job, find_job_file, seen_from

    try:
        path = file or find_job_file()
    except BadInput:
        path = Path(FILE)
    options = dict(job_arguments.options)
    if isinstance(options.get("device"), str) and is_sheet(options["device"]):
        options["device"] = seen_from(options["device"], path.parent)
    append_job(path, name, {"model": seen_from(job_arguments.model, path.parent), **options})
    return path
