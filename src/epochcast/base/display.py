"""Answers that show themselves in rich and in notebooks: each kind of answer names its view, a function of
`surfaces.render`.

The views are imported when something is shown, by name: this module is far left of them.
"""

from collections.abc import Iterator, Sequence
from html import escape
from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

# Notebooks fold lines and scroll tables themselves.
NOTEBOOK_COLUMNS = 1000
VIEWS = "epochcast.surfaces.render"


class Displayed:
    """Base of answers: `rich.print(answer)` and a notebook show the function of `VIEWS` that the class names."""

    view: ClassVar[str]

    def __rich__(self) -> "RenderableType":
        drawn: RenderableType = getattr(import_module(VIEWS), self.view)(self)
        return drawn

    def _repr_html_(self) -> str:
        from rich.console import Console

        # In Jupyter, rich would show the answer a second time by itself.
        console = Console(width=NOTEBOOK_COLUMNS, file=StringIO(), force_jupyter=False, highlight=False)
        return "".join(_html(self.__rich__(), console))


def _html(drawn: "RenderableType", console: "Console") -> Iterator[str]:
    """Tables as HTML tables, everything between them as text."""
    from rich.console import Group
    from rich.segment import Segment
    from rich.table import Table
    from rich.text import Text

    if isinstance(drawn, Table):
        yield _html_table(drawn, console)
        return
    parts: list[Any] = []
    if isinstance(drawn, Group):
        parts = drawn.renderables
    elif hasattr(drawn, "__rich__"):
        parts = [drawn.__rich__()]
    elif not isinstance(drawn, str | Text):
        parts = list(drawn.__rich_console__(console, console.options))
    if not parts or any(isinstance(part, Segment) for part in parts):
        if text := _text(drawn, console):
            yield f'<p style="white-space: pre-wrap">{escape(text)}</p>'
        return
    for part in parts:
        yield from _html(part, console)


def _html_table(table: "Table", console: "Console") -> str:
    columns = [[_text(cell, console) for cell in (column.header, *column.cells)] for column in table.columns]
    sides = ["right" if column.justify == "right" else "left" for column in table.columns]

    def line(tag: str, cells: Sequence[str]) -> str:
        pairs = zip(sides, cells, strict=True)
        return "".join(f'<{tag} style="text-align: {side}">{escape(cell)}</{tag}>' for side, cell in pairs)

    head, *rows = zip(*columns, strict=True)
    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    heading = f"<thead><tr>{line('th', head)}</tr></thead>" if table.show_header else ""
    return f"<table>{heading}<tbody>{body}</tbody></table>"


def _text(drawn: "RenderableType", console: "Console") -> str:
    """What is drawn, without style and without the space that fills lines."""
    text = "".join(segment.text for segment in console.render(drawn))
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
