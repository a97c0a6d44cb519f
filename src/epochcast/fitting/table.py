"""Reading and writing tables: Parquet, CSV and JSON lines, by the ending of the file.

No table is ever half written: it is written to a temporary file, which is then moved.
"""

import csv
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epochcast.atomic import replacing
from epochcast.errors import BadInput, MissingExtra
from epochcast.fitting.row_names import keys_of, listed

if TYPE_CHECKING:
    from polars import DataFrame

ENDINGS = (".parquet", ".csv", ".jsonl", ".ndjson")

# The columns of tables of measured runs, single ops, epochs of the source report, and single layers. Of the times in
# the second tuple one is enough.
TABLE_COLUMNS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "runs": (("model", "device", "batch_per_gpu"), ("step_seconds", "samples_per_second")),
    "ops": (("device", "family", "op", "phase", "dtype"), ("seconds",)),
    "report": (("model", "device", "batch_size_per_replica", "steps_per_epoch"), ("seconds",)),
    "layers": (("device", "batch_size", "backward_and_update", "optimizer"), ("seconds_median",)),
}


def polars() -> Any:
    """The polars module, or an error that names the extra to install."""
    try:
        import polars
    except ModuleNotFoundError:
        raise MissingExtra("fit", "polars") from None
    return polars


def read_table(path: str | Path) -> "DataFrame":
    """The table in a file; raises where it is not a table."""
    pl = polars()
    file = Path(path)
    if not file.is_file():
        raise BadInput(f"no file {str(path)!r}")
    readers: dict[str, Callable[..., Any]] = {
        ".parquet": pl.read_parquet,
        ".csv": lambda f: pl.read_csv(f, infer_schema_length=None),
        ".jsonl": lambda f: pl.read_ndjson(f, infer_schema_length=None),
        ".ndjson": lambda f: pl.read_ndjson(f, infer_schema_length=None),
    }
    read = readers.get(file.suffix.lower())
    if read is None:
        raise BadInput(f"{file.name} has an unknown ending; known endings: {', '.join(ENDINGS)}")
    try:
        frame: DataFrame = read(file)
    except (pl.exceptions.PolarsError, OSError, ValueError) as problem:
        lines = _line_by_line(file)
        if lines is None:
            reason = (str(problem).strip().splitlines() or ["it is empty"])[0]
            raise BadInput(f"{file.name} is not a {file.suffix.lstrip('.')} table: {reason}") from None
        frame = lines
    return frame


def _line_by_line(file: Path) -> "DataFrame | None":
    """A table of which some lines cannot be read, each of them an empty row; None where hardly any can."""
    readers = {".csv": csv_rows, ".jsonl": json_rows, ".ndjson": json_rows}
    read = readers.get(file.suffix.lower())
    try:
        rows = read(file.read_text(encoding="utf-8-sig")) if read else []
    except (OSError, UnicodeDecodeError):
        return None
    if 2 * sum(bool(row) for row in rows) <= len(rows):
        return None
    frame: DataFrame = polars().DataFrame(rows, infer_schema_length=None, strict=False)
    return frame


def csv_rows(words: str) -> list[dict[str, Any]]:
    """The rows of a CSV text as texts; a line with more cells than the header, or half of them, is an empty row."""
    lines = list(csv.reader(words.splitlines()))
    header = lines[0] if lines else []
    rows: list[dict[str, Any]] = []
    for line in lines[1:]:
        is_row = len(header) / 2 < len(line) <= len(header)
        rows.append({name: cell or None for name, cell in zip(header, line, strict=False)} if is_row else {})
    return rows


def json_rows(words: str) -> list[dict[str, Any]]:
    """The rows of JSON lines; a line that is no object is an empty row."""
    rows: list[dict[str, Any]] = []
    for line in words.splitlines():
        try:
            row = json.loads(line) if line.strip() else None
        except ValueError:
            row = {}
        if row is not None:
            rows.append(row if isinstance(row, dict) else {})
    return rows


def with_known_columns(frame: "DataFrame") -> "DataFrame":
    """The table with its columns by our names, where it is none as it is: batch_size → batch_per_gpu, Model → model."""
    try:
        kind_of(frame.columns)
    except BadInput:
        present = set(frame.columns)
        renamed: dict[str, str] = {}
        for column in frame.columns:
            name = listed("column", column) or keys_of(column)[0]
            if name not in present and name not in renamed.values():
                renamed[column] = name
        return frame.rename(renamed)
    return frame


def write_table(frame: "DataFrame", path: str | Path) -> None:
    """Write a table; the file is never half written."""
    file = Path(path)
    writers: dict[str, Callable[[Path], Any]] = {
        ".parquet": frame.write_parquet,
        ".csv": frame.write_csv,
        ".jsonl": frame.write_ndjson,
        ".ndjson": frame.write_ndjson,
    }
    write = writers.get(file.suffix.lower())
    if write is None:
        raise BadInput(f"cannot write {file.name}; known endings: {', '.join(ENDINGS)}")
    check_folder(file)
    with replacing(file) as temporary:
        write(temporary)


def check_folder(path: Path) -> None:
    """Raise where the folder of a path is missing, before any work is done."""
    if not path.parent.is_dir():
        raise BadInput(f"no folder {str(path.parent)!r} to write {path.name} to")


def kind_of(columns: Iterable[str]) -> str:
    """`runs`, `ops`, `report` or `layers` by the columns; raises with the missing columns of the closest kind."""
    present = set(columns)
    missing_columns: dict[str, list[str]] = {}
    for kind, (needed, times) in TABLE_COLUMNS.items():
        missing = [name for name in needed if name not in present]
        if not present.intersection(times):
            missing.append(" or ".join(times))
        if not missing:
            return kind
        missing_columns[kind] = missing
    nearest = min(missing_columns, key=lambda kind: len(missing_columns[kind]) / (len(TABLE_COLUMNS[kind][0]) + 1))
    raise BadInput(f"a table of {nearest} needs the columns {', '.join(missing_columns[nearest])}, which are not there")
