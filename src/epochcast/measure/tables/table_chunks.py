"""Tables of any length, some thousand rows at a time: CSV and JSON lines line by line, Parquet slice by slice.

Anybody may have written them. A line that cannot be read is an empty row; a column holds numbers, true and false, or
texts: what is none of these (a list, a date, a number beside words) is text, and costs its row where it must be a
number.
"""

import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, islice
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from epochcast.base.bounds import MOST_TABLE_ROWS
from epochcast.errors import BadInput, MissingExtra

if TYPE_CHECKING:
    from polars import DataFrame

CHUNK_ROWS = 50_000
"""Rows that are in memory at once as Python values: some hundred MB."""


def polars() -> Any:
    """The polars module, or an error that names the extra to install."""
    try:
        import polars
    except ModuleNotFoundError:
        raise MissingExtra("fit", "polars") from None
    return polars


def chunks_of(path: str | Path, rows: int = CHUNK_ROWS) -> Iterator["DataFrame"]:
    """The table in a file, in pieces of so many rows, at least one; raises where it is not a table."""
    polars()
    file = Path(path)
    if not file.is_file():
        raise BadInput(f"{str(path)!r} is a folder, not a table" if file.is_dir() else f"no file {str(path)!r}")
    read = READERS.get(file.suffix.lower())
    if read is None:
        raise BadInput(f"{file.name} has an unknown ending; known endings: {', '.join(READERS)}")
    done = 0
    for chunk in read(file, rows):
        done += len(chunk)
        if done > MOST_TABLE_ROWS:
            raise BadInput(f"{file.name} has more than {MOST_TABLE_ROWS:,} rows")
        yield chunk


# ---- lines --------------------------------------------------------------------------------------


def _csv(file: Path, rows: int) -> Iterator["DataFrame"]:
    with _opened(file) as stream:
        lines = _csv_lines(stream)
        header = next(lines, None)
        if not header:
            raise BadInput(f"{file.name} is not a csv table: it is empty")
        names = [name.strip() for name in header]
        yield from _framed(file, (_csv_row(names, line) for line in lines), rows, names, _from_texts)


def _csv_lines(stream: TextIO) -> Iterator[list[str] | None]:
    """The cells of every line that is not empty; None for one that cannot be read."""
    reader = csv.reader(stream)
    while True:
        try:
            line = next(reader)
        except StopIteration:
            return
        except csv.Error:
            yield None
            continue
        if line:
            yield line


def _csv_row(names: list[str], line: list[str] | None) -> dict[str, Any]:
    """A line with more cells than the header, or half of them, is an empty row."""
    if line is None or not len(names) / 2 < len(line) <= len(names):
        return {}
    row: dict[str, Any] = {}
    for name, cell in zip(names, line, strict=False):
        row.setdefault(name, cell or None)
    return row


def _json(file: Path, rows: int) -> Iterator["DataFrame"]:
    with _opened(file) as stream:
        yield from _framed(file, (_json_row(line) for line in stream if line.strip()), rows, [], _from_values)


def _json_row(line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return row if isinstance(row, dict) else {}


def _opened(file: Path) -> TextIO:
    """As text; what is not UTF-8 becomes a sign that is no number and no name."""
    try:
        return file.open(encoding="utf-8-sig", errors="replace", newline="")
    except OSError as error:
        raise BadInput(f"cannot read {file}: {error.strerror}") from None


def _framed(
    file: Path,
    all_rows: Iterator[dict[str, Any]],
    rows: int,
    names: list[str],
    series: Callable[[str, list[Any]], Any],
) -> Iterator["DataFrame"]:
    """Rows as frames. A file of whose first rows hardly any can be read is refused."""
    first = list(islice(all_rows, rows))
    if 2 * sum(map(bool, first)) <= len(first) and (first or not names):
        raise BadInput(f"{file.name} is not a {file.suffix.lstrip('.')} table: most of its lines cannot be read")
    chunk: list[dict[str, Any]] = first
    while True:
        columns = dict.fromkeys(chain(names, *chunk))
        yield polars().DataFrame([series(str(name), [row.get(name) for row in chunk]) for name in columns])
        chunk = list(islice(all_rows, rows))
        if not chunk:
            return


def _from_texts(name: str, values: list[Any]) -> Any:
    """A column of a CSV: whole numbers, numbers, true and false, or texts, whatever all of its cells are."""
    pl = polars()
    texts = pl.Series(name, values, dtype=pl.String)
    for dtype in (pl.Int64, pl.Float64):
        numbers = texts.cast(dtype, strict=False)
        if numbers.null_count() == texts.null_count():
            return numbers
    if texts.drop_nulls().is_in(["true", "false"]).all():
        return (texts == "true").rename(name)
    return texts


def _from_values(name: str, values: list[Any]) -> Any:
    """A column of JSON: of one kind, or of texts."""
    pl = polars()
    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {bool}:
        return pl.Series(name, values, dtype=pl.Boolean)
    if kinds <= {int} and all(value is None or abs(value) < 2**63 for value in values):
        return pl.Series(name, values, dtype=pl.Int64)
    if kinds <= {int, float} and all(_is_number(value) for value in values):
        return pl.Series(name, [None if value is None else float(value) for value in values], dtype=pl.Float64)
    return pl.Series(name, [None if value is None else _text(value) for value in values], dtype=pl.String)


def _is_number(value: Any) -> bool:
    """Whether a float holds it; "not a number" is one."""
    return value is None or abs(value) < 1e300 or (isinstance(value, float) and isnan(value))


def _text(value: Any) -> str:
    words = value if isinstance(value, str) else json.dumps(value) if isinstance(value, dict | list) else _shown(value)
    return words.encode(errors="replace").decode()


def _shown(value: Any) -> str:
    try:
        return str(value)
    except ValueError:  # a whole number of thousands of digits
        return "a number with too many digits"


# ---- Parquet ------------------------------------------------------------------------------------


def _parquet(file: Path, rows: int) -> Iterator["DataFrame"]:
    """Slices. Within a call everything is read, so that what goes wrong goes wrong there."""
    pl = polars()
    offset = 0
    while True:
        try:
            with _quiet():
                chunk: DataFrame = pl.scan_parquet(file, glob=False).slice(offset, rows).collect()
                plain = chunk.select(_plain(chunk[name]) for name in chunk.columns)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as problem:
            reason = (str(problem).strip().splitlines() or ["it is empty"])[0]
            raise BadInput(f"{file.name} is not a parquet table: {reason}") from None
        if offset == 0 or len(plain):
            yield plain
        offset += len(plain)
        if len(plain) < rows:
            return


def _plain(column: Any) -> Any:
    """Numbers, true and false and texts as they are, everything else as texts."""
    pl = polars()
    if column.dtype.is_decimal():
        return column.cast(pl.Float64, strict=False)
    if column.dtype.is_numeric() or column.dtype in (pl.String, pl.Boolean, pl.Null):
        return column
    if column.dtype.is_temporal() or column.dtype in (pl.Categorical, pl.Enum):
        return column.cast(pl.String, strict=False)
    texts = [None if value is None else str(value)[:1000] for value in column.to_list()]
    return pl.Series(column.name, texts, dtype=pl.String)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what polars' panics write to standard error themselves, past Python; the error says it in one line."""
    try:
        stderr = os.dup(2)
    except OSError:  # closed
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nowhere)


READERS: Mapping[str, Callable[[Path, int], Iterable["DataFrame"]]] = {
    ".parquet": _parquet,
    ".csv": _csv,
    ".jsonl": _json,
    ".ndjson": _json,
}
"""By the ending of the file."""
