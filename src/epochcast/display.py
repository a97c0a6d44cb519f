"""Answers that draw themselves in rich and in notebooks, without knowing how.

Answers are made far left of where they are drawn. Whoever has the pictures (`api`) registers a view for each kind of
answer; one without a view shows its `repr`.
"""

from collections.abc import Callable
from io import StringIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

NOTEBOOK_COLUMNS = 120

_VIEWS: dict[type, Callable[[Any], "RenderableType"]] = {}


class Displayed:
    """Base of answers: `rich.print(answer)` and a notebook show its registered view."""

    def __rich__(self) -> "RenderableType":
        view = _VIEWS.get(type(self))
        return repr(self) if view is None else view(self)

    def _repr_html_(self) -> str:
        from rich.console import Console

        console = Console(width=NOTEBOOK_COLUMNS, record=True, file=StringIO(), highlight=False)
        console.print(self.__rich__())
        return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")


def register_view(kind: type[Displayed], view: Callable[[Any], "RenderableType"]) -> None:
    """Have answers of a kind drawn by `view`."""
    _VIEWS[kind] = view
