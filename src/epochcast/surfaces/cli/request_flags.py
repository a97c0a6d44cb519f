"""Flags of a command from declared options (`base.options`): its parameters, and the values that were typed.

The options are those of a job and of where it runs (`job_flags.py`), and of the request of a verb. `request_command`
registers a command whose first parameter is its request.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer

from epochcast.base.options import Option, options_of
from epochcast.errors import BadInput, InvalidOption, MissingUnit
from epochcast.surfaces.cli.command_line import FORECASTS, app
from epochcast.surfaces.cli.completion import COMPLETERS
from epochcast.surfaces.cli.help_groups import GroupedCommand

Function = Callable[..., int]

REQUEST_FLAGS: dict[str, str] = {}
"""How the command line spells the options of requests, by their names."""

# Headings of the help text, by the group of an option.
PANELS: Mapping[str, str] = {
    "model": "Model",
    "recipe": "Training",
    "data": "Data and duration",
    "loader": "Loader",
    "generation": "Generation",
    "post-training": "Post-training",
    "place": "Hardware",
    "framework": "Framework",
    "handover": "Scheduler files",
}


@dataclass(frozen=True)
class OptionFlags:
    """Options as flags, by name. A flag that is not typed gives no value: the dataclass or a file has the default."""

    options: Mapping[str, Option]

    @classmethod
    def of(
        cls,
        request: type,
        help_texts: Mapping[str, str] | None = None,
        parsers: Mapping[str, Callable[[str], Any]] | None = None,
    ) -> "OptionFlags":
        """The options of a request that the command line has; `help_texts` and `parsers` replace those of some."""
        help_texts, parsers = help_texts or {}, parsers or {}
        declared = [each for each in options_of(request) if each.flag is not None]
        REQUEST_FLAGS.update({each.name: each.command_flag for each in declared})
        return cls(
            {
                each.name: replace(
                    each, help=help_texts.get(each.name, each.help), parse=parsers.get(each.name, each.parse)
                )
                for each in declared
            }
        )

    @property
    def parameters(self) -> list[Parameter]:
        """A parameter of the command for each flag."""
        return [_parameter(option) for option in self.options.values()]

    def read(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The values that were typed, parsed; all flags are removed from the arguments."""
        typed = {name: arguments.pop(name) for name in self.options}
        return {
            name: _parsed(self.options[name], value)
            for name, value in typed.items()
            if value is not None and value != []
        }


def _parameter(option: Option) -> Parameter:
    """The parameter of an option: None where it is not typed; its help ends in the default."""
    flag, kind = option.command_flag, option.type
    if option.words or option.parse is not None or kind is object:
        kind = str
    elif kind is bool:
        flag = f"{flag}/--no-{flag.removeprefix('--')}"
    elif option.type == tuple[str, ...]:
        kind = list[str]
    info = typer.Option(
        flag,
        help=_help(option),
        autocompletion=COMPLETERS.get(option.name),
        rich_help_panel=PANELS.get(option.group),
    )
    default = Parameter.empty if option.is_required else None
    return Parameter(option.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind | None, info])


def _help(option: Option) -> str:
    default = option.default_text
    if default is None and option.default not in (None, False, True, (), 0):
        default = ",".join(option.default) if isinstance(option.default, tuple) else str(option.default)
    return f"{option.help.rstrip('.')} [default: {default}]." if default else option.help


def _parsed(option: Option, value: Any) -> Any:
    """The parsed value of a flag; an error names the flag instead of the parameter."""
    flag = option.command_flag
    try:
        return option.read(value)
    except MissingUnit as error:
        raise MissingUnit(error.text, error.example, flag) from None
    except InvalidOption as error:
        raise InvalidOption(flag, error.problem) from None
    except BadInput as error:
        raise BadInput(f"{flag}: {error}") from None


def add_command(
    run: Function, command: Function, parameters: Sequence[Parameter], *, epilog: str, app: typer.Typer = app
) -> None:
    """Register `run`, which takes its parameters by name, under the name and help of a command."""
    parameters = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]
    setattr(run, "__signature__", Signature(parameters, return_annotation=int))  # noqa: B010
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__doc__, run.__name__ = command.__doc__, command.__name__
    app.command(name=command.__name__, epilog=epilog, cls=GroupedCommand, rich_help_panel=FORECASTS)(run)


def command_parameters(command: Function, skip: int) -> list[Parameter]:
    """The parameters of a command behind the first ones: its job and its request."""
    return list(signature(command, eval_str=True).parameters.values())[skip:]


def request_command(
    kind: type, *, app: typer.Typer = app, epilog: str, flags: Mapping[str, str] | None = None
) -> Callable[[Function], Function]:
    """Register a command that takes a request of a kind. `flags` replaces the help of an option by name."""
    option_flags = OptionFlags.of(kind, flags)

    def register(command: Function) -> Function:
        def run(**arguments: Any) -> int:
            return command(kind(**option_flags.read(arguments)), **arguments)

        add_command(run, command, [*option_flags.parameters, *command_parameters(command, 1)], epilog=epilog, app=app)
        return command

    return register
