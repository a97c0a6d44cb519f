"""The option that names the database, and a bar for long work on it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

Database = Annotated[
    str | None,
    typer.Option(
        "--database",
        help="SQLite file or postgresql://… [default: EPOCHCAST_STORE, or a file in your data folder].",
    ),
]


@contextmanager
def counted(title: str) -> Iterator[Callable[[int], None]]:
    """On a terminal a line on standard error that tells how many were done; elsewhere nothing."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn(title), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done: bar.update(task, completed=done)
