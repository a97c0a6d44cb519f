"""Checks of values read from a JSON or TOML file. An error names the place of the value (`ops[3].name`)."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeVar

from epochcast.errors import BadInput, EpochcastError

E = TypeVar("E", bound=Enum)
T = TypeVar("T")


def checked_like(default: object, value: object, place: str) -> object:
    """The value, if it has the type of the default; a list becomes a tuple."""
    if isinstance(default, tuple) and isinstance(value, list):
        item: type = str if any(isinstance(v, str) for v in (*default, *value)) else int
        if all(type(v) is item for v in value):
            return tuple(value)
    elif type(value) is type(default):
        return value
    elif type(default) is float and type(value) is int:
        return float(value)
    expected = (
        "a list"
        if isinstance(default, tuple)
        else {bool: "true or false", int: "a whole number", float: "a number"}.get(type(default), "text")
    )
    raise BadInput(f"{place} must be {expected}, got {value!r}")


def row_of(row: object, place: str, least: int, defaults: list[Any]) -> list[Any]:
    """At least `least` entries; missing ones at the end come from `defaults`."""
    most = least + len(defaults)
    if not isinstance(row, list) or not least <= len(row) <= most:
        raise BadInput(f"{place} must be a list of {least} to {most} entries, got {row!r}")
    return [*row, *defaults[len(row) - least :]]


def enum_member(enum: type[E], value: object, place: str) -> E:
    """The member of an enum with this value."""
    try:
        return enum(value)
    except ValueError:
        raise BadInput(f"{place}: no {value!r}; known: {', '.join(m.value for m in enum)}") from None


def built(place: str, build: Callable[[], T]) -> T:
    """What `build` returns; an error it raises is prefixed with the place."""
    try:
        return build()
    except EpochcastError as error:
        raise BadInput(f"{place}: {error}") from None
    except (TypeError, ValueError) as error:
        raise BadInput(f"{place}: {error}") from None


def is_int(value: object) -> bool:
    """A whole number; true and false do not count."""
    return type(value) is int


def is_pair(value: object) -> bool:
    """Two whole numbers."""
    return isinstance(value, list) and len(value) == 2 and all(is_int(v) for v in value)


def mapping(json: object, place: str) -> Mapping[str, Any]:
    """A JSON object."""
    if not isinstance(json, Mapping):
        raise BadInput(f"{place} must be an object, got {type(json).__name__}")
    return json


def value_of(document: Mapping[str, Any], key: str, place: str) -> Any:
    """The value of a required key."""
    if key not in document:
        raise BadInput(f"{place} has no {key!r}")
    return document[key]


def rows_of(document: Mapping[str, Any], key: str, place: str) -> list[Any]:
    """A list under a key."""
    value = value_of(document, key, place)
    if not isinstance(value, list):
        raise BadInput(f"{place}.{key} must be a list, got {value!r}")
    return value


def text_of(document: Mapping[str, Any], key: str, place: str) -> str:
    """A text under a key."""
    value = value_of(document, key, place)
    if not isinstance(value, str):
        raise BadInput(f"{place}.{key} must be text, got {value!r}")
    return value


def count_of(document: Mapping[str, Any], key: str, place: str) -> int:
    """A whole number of at least 1 under a key."""
    value = value_of(document, key, place)
    if not is_int(value) or value < 1:
        raise BadInput(f"{place}.{key} must be a whole number of at least 1, got {value!r}")
    return int(value)


def texts_of(document: Mapping[str, Any], key: str, place: str) -> tuple[str, ...]:
    """A list of texts under a key."""
    values = rows_of(document, key, place)
    if not all(isinstance(value, str) for value in values):
        raise BadInput(f"{place}.{key} must be a list of texts, got {values!r}")
    return tuple(values)
