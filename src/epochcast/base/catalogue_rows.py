"""Reading a table of a TOML catalogue row by row, typed, and naming file and row when something is wrong.

Quantities are written with their unit ("16 GiB", "900 GB/s") and become base units here.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from epochcast.base.documents import parse_toml
from epochcast.base.name_matching import plain
from epochcast.errors import BadInput, EpochcastError, UnknownName
from epochcast.units import parse_bytes, parse_rate


class Named(Protocol):
    """Has a name, and other names for the same thing."""

    @property
    def name(self) -> str: ...
    @property
    def aliases(self) -> tuple[str, ...]: ...


T = TypeVar("T")
N = TypeVar("N", bound=Named)
MOST_NUMBER = 1e30
"""No quantity of a catalogue is larger."""


def shipped(file: str, module_file: str) -> str:
    """The text of a table that ships beside the module whose `__file__` is given."""
    return Path(module_file).with_name(file).read_text(encoding="utf-8")


def parse(text: str, file: str) -> Mapping[str, object]:
    """The TOML document; a syntax error names the file."""
    return parse_toml(text, file)


class BadRow(BadInput):
    """A row of a table cannot be read; the message begins with its file and place."""

    def __init__(self, where: str, problem: object) -> None:
        super().__init__(f"{where}: {problem}")


class CatalogueRow:
    """One `[[table]]` entry. Each key is read once with its type; `finish` refuses keys that were not read."""

    def __init__(self, cells: Mapping[str, object], where: str) -> None:
        self._cells = cells
        self._where = where
        self._read_keys: set[str] = set()

    def text(self, key: str, default: str | None = None) -> str:
        """A string."""
        return self._take(key, str, "text", default)

    def count(self, key: str) -> int:
        """A whole number."""
        return self._take(key, int, "a whole number", None)

    def number(self, key: str) -> float:
        """A number, whole or not."""
        value = self._take(key, (int, float), "a number", None)
        if not -MOST_NUMBER <= value <= MOST_NUMBER:  # nor is it "not a number"
            raise self.wrong(key, f"a number of at most {MOST_NUMBER:g}", value)
        return float(value)

    def flag(self, key: str, default: bool | None = None) -> bool:
        """true or false."""
        return self._take(key, bool, "true or false", default)

    def size_bytes(self, key: str) -> int:
        """Bytes of a text such as "16 GiB"."""
        return self._parsed(key, parse_bytes)

    def rate_bytes_per_second(self, key: str) -> float:
        """Bytes per second of a text such as "900 GB/s"."""
        return self._parsed(key, parse_rate)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings; absent is empty."""
        return self._list(key, str, "a list of texts")

    def counts(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers; absent is empty."""
        return self._list(key, int, "a list of whole numbers")

    def numbers(self, key: str) -> dict[str, float]:
        """An inline table of numbers."""
        table = self._take(key, dict, "a table of numbers", None)
        for name, value in table.items():
            if not _is(value, (int, float)):
                raise self.wrong(f"{key}.{name}", "a number", value)
        return {name: float(value) for name, value in table.items()}

    def tables(self, key: str, build: Callable[["CatalogueRow"], T]) -> tuple[T, ...]:
        """What `build` makes of each of a list of inline tables; absent is empty."""
        built = []
        for index, cells in enumerate(self._list(key, dict, "a list of tables"), start=1):
            row = CatalogueRow(cells, f"{self._where}, {key} {index}")
            built.append(build(row))
            row.finish()
        return tuple(built)

    def has(self, key: str) -> bool:
        """Whether the row gives `key`."""
        return key in self._cells

    def is_text(self, key: str) -> bool:
        """Whether the row gives `key` as text."""
        return isinstance(self._cells.get(key), str)

    def finish(self) -> None:
        """Refuse keys that were not read: most likely misspelt."""
        extra = sorted(set(self._cells) - self._read_keys)
        if extra:
            raise BadRow(self._where, f"unknown key {extra[0]!r}")

    def wrong(self, key: str, expected: str, got: object) -> BadRow:
        """The error for a cell of the wrong type."""
        return BadRow(self._where, f"{key!r} must be {expected}, got {got!r}")

    def _take(self, key: str, kind: type[T] | tuple[type[T], ...], expected: str, default: T | None) -> T:
        self._read_keys.add(key)
        if key not in self._cells:
            if default is not None:
                return default
            raise BadRow(self._where, f"{key!r} is missing")
        value = self._cells[key]
        if not _is(value, kind):
            raise self.wrong(key, expected, value)
        return value  # type: ignore[return-value]  # _is has just checked it

    def _parsed(self, key: str, parse_text: Callable[[str], T]) -> T:
        text = self.text(key)
        try:
            return parse_text(text)
        except BadInput as error:
            raise BadRow(self._where, f"{key!r}: {error}") from None

    def _list(self, key: str, kind: type[T], expected: str) -> tuple[T, ...]:
        items = self._take(key, list, expected, [])
        if not all(_is(item, kind) for item in items):
            raise self.wrong(key, expected, items)
        return tuple(items)


def read(
    document: Mapping[str, object], table: str, file: str, build: Callable[[CatalogueRow], T], text: str = ""
) -> Iterator[T]:
    """What `build` makes of every row of `[[table]]`; errors name the file and the row, of a `text` also its line."""
    entries = document.get(table, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise BadInput(f"{file}: {table!r} must be written as [[{table}]] rows")
    lines = header_lines(text, table)
    for index, cells in enumerate(entries, start=1):
        line = f", line {lines[index - 1]}" if len(lines) >= index else ""
        where = f"{file}{line}, [[{table}]] row {index} ({cells.get('name', 'without a name')})"
        row = CatalogueRow(cells, where)
        try:
            built = build(row)
        except BadRow:
            raise
        except EpochcastError as error:
            raise BadRow(where, error) from None
        row.finish()
        yield built


def header_lines(text: str, table: str) -> list[int]:
    """The lines of a TOML text on which rows of `[[table]]` begin."""
    header = re.compile(rf"\s*\[\[\s*{re.escape(table)}\s*\]\]\s*(#.*)?")
    return [number for number, line in enumerate(text.splitlines(), start=1) if header.fullmatch(line)]


def section(document: Mapping[str, object], name: str, file: str) -> Mapping[str, object]:
    """The table `[name]`; absent is empty."""
    table = document.get(name, {})
    if not isinstance(table, dict):
        raise BadInput(f"{file}: [{name}] must be a table")
    return table


def texts_in(value: object, where: str) -> tuple[str, ...]:
    """A list of names that is not empty."""
    if not isinstance(value, list) or not value or not all(isinstance(name, str) for name in value):
        raise BadInput(f"{where}: must be a list of names, got {value!r}")
    return tuple(value)


def index_by_name(named_rows: Iterable[N], file: str) -> dict[str, N]:
    """Rows by plain name and alias; raises if two rows share a name."""
    index: dict[str, N] = {}
    for row in named_rows:
        for name in (row.name, *row.aliases):
            first = index.setdefault(plain(name), row)
            if first is not row:
                raise BadInput(f"{file}: {name!r} names both {first.name!r} and {row.name!r}")
    return index


def find_by_name(kind: str, name: str, index: Mapping[str, N]) -> N:
    """The row called `name`; an error suggests near names."""
    try:
        return index[plain(name)]
    except KeyError:
        raise UnknownName(kind, name, {row.name for row in index.values()}) from None


def _is(value: object, kind: type | tuple[type, ...]) -> bool:
    """isinstance, except that a bool is not a number."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if isinstance(value, bool):
        return bool in kinds
    return isinstance(value, kinds)
