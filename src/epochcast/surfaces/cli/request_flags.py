"""Flags of a command from the fields of its request: a dataclass that declares options (`base.options`).

The first parameter of the command is the request.
"""

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import typer

from epochcast.base.options import options_of
from epochcast.surfaces.cli.job_flags import Function, _parameter, _typed, add_command


def request_command(
    kind: type, *, app: typer.Typer, epilog: str, flags: Mapping[str, str] | None = None
) -> Callable[[Function], Function]:
    """Register a command that takes a request of a kind. `flags` replaces the help of an option by name."""
    declared = {option.name: option for option in options_of(kind)}

    def register(command: Function) -> Function:
        def run(**arguments: Any) -> int:
            given = {name: arguments.pop(name) for name in declared}
            return command(kind(**_typed(declared, given)), **arguments)

        own = list(signature(command, eval_str=True).parameters.values())[1:]
        options = [_parameter(option, (flags or {}).get(name, option.help)) for name, option in declared.items()]
        add_command(run, command, [*options, *own], epilog=epilog, app=app)
        return command

    return register
