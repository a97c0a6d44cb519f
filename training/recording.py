"""The terminal recording of the README: the commands that `epochcast` itself offers, run, and drawn as SVG.

python -m training.recording        writes docs/pictures/terminal.svg
"""

import io
import subprocess
import sys
from collections.abc import Mapping
from os import environ
from pathlib import Path
from shlex import split

from rich.console import Console
from rich.text import Text

from epochcast.surfaces.cli.guide import TRY

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "terminal.svg"
COLUMNS = 100
RECORDED = (TRY[0][1], TRY[2][1])
"""Short answers; that of `plan` fills a page."""
_TERMINAL: Mapping[str, str] = {"COLUMNS": str(COLUMNS), "FORCE_COLOR": "1", "TERM": "xterm-256color"}


def recorded() -> str:
    """The SVG of a session: every command with what it prints."""
    console = Console(width=COLUMNS, record=True, file=io.StringIO(), force_terminal=True)
    for arguments in RECORDED:
        command = [sys.executable, "-m", "epochcast", *split(arguments)]
        done = subprocess.run(command, env=environ | _TERMINAL, capture_output=True, text=True, check=True)
        console.print(Text(f"$ epochcast {arguments}", style="bold"))
        console.print(Text.from_ansi(done.stdout))
    return console.export_svg(title="epochcast", unique_id="terminal")


if __name__ == "__main__":
    PICTURE.write_text(recorded(), encoding="utf-8")
