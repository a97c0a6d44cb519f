"""The screen of `epochcast track --follow`: redrawn in place in a terminal, nothing where lines are asked for."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epochcast.observe.runs.sweep import Sweep
    from epochcast.observe.runs.tracked_log import TrackedLog

Draw = Callable[["Sequence[TrackedLog]", "Sweep | None", Sequence[str]], None]


@contextmanager
def screen(as_json: bool) -> Iterator[Draw | None]:
    """A function that draws logs, a sweep and the logs that are waited for; None where there is no terminal."""
    if as_json or not sys.stdout.isatty():
        yield None
        return
    from rich.console import Console
    from rich.live import Live

    from epochcast.surfaces import render

    console = Console(highlight=False, emoji=False, markup=False)
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:

        def draw(logs: "Sequence[TrackedLog]", whole: "Sweep | None", waiting: Sequence[str]) -> None:
            live.update(render.track_live(logs, whole, waiting), refresh=True)

        yield draw
