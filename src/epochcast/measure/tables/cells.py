"""Cells of a table that anybody may have written: numbers as text, words among numbers, empty cells.

A cell that cannot be used raises with the name of its column, so that it costs its row and no other.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from epochcast.measure.tables.row_errors import InvalidCell, MissingCell

Row = Mapping[str, Any]
MOST_COUNT = 10_000_000
"""Of GPUs, layers, samples: as many as a job may have."""
LEAST_SECONDS, MOST_SECONDS = 1e-9, 1e9
EMPTY = frozenset({"", "none", "null", "na", "n/a", "<na>"})
TRUE, FALSE = frozenset({"true", "yes", "1", "1.0"}), frozenset({"false", "no", "0", "0.0"})


def text(row: Row, column: str) -> str:
    """The words of a cell; empty where there are none."""
    value = row.get(column)
    return "" if value is None else str(value).strip()


def number(row: Row, column: str) -> float | None:
    """A finite number; None for an empty cell."""
    value = row.get(column)
    if value is None or (isinstance(value, str) and value.strip().casefold() in EMPTY):
        return None
    try:
        if isinstance(value, bool):
            raise ValueError
        number_value = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidCell(column, "a number", repr(text(row, column)[:60])) from None
    if not isfinite(number_value):
        raise InvalidCell(column, "a finite number", value)
    return number_value


def above_zero(row: Row, column: str) -> float | None:
    """A number above 0; None for an empty cell."""
    value = number(row, column)
    if value is not None and value <= 0:
        raise InvalidCell(column, "above 0", f"{value:g}")
    return value


def needed(row: Row, column: str) -> float:
    """A number above 0 that a row cannot be without."""
    value = above_zero(row, column)
    if value is None:
        raise MissingCell(column)
    return value


def count(row: Row, column: str) -> int | None:
    """A whole number, at least 1; None for an empty cell or 0, which tables write for "not used"."""
    value = number(row, column)
    if value is None or value == 0:
        return None
    if value < 1 or value != int(value):
        raise InvalidCell(column, "a whole number of at least 1", f"{value:g}")
    if value > MOST_COUNT:
        raise InvalidCell(column, f"at most {MOST_COUNT:,}", f"{value:g}")
    return int(value)


def seconds(row: Row, column: str) -> float | None:
    """A measured time; None for an empty cell."""
    value = above_zero(row, column)
    if value is not None:
        check_seconds(value, column)
    return value


def check_seconds(value: float, column: str) -> None:
    """Raise where a time was never measured: a picosecond, a thousand years."""
    if not LEAST_SECONDS <= value <= MOST_SECONDS:
        raise InvalidCell(column, f"between {LEAST_SECONDS:g} and {MOST_SECONDS:g} seconds", f"{value:g}")


def flag(row: Row, column: str) -> bool | None:
    """Whether something is so; None for an empty cell."""
    value = row.get(column)
    word = "" if value is None else str(value).strip().casefold()
    if word in EMPTY:
        return None
    if word in TRUE:
        return True
    if word in FALSE:
        return False
    raise InvalidCell(column, "true or false", repr(value))
