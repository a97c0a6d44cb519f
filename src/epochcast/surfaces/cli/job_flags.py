"""The options of a job, of where it runs and of a verb's request, as flags of a command.

They are declared in `Job`, `Where` and the request (`PlanRequest`, …). The first parameter of a command is a
`JobArguments`, the second its request if it has one. `job_command` adds MODEL, `--job` and the flags to the command,
and passes on what was given. With `--job NAME` the options of that job in `epochcast.toml` are used; options on the
command line override them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.models import ArgumentInfo

from epochcast.base.options import Option, options_of
from epochcast.describe.capture.capture_listeners import shown_by
from epochcast.errors import BadInput
from epochcast.predict.forecast.job import JOB_OPTIONS, without_replaced
from epochcast.predict.forecast.where import PLACE_OPTIONS
from epochcast.surfaces.cli.capture_progress import capture_clock
from epochcast.surfaces.cli.command_line import FORECASTS, app, telling, user_prints_to_stderr
from epochcast.surfaces.cli.completion import COMPLETERS, configs, jobs, models
from epochcast.surfaces.cli.help_groups import GroupedCommand

MODEL_HELP = next(option.help for option in JOB_OPTIONS if option.name == "model")
JOB_FLAGS: Mapping[str, Option] = {
    option.name: option for option in JOB_OPTIONS if option.name != "model" and option.flag is not None
}
PLACE_FLAGS: Mapping[str, Option] = {option.name: option for option in PLACE_OPTIONS}

Function = Callable[..., int]

# Headings of the help text, by the group of an option.
WRITTEN = "Job and settings files"
PANELS: Mapping[str, str] = {
    "model": "Model",
    "recipe": "Training",
    "data": "Data and duration",
    "loader": "Loader",
    "place": "Hardware",
    "framework": "Framework",
}


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

    def without(self, *names: str) -> dict[str, Any]:
        """The options except those named."""
        return {name: value for name, value in self.options.items() if name not in names}


@dataclass(frozen=True)
class GivenOptions:
    """The options of jobs on a command line, by name, with their values parsed, and the files of `--config`."""

    options: Mapping[str, Any]
    config: tuple[str, ...]


def job_command(
    *,
    epilog: str,
    needs: Sequence[tuple[str, ...]] = (),
    leave_out: Sequence[str] = (),
    with_place: bool = True,
    request: type | None = None,
    parsers: Mapping[str, Callable[[str], Any]] | None = None,
    app: typer.Typer = app,
    group: str = "",
    **help_texts: str,
) -> Callable[[Function], Function]:
    """Register a command about a job. Of each of `needs` it requires one option; `leave_out` are those that it does not
    take. `request` is the class of the verb's own options, `parsers` read some of them in another way. `group` is the
    command it belongs to, with its `app`; `help_texts` replace the help of an option.
    """
    own_flags = RequestFlags(request, parsers or {}, help_texts)
    help_texts = {**own_flags.help_of_job, **help_texts}
    declared = {**JOB_FLAGS, **(PLACE_FLAGS if with_place else {})}
    flags = {name: option for name, option in declared.items() if name not in (*leave_out, *own_flags.flags)}

    def register(command: Function) -> Function:
        path = f"epochcast {group} {command.__name__}" if group else f"epochcast {command.__name__}"

        def missing(what: str) -> BadInput:
            return BadInput(f"Missing {what}; see: {path} --help")

        def run(**arguments: Any) -> int:
            given = {name: arguments.pop(name) for name in flags}
            model, job, config = arguments.pop("model"), arguments.pop("job"), arguments.pop("config") or ()
            if model is None and job is None:
                raise missing("argument 'MODEL' (or --job NAME)")
            job_arguments = _with_settings(_job_arguments(model, job, flags, given), config, flags)
            absent = [names for names in needs if all(job_arguments.options.get(name) is None for name in names)]
            for names in absent:
                _answer_script(job_arguments.model, absent)
                raise missing(f"option '{flags[names[0]].command_flag}'")
            requests = own_flags.read(arguments)
            with user_prints_to_stderr(), telling(job_arguments.notes), shown_by(capture_clock):
                return command(job_arguments, *requests, **arguments)

        options = (_parameter(option, help_texts.get(name)) for name, option in flags.items())
        parameters = [*_LEADING, *options, *own_flags.parameters, *_command_parameters(command, request)]
        add_command(run, command, parameters, epilog=epilog, app=app)
        return command

    return register


def add_command(
    run: Function, command: Function, parameters: Sequence[Parameter], *, epilog: str, app: typer.Typer = app
) -> None:
    """Register `run`, which takes its parameters by name, under the name and help of a command."""
    parameters = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]
    setattr(run, "__signature__", Signature(parameters, return_annotation=int))  # noqa: B010
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__doc__, run.__name__ = command.__doc__, command.__name__
    app.command(name=command.__name__, epilog=epilog, cls=GroupedCommand, rich_help_panel=FORECASTS)(run)


def options_command(*, epilog: str, request: type) -> Callable[[Function], Function]:
    """Register a command that has arguments of its own instead of MODEL, and the options of jobs: its first parameter
    is a `GivenOptions`, the second its request.
    """
    own_flags = RequestFlags(request)
    flags = {**JOB_FLAGS, **PLACE_FLAGS}

    def register(command: Function) -> Function:
        def run(**arguments: Any) -> int:
            typed = _typed(flags, {name: arguments.pop(name) for name in flags})
            config = tuple(arguments.pop("config") or ())
            requests = own_flags.read(arguments)
            with user_prints_to_stderr(), shown_by(capture_clock):
                return command(GivenOptions(typed, config), *requests, **arguments)

        own = _command_parameters(command, request)
        arguments = [parameter for parameter in own if _is_argument(parameter)]
        others = [parameter for parameter in own if not _is_argument(parameter)]
        options = [_parameter(option, None) for option in flags.values()]
        parameters = [_CONFIG, *options, *arguments, *own_flags.parameters, *others]
        add_command(run, command, parameters, epilog=epilog)
        return command

    return register


def _command_parameters(command: Function, request: type | None) -> list[Parameter]:
    """The parameters of a command behind its job and its request."""
    return list(signature(command, eval_str=True).parameters.values())[1 + (request is not None) :]


def _is_argument(parameter: Parameter) -> bool:
    return any(isinstance(each, ArgumentInfo) for each in parameter.annotation.__metadata__)


class RequestFlags:
    """The flags of a verb's request: those of its options that the command line has."""

    def __init__(
        self,
        request: type | None,
        parsers: Mapping[str, Callable[[str], Any]] | None = None,
        help_texts: Mapping[str, str] | None = None,
    ) -> None:
        self._request, parsers, help_texts = request, parsers or {}, help_texts or {}
        options = () if request is None else options_of(request)
        self.flags = {
            option.name: replace(
                option,
                parse=parsers.get(option.name, option.parse),
                help=help_texts.get(option.name, option.help),
            )
            for option in options
            if option.flag is not None
        }
        # An option that has another meaning in this verb, and the flag of the job's.
        self.help_of_job = {option.name: option.help for option in options if option.flag is None}
        REQUEST_FLAGS.update({name: option.command_flag for name, option in self.flags.items()})

    @property
    def parameters(self) -> list[Parameter]:
        """A parameter of the command for each flag; the default is shown as it would be typed."""
        return [_request_parameter(option) for option in self.flags.values()]

    def read(self, arguments: dict[str, Any]) -> tuple[Any, ...]:
        """The request that was typed, taken out of the arguments; nothing where the verb has none."""
        given = {name: arguments.pop(name) for name in self.flags}
        if self._request is None:
            return ()
        return (self._request(**_typed(self.flags, given)),)


