"""The config of a Keras model out of a `.keras` archive, a JSON file or a live object; weights are not read.

A config is {"class_name": …, "config": …}. Only class names, numbers and names are read; nothing is called.
"""

import zipfile
import zlib
from pathlib import Path
from typing import Any

from epochcast.base.documents import parse_json
from epochcast.errors import BadInput

# A config of a thousand layers is about a megabyte; what unpacks to more than this is not a config.
MOST_BYTES = 64 * 2**20

Config = dict[str, Any]


def read_config(path: Path) -> Config:
    """The model's config, from an archive or a JSON file by its ending."""
    try:
        text = _from_archive(path) if path.suffix.casefold() == ".keras" else _from_json(path)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror or error}") from None
    return parsed(text, path.name)


def parsed(text: bytes, label: str) -> Config:
    """The config in a JSON text."""
    document = parse_json(text, f"{label}: the model's config")
    if not isinstance(document, dict) or not isinstance(document.get("class_name"), str):
        raise BadInput(f"{label} is not a Keras model: its config has no class_name")
    return document


def live_config(model: object) -> Config:
    """The config of a keras.Model on any backend."""
    to_json = getattr(model, "to_json", None)
    name = type(model).__name__
    if not callable(to_json):
        raise BadInput(f"{name} is not a Keras model")
    try:
        text = to_json()
    except (NotImplementedError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(
            f"Keras model {name} has no config ({str(error).splitlines()[0][:120]}); build it functionally"
        ) from None
    return parsed(text.encode(), name)


def _from_archive(path: Path) -> bytes:
    try:
        with zipfile.ZipFile(path) as archive:
            if "config.json" not in archive.namelist():
                raise BadInput(f"{path.name} is not a Keras archive: it has no config.json")
            with archive.open("config.json") as stream:
                text = stream.read(MOST_BYTES + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{path.name} is not a Keras archive, or it is truncated") from None
    return _checked(text, path.name)


def _from_json(path: Path) -> bytes:
    with path.open("rb") as stream:
        return _checked(stream.read(MOST_BYTES + 1), path.name)


def _checked(text: bytes, label: str) -> bytes:
    if len(text) > MOST_BYTES:
        raise BadInput(f"{label}: its config is larger than {MOST_BYTES} bytes, too large for a model")
    return text
