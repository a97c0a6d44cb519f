"""Help in groups: options of a command, and commands, under headings. Drawn without rich, which loads slowly."""

from typing import Any

from typer.core import TyperCommand, TyperGroup

COMMAND_HEADINGS = ("First steps", "Forecasts", "Measurements", "Catalogues")
"""Of the commands, in the order of the help text."""
ARGUMENTS, OTHERS = "Arguments", "Options"

Sections = dict[str, list[tuple[str, str]]]


def _write(formatter: Any, sections: Sections) -> None:
    for title, records in sections.items():
        with formatter.section(title):
            formatter.write_dl(records)


def _option_sections(command: Any, context: Any) -> Sections:
    """Records by the heading of each option; those without one last."""
    sections: Sections = {}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None:
            continue
        is_argument = parameter.param_type_name == "argument"
        title = getattr(parameter, "rich_help_panel", None) or (ARGUMENTS if is_argument else OTHERS)
        sections.setdefault(title, []).append(record)
    return {**{t: r for t, r in sections.items() if t != OTHERS}, **{t: r for t, r in sections.items() if t == OTHERS}}


class GroupedCommand(TyperCommand):
    """A command whose options stand under headings."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, group by group."""
        _write(formatter, _option_sections(self, ctx))


class GroupedCommands(TyperGroup):
    """Commands under headings."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, then the commands."""
        _write(formatter, _option_sections(self, ctx))
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, group by group."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        shown = [(name, command) for name, command in commands if command is not None and not command.hidden]
        limit = formatter.width - 6 - max((len(name) for name, _ in shown), default=0)
        sections: Sections = {title: [] for title in COMMAND_HEADINGS}
        for name, command in shown:
            title = getattr(command, "rich_help_panel", None) or "Commands"
            sections.setdefault(title, []).append((name, command.get_short_help_str(limit)))
        _write(formatter, {title: records for title, records in sections.items() if records})
