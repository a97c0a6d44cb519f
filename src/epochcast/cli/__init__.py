"""The command line. Commands import what they need when they run, so that `--help` is quick."""

import sys

from epochcast.cli.app import run

__all__ = ["main"]


def main() -> None:
    """Entry point of the `epochcast` command."""
    sys.exit(run(sys.argv[1:]))
