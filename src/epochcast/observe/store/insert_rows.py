"""Rows that may be there already, in both kinds of databases; and many rows in few statements.

SQLite is called without Python's lock. A thread that writes row by row has to get it back after each, and where another
thread is busy it waits some milliseconds every time; so many rows go into one statement.
"""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

# Values in one question: SQLite takes 32,766.
MOST_VALUES = 10_000
# Rows in one statement: 256 reports have 4,608 values.
MOST_BLOCK = 256

Row = TypeVar("Row")


def upsert(connection: Connection, table: Any) -> Any:
    """An insertion that may say what happens to a row that is there already."""
    return (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(table)


def or_nothing(connection: Connection, table: Any) -> Any:
    """An insertion that leaves what is there already."""
    return upsert(connection, table).on_conflict_do_nothing()


def parts_of(values: Sequence[Row], most: int = MOST_VALUES) -> Iterator[Sequence[Row]]:
    """Values, so many at a time: by default as many as one statement takes."""
    for begin in range(0, len(values), most):
        yield values[begin : begin + most]


def blocks_of(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Rows in blocks of 256 and of smaller powers of two: a few statements that the database has read before."""
    begin, size = 0, MOST_BLOCK
    while begin < len(rows):
        while size > len(rows) - begin:
            size //= 2
        yield rows[begin : begin + size]
        begin += size


def placeholders(rows: int, columns: int) -> str:
    """Of a statement of SQLite that takes so many rows: (?, ?), (?, ?)"""
    return ", ".join([f"({', '.join('?' * columns)})"] * rows)
