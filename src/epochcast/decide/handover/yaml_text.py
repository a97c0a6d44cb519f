"""Plain values as YAML that everybody can read: block style, texts quoted as JSON, which YAML contains."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def manifest(document: Mapping[str, Any], notes: Sequence[str] = ()) -> str:
    """The text of a document, with notes as comments above it."""
    comments = [f"# {' '.join(note.split())}" for note in notes]
    return "\n".join([*comments, *_mapping(document, ""), ""])


def _mapping(document: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, value in document.items():
        yield from _entry(f"{indent}{key}:", value, indent)


def _entry(begin: str, value: Any, indent: str) -> Iterator[str]:
    match value:
        case Mapping() if value:
            yield begin
            yield from _mapping(value, f"{indent}  ")
        case list() | tuple() if value:
            yield begin
            for item in value:
                yield from _item(item, f"{indent}  ")
        case _:
            yield f"{begin} {json.dumps(value, ensure_ascii=False)}"


def _item(item: Any, indent: str) -> Iterator[str]:
    if isinstance(item, Mapping) and item:
        first, *rest = _mapping(item, f"{indent}  ")
        yield f"{indent}- {first.lstrip()}"
        yield from rest
    else:
        yield f"{indent}- {json.dumps(item, ensure_ascii=False)}"
