"""What a terminal shows while a model is captured: its name and how long it has taken."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def capture_clock(name: str) -> Iterator[None]:
    """A clock on standard error, in a terminal alone; it is gone when the capture has ended."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("capturing {task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as progress:
        progress.add_task(name, total=None)
        yield