REQUEST_FLAGS: dict[str, str] = {}
"""How the command line spells the options of requests, by their names."""


def _request_parameter(option: Option) -> Parameter:
    default = option.default_text
    kind: Any = str | None
    if option.type is bool and option.parse is None:
        kind, default = bool, option.default
    elif option.type == tuple[str, ...] and option.parse is None:
        kind = list[str] | None
    elif option.parse is None:
        kind, default = option.type | None, option.default
    spelt = typer.Option(option.command_flag, help=option.help)
    return Parameter(
        option.name,
        Parameter.KEYWORD_ONLY,
        default=Parameter.empty if option.is_required else default,
        annotation=Annotated[kind, spelt],
    )


def with_words(arguments: Sequence[str]) -> list[str]:
    """Arguments in which a flag that may have a word has one: bare it means true, with `--no-` false."""
    spelt = {flag.command_flag: flag for flag in (*JOB_FLAGS.values(), *PLACE_FLAGS.values()) if flag.words}
    found: list[str] = []
    for place, argument in enumerate(arguments):
        positive = f"--{argument.removeprefix('--no-')}" if argument.startswith("--no-") else argument
        flag = spelt.get(positive)
        following = arguments[place + 1] if place + 1 < len(arguments) else ""
        if flag is None or (positive == argument and following in flag.words):
            found.append(argument)
            continue
        meant = positive == argument
        word = next(word for word, value in flag.words.items() if value is meant)
        found.append(f"{positive}={word}")
    return found


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
            help="A file of settings: DeepSpeed, Accelerate, TrainingArguments, LightningCLI (JSON, YAML), a "
            "training script; may be repeated. Options override it.",
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


