"""What `epochcast` prints without arguments, and the three commands that it and `epochcast demo` offer to try.

Commands are printed as they work where they are read: a program that is not on the PATH is named by its path.
"""

import os
import shutil
import sys
from pathlib import Path

TRY = (
    (
        "time, memory and cost of a job",
        "forecast resnet50 --device A100 --batch 64 --dataset imagenet-1k",
    ),
    (
        "the cheapest machine that finishes within a day",
        "plan resnet50 --dataset imagenet-1k --epochs 90 --deadline 24h",
    ),
    (
        "whether a measured speed is normal, and what may slow it down",
        "check resnet50 --device V100 --batch 64 --observed 200img/s",
    ),
)
"""(what it answers, arguments)."""


def program() -> str:
    """What to type for this program: its name where the PATH has it, its path otherwise."""
    started = Path(sys.argv[0])
    if started.name == "__main__.py" and started.parent.name == "epochcast":
        return f"{_typed(Path(sys.executable))} -m epochcast"
    return _typed(started) if started.stem == "epochcast" else "epochcast"


def _typed(path: Path) -> str:
    on_path = shutil.which(path.name)
    if on_path is not None and Path(on_path).absolute() == path.absolute():
        return path.name
    near = os.path.relpath(path)
    return str(path) if near.startswith(os.pardir) else near


def to_try() -> str:
    """The three commands, each under a line that says what it answers."""
    typed = program()
    return "\n".join(f"  {what}\n    {typed} {arguments}" for what, arguments in TRY)


def guide() -> str:
    """A short introduction: what epochcast does, three commands, how to go on."""
    typed = program()
    return f"""\
epochcast forecasts training jobs of deep learning: time, memory and cost with 90 % intervals. It needs no GPU.

Try:
{to_try()}

Next:
  {typed} tour      asks three questions and forecasts your own job
  {typed} demo      one job on five GPUs
  {typed} --help    all commands
"""
