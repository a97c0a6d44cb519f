"""The options of a job and of where it runs, as arguments of a command. They are declared in `Job` and `Where`.

A command takes an `Asked` first; `job_command` puts MODEL, `--job` and the options in front of its own, and hands on
what was given. With `--job NAME` the job of `epochcast.toml` counts, and what the command line says beside it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from epochcast.cli.app import app
from epochcast.errors import BadInput
from epochcast.forecasting.job import JOB_OPTIONS
from epochcast.forecasting.options import Option
from epochcast.forecasting.where import PLACE_OPTIONS

MODEL_HELP = next(one.help for one in JOB_OPTIONS if one.name == "model")
JOB_FLAGS: Mapping[str, Option] = {one.name: one for one in JOB_OPTIONS if one.name != "model" and one.flag is not None}
PLACE_FLAGS: Mapping[str, Option] = {one.name: one for one in PLACE_OPTIONS}

Function = Callable[..., int]


@dataclass(frozen=True)
class Asked:
    """What a command line asks about: the model, and the options that were given, by name and read."""

    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    typed: frozenset[str] = frozenset()
    """Which of the options the command line gave; the others are the job file's."""

    def without(self, *names: str) -> dict[str, Any]:
        """The options but for some."""
        return {name: value for name, value in self.options.items() if name not in names}


def job_command(
    *,
    epilog: str,
    needs: Sequence[str] = (),
    leave_out: Sequence[str] = (),
    with_place: bool = True,
    app: typer.Typer = app,
    **help_texts: str,
) -> Callable[[Function], Function]:
    """Register a command about a job. `needs` are options it cannot do without, `leave_out` those it has no use for;
    `help_texts` are said of an option instead of its own help.
    """
    declared = {**JOB_FLAGS, **(PLACE_FLAGS if with_place else {})}
    flags = {name: one for name, one in declared.items() if name not in leave_out}

    def register(command: Function) -> Function:
        def run(**arguments: Any) -> int:
            given = {name: arguments.pop(name) for name in flags}
            model, job = arguments.pop("model"), arguments.pop("job")
            if model is None and job is None:
                raise missing("argument 'MODEL' (or --job NAME)", command)
            asked = _asked(model, job, flags, given)
            for name in needs:
                if asked.options.get(name) is None:
                    _answer_script(asked.model)
                    raise missing(f"option '{flags[name].command_flag}'", command)
            return command(asked, **arguments)

        own = list(signature(command, eval_str=True).parameters.values())[1:]
        parameters = [*_LEADING, *(_parameter(one, help_texts.get(name)) for name, one in flags.items())]
        parameters = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in (*parameters, *own)]
        setattr(run, "__signature__", Signature(parameters, return_annotation=int))  # noqa: B010
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run.__doc__, run.__name__ = command.__doc__, command.__name__
        app.command(name=command.__name__, epilog=epilog)(run)
        return command

    return register


def _answer_script(model: str) -> None:
    """Whoever points at a script is first told what is in it, whatever else the command line lacks."""
    if model.endswith((".py", ".ipynb")):
        from epochcast.capture.resolve import find_model

        find_model(model)


def missing(what: str, command: Function) -> BadInput:
    """A command line that leaves out what the command needs."""
    group = "jobs " if command.__name__ == "init" else ""
    return BadInput(f"Missing {what}; see: epochcast {group}{command.__name__} --help")


_LEADING = (
    Parameter(
        "model",
        Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[str | None, typer.Argument(help=MODEL_HELP, show_default=False)],
    ),
    Parameter(
        "job",
        Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[
            str | None, typer.Option(help="A job of epochcast.toml; MODEL and options given beside it override it.")
        ],
    ),
)


def _parameter(one: Option, help_text: str | None) -> Parameter:
    """An option that is None where the command line does not give it; its help says what counts then."""
    shown = help_text or one.help
    if help_text is None and one.default not in (None, False, True, (), 0):
        shown += f" Default: {one.default}."
    flag = one.command_flag
    if one.type is bool:
        kind: Any = bool | None
        flag = f"{flag}/--no-{flag.removeprefix('--')}"
    elif one.type == tuple[str, ...]:
        kind = list[str] | None
    else:
        kind = (str if one.parse is not None or one.type is object else one.type) | None
    return Parameter(
        one.name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, typer.Option(flag, help=shown)]
    )


def _asked(model: str | None, job: str | None, flags: Mapping[str, Option], given: Mapping[str, Any]) -> Asked:
    """What the command line says, over what the job file says."""
    typed = {name: _read(flags[name], value) for name, value in given.items() if value is not None and value != []}
    if job is None:
        assert model is not None  # the command has seen to it
        return Asked(model, typed, frozenset(typed))
    from epochcast.forecasting.jobfile import read_job

    written = dict(read_job(job).given)
    if "batch" in typed or "global_batch" in typed:
        written.pop("batch", None)
        written.pop("global_batch", None)
    named = written.pop("model")
    known = {name: value for name, value in written.items() if name in flags or name not in PLACE_FLAGS}
    if model is not None:
        known.pop("fingerprint", None)
    return Asked(model or named, {**known, **typed}, frozenset(typed))


def _read(one: Option, value: Any) -> Any:
    """The value of a flag; what is wrong with it is said of the flag."""
    try:
        return one.read(value)
    except BadInput as error:
        text = str(error)
        raise BadInput(one.command_flag + text.removeprefix(one.name) if text.startswith(one.name) else text) from None


def save_job(name: str, asked: Asked, file: Path | None = None) -> Path:
    """Append what was asked to a job file: the one given, the nearest, or a new one here."""
    from epochcast.forecasting.jobfile import FILE, append_job, find_job_file, seen_from

    try:
        path = file or find_job_file()
    except BadInput:
        path = Path(FILE)
    append_job(path, name, {"model": seen_from(asked.model, path.parent), **asked.options})
    return path