def _parameter(option: Option, help_text: str | None) -> Parameter:
    """The parameter of an option: None where it is not given; its help shows the default."""
    shown = help_text or option.help
    if help_text is None and option.default not in (None, False, True, (), 0):
        shown += f" Default: {option.default}."
    flag = option.command_flag
    if option.words:
        kind: Any = str | None
    elif option.type is bool:
        kind = bool | None
        flag = f"{flag}/--no-{flag.removeprefix('--')}"
    elif option.type == tuple[str, ...]:
        kind = list[str] | None
    else:
        kind = (str if option.parse is not None or option.type is object else option.type) | None
    spelt = typer.Option(
        flag, help=shown, autocompletion=COMPLETERS.get(option.name), rich_help_panel=PANELS.get(option.group)
    )
    return Parameter(option.name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, spelt])


def _typed(flags: Mapping[str, Option], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, parsed."""
    return {name: _parsed(flags[name], value) for name, value in given.items() if value is not None and value != []}


def _job_arguments(
    model: str | None, job: str | None, flags: Mapping[str, Option], given: Mapping[str, Any]
) -> JobArguments:
    """The options of the command line, which override those of the job file."""
    typed = _typed(flags, given)
    if job is None:
        assert model is not None  # checked by the command
        return JobArguments(model, typed, frozenset(typed))
    from epochcast.predict.forecast.job_file import read_job

    job_options = without_replaced(read_job(job).given, typed)
    job_model = job_options.pop("model")
    usable = {name: value for name, value in job_options.items() if name in flags or name not in PLACE_FLAGS}
    if model is not None:
        usable.pop("fingerprint", None)
    return JobArguments(model or job_model, {**usable, **typed}, frozenset(typed))


def _with_settings(arguments: JobArguments, config: Sequence[str], flags: Mapping[str, Option]) -> JobArguments:
    """With what the files of `--config` and the script around the model say; they override a job of the job file.

    A script without a name is answered elsewhere, with the models in it.
    """
    from epochcast.predict.forecast.job_settings import filled

    typed = {name: value for name, value in arguments.options.items() if name in arguments.typed}
    given = typed if config else arguments.options
    read = filled(arguments.model, given, config, flags)
    options = {**without_replaced(arguments.options, read.options), **read.options}
    return replace(arguments, options=options, read=frozenset(set(read.options) - set(given)), notes=read.notes)


def _parsed(option: Option, value: Any) -> Any:
    """The parsed value of a flag; an error names the flag instead of the parameter."""
    try:
        return option.read(value)
    except BadInput as error:
        text = str(error)
        is_named = text.startswith(option.name)
        raise BadInput(option.command_flag + (text.removeprefix(option.name) if is_named else f": {text}")) from None


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
