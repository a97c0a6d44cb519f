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
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidCell(column, "a number", repr(text(row, column)[:60])) from None
    if not isfinite(found):
        raise InvalidCell(column, "a finite number", value)
    return found


def above_zero(row: Row, column: str) -> float | None:
    """A number above 0; None for an empty cell."""
    found = number(row, column)
    if found is not None and found <= 0:
        raise InvalidCell(column, "above 0", f"{found:g}")
    return found


def needed(row: Row, column: str) -> float:
    """A number above 0 that a row cannot be without."""
    found = above_zero(row, column)
    if found is None:
        raise MissingCell(column)
    return found


def count(row: Row, column: str) -> int | None:
    """A whole number, at least 1; None for an empty cell or 0, which tables write for "not used"."""
    found = number(row, column)
    if found is None or found == 0:
        return None
    if found < 1 or found != int(found):
        raise InvalidCell(column, "a whole number of at least 1", f"{found:g}")
    if found > MOST_COUNT:
        raise InvalidCell(column, f"at most {MOST_COUNT:,}", f"{found:g}")
    return int(found)


def seconds(row: Row, column: str) -> float | None:
    """A measured time; None for an empty cell."""
    found = above_zero(row, column)
    if found is not None:
        check_seconds(found, column)
    return found


def check_seconds(found: float, column: str) -> None:
    """Raise where a time was never measured: a picosecond, a thousand years."""
    if not LEAST_SECONDS <= found <= MOST_SECONDS:
        raise InvalidCell(column, f"between {LEAST_SECONDS:g} and {MOST_SECONDS:g} seconds", f"{found:g}")


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
