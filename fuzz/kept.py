"""Inputs on disk, whole, so that what was found can be read once more: `python -m fuzz --replay FILE…`.

JSON, with tags for what it has no form of: {"@bytes": base64}, {"@tuple": […]}, {"@dict": [[key, value], …]}.
"""

import json
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any


def packed(case: Any) -> Any:
    """An input as JSON has it."""
    match case:
        case bytes():
            return {"@bytes": b64encode(case).decode()}
        case tuple():
            return {"@tuple": [packed(item) for item in case]}
        case list():
            return [packed(item) for item in case]
        case dict():
            return {"@dict": [[packed(key), packed(value)] for key, value in case.items()]}
        case _:
            return case


def unpacked(value: Any) -> Any:
    """The input back."""
    match value:
        case {"@bytes": str(text)}:
            return b64decode(text)
        case {"@tuple": list(items)}:
            return tuple(unpacked(item) for item in items)
        case {"@dict": list(pairs)}:
            return {unpacked(key): unpacked(inner) for key, inner in pairs}
        case list():
            return [unpacked(item) for item in value]
        case _:
            return value


def keep(file: Path, target: str, case: Any) -> None:
    """Write an input down."""
    file.write_text(json.dumps({"target": target, "input": packed(case)}), encoding="utf-8")


def read(file: Path) -> tuple[str, Any]:
    """The target of a file, and its input."""
    document = json.loads(file.read_text(encoding="utf-8"))
    return document["target"], unpacked(document["input"])
