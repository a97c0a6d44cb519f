"""Where the measurements are, and where trained models are written."""

import os
import sys
import tempfile
from pathlib import Path

from epochcast.errors import BadInput

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "epochcast"
DOCS = ROOT / "docs"


def data_folder() -> Path:
    """The folder of measurements that EPOCHCAST_DATA names."""
    place = os.environ.get("EPOCHCAST_DATA")
    if not place or not Path(place).is_dir():
        raise BadInput("EPOCHCAST_DATA names no folder: the measurements are needed to train")
    return Path(place)


def write(path: Path, data: bytes) -> None:
    """Write a file; it is never half written."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(data)
    Path(file.name).chmod(0o644)
    Path(file.name).replace(path)


def say(text: str) -> None:
    """Progress, on stderr."""
    sys.stderr.write(f"{text}\n")
