"""Columns of a table that anybody may have written, as numbers, texts and flags; a cell that is none costs its row."""

from collections.abc import Iterable
from math import isnan
from typing import TYPE_CHECKING

import polars as pl

from epochcast.measure.tables.cells import EMPTY, FALSE, LEAST_SECONDS, MOST_SECONDS, TRUE
from epochcast.measure.tables.row_errors import InvalidCell

if TYPE_CHECKING:
    from polars import DataFrame, Series

MOST_SIZE = 1e12
"""Of a batch, a side, a number of channels."""
_MOST_SHOWN = 160  # characters of a cell in a message


def typed(
    frame: "DataFrame",
    *,
    sizes: Iterable[str] = (),
    seconds: Iterable[str] = (),
    texts: Iterable[str] = (),
    flags: Iterable[str] = (),
) -> tuple["DataFrame", dict[int, InvalidCell]]:
    """The table with these columns, as far as it has them, as numbers from 0 on, times, texts and true or false. A
    cell that is none of its kind is empty in it, and its row has an error.
    """
    errors: dict[int, InvalidCell] = {}
    columns = []
    for name in (name for name in sizes if name in frame.columns):
        columns.append(_numbers(frame[name], 0.0, MOST_SIZE, errors))
    for name in (name for name in seconds if name in frame.columns):
        columns.append(_numbers(frame[name], LEAST_SECONDS, MOST_SECONDS, errors))
    for name in (name for name in flags if name in frame.columns):
        columns.append(_flags(frame[name], errors))
    columns += [frame[name].cast(pl.String, strict=False) for name in texts if name in frame.columns]
    return frame.with_columns(columns), errors


def _cells(column: "Series") -> "Series":
    """As texts, None where a cell says that there is nothing."""
    texts = column.cast(pl.String, strict=False).str.strip_chars()
    return texts.set(texts.str.to_lowercase().is_in(list(EMPTY)), None)


def _numbers(column: "Series", least: float, most: float, errors: dict[int, InvalidCell]) -> "Series":
    cells = _cells(column)
    numbers = (column if column.dtype.is_numeric() else cells).cast(pl.Float64, strict=False)
    is_wrong = cells.is_not_null() & ~numbers.is_between(least, most).fill_null(False)
    for row in is_wrong.arg_true().to_list():
        wanted = _wanted(numbers[row], least, most)
        errors.setdefault(row, InvalidCell(column.name, wanted, str(cells[row])[:_MOST_SHOWN]))
    return numbers.set(is_wrong, None)


def _wanted(number: float | None, least: float, most: float) -> str:
    if number is None or isnan(number):
        return "a number"
    return "above 0" if number <= 0 < least else f"a number between {least:g} and {most:g}"


def _flags(column: "Series", errors: dict[int, InvalidCell]) -> "Series":
    cells = _cells(column).str.to_lowercase()
    is_true, is_false = cells.is_in(list(TRUE)).fill_null(False), cells.is_in(list(FALSE)).fill_null(False)
    for row in (cells.is_not_null() & ~is_true & ~is_false).arg_true().to_list():
        errors.setdefault(row, InvalidCell(column.name, "true or false", repr(cells[row])[:_MOST_SHOWN]))
    return is_true.set(~is_true & ~is_false, None).rename(column.name)
