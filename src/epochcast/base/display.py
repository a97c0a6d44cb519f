"""Answers that show themselves in rich and in notebooks: each kind of answer names its view, a function of
`surfaces.render`.

The views are imported when something is shown, by name: this module is far left of them.
"""

from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from rich.console import RenderableType

NOTEBOOK_COLUMNS = 120
VIEWS = "epochcast.surfaces.render"


class Displayed:
    """Base of answers: `rich.print(answer)` and a notebook show the function of `VIEWS` that the class names."""

    view: ClassVar[str]

    def __rich__(self) -> "RenderableType":
        drawn: RenderableType = getattr(import_module(VIEWS), self.view)(self)
        return drawn

    def _repr_html_(self) -> str:
        from rich.console import Console

        console = Console(width=NOTEBOOK_COLUMNS, record=True, file=StringIO(), highlight=False)
        console.print(self.__rich__())
        return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")
