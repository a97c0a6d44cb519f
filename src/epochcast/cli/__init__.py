"""The command line. Commands import what they need when they run, so that `--help` is quick."""

import gc
import sys
from io import TextIOWrapper

__all__ = ["main"]


def main() -> None:
    """Entry point of the `epochcast` command."""
    # Modules and frozen values are no garbage: looking for it as often as Python does is a tenth of a short command.
    gc.set_threshold(100_000, 20, 20)
    from epochcast.cli.app import run

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks "×" shows "?", it does not end the program
    sys.exit(run(sys.argv[1:]))
