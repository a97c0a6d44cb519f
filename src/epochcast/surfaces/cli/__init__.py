"""The command line. Commands import what they need when they run, so that `--help` is quick."""

import gc
import sys
from io import TextIOWrapper

__all__ = ["main"]


def main() -> None:
    """Entry point of the `epochcast` command."""
    # Modules and frozen values are never garbage; collecting as often as Python does takes a tenth of a short command.
    gc.set_threshold(100_000, 20, 20)
    from epochcast.surfaces.cli.command_line import run

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without "×" shows "?" instead of failing
    sys.exit(run(sys.argv[1:]))
