"""Reading the keys of a row: what is wrong is one line that names the row and the key."""

from collections.abc import Iterable, Mapping
from typing import Any

from epochcast.errors import BadInput, UnknownName
from epochcast.interval import Interval

Row = Mapping[str, Any]


def check_keys(row: Row, known: Iterable[str], what: str) -> None:
    """Refuse keys that are none: a misspelt one would have no effect."""
    names = set(known)
    for key in row:
        if key not in names:
            raise BadInput(f"{what}: {UnknownName('key', str(key), names)}")


def text(row: Row, key: str, what: str) -> str:
    """A text that is not empty."""
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise BadInput(f"{key} of {what} is {value!r}; a text is needed")
    return value


def number(row: Row, key: str, what: str, default: float | None = None) -> float:
    """A number; without a default one is needed."""
    value = row.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(f"{key} of {what} is {value!r}; a number is needed")
    try:
        return float(value)
    except OverflowError:
        raise BadInput(f"{key} of {what} is too large") from None


def optional_number(row: Row, key: str, what: str) -> float | None:
    """A number, or None where nobody says one."""
    return None if row.get(key) is None else number(row, key, what)


def flag(row: Row, key: str, what: str, default: bool) -> bool:
    """True or false."""
    value = row.get(key, default)
    if not isinstance(value, bool):
        raise BadInput(f"{key} of {what} is {value!r}; true or false is needed")
    return value


def count(value: Any, what: str, least: int = 1) -> int:
    """A whole number."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadInput(f"{what} is {value!r}; a whole number of at least {least} is needed")
    return value


def names(row: Row, key: str, what: str) -> tuple[str, ...]:
    """A list of texts; nothing where there is none."""
    value = row.get(key, [])
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        raise BadInput(f"{key} of {what} is {value!r}; a list of names is needed")
    return tuple(value)


def interval(told: Any, what: str) -> Interval:
    """A number, which is exact, or [low, mid, high]."""
    ends = told if isinstance(told, list) else [told]
    if not all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends) or len(ends) not in (1, 3):
        raise BadInput(f"{what} is {told!r}; seconds or [low, mid, high] are needed")
    try:
        return Interval(*map(float, ends)) if len(ends) == 3 else Interval.exact(float(ends[0]))
    except (ValueError, OverflowError) as error:
        raise BadInput(f"{what}: {error}") from None
