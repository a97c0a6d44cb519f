"""Reading and writing tables: Parquet, CSV and JSON lines, by the ending of the file.

No table is ever half written: it is written to a temporary file, which is then moved.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epochcast.base.atomic_files import replacing
from epochcast.errors import BadInput
from epochcast.measure.tables.row_names import keys_of, listed
from epochcast.measure.tables.table_chunks import READERS, chunks_of, polars

if TYPE_CHECKING:
    from polars import DataFrame, LazyFrame

ENDINGS = tuple(READERS)

# The columns of tables of measured runs, single ops, epochs of the source report, and single layers. Of the times and
# sizes in the second tuple one is enough.
TABLE_COLUMNS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "runs": (
        ("model", "device", "batch_per_gpu"),
        ("step_seconds", "samples_per_second", "peak_memory_bytes", "peak_memory_gib"),
    ),
    "ops": (("device", "family", "op", "phase", "dtype"), ("seconds",)),
    "report": (("model", "device", "batch_size_per_replica", "steps_per_epoch"), ("seconds",)),
    "layers": (("device", "batch_size", "backward_and_update", "optimizer"), ("seconds_median",)),
}


def read_table(path: str | Path) -> "DataFrame":
    """The whole table in a file; raises where it is not a table."""
    frame: DataFrame = joined(chunks_of(path))
    return frame


def joined(chunks: Iterable["DataFrame"]) -> "DataFrame":
    """One table of all pieces; a column that is of several kinds is text."""
    pl = polars()
    pieces = list(chunks)
    mixed = mixed_kinds(piece.schema for piece in pieces)
    if mixed:
        pieces = [piece.with_columns(pl.col(mixed & set(piece.columns)).cast(pl.String)) for piece in pieces]
    frame: DataFrame = pl.concat(pieces, how="diagonal_relaxed")
    return frame


def mixed_kinds(schemas: Iterable[Mapping[str, Any]]) -> set[str]:
    """The columns that are of several kinds in pieces of one table, numbers in one and words in another."""
    kinds: dict[str, set[Any]] = {}
    for schema in schemas:
        for name, dtype in schema.items():
            kinds.setdefault(name, set()).add(dtype)
    return {name for name, dtypes in kinds.items() if not _is_one_kind(dtypes - {polars().Null})}


def _is_one_kind(dtypes: set[Any]) -> bool:
    return len(dtypes) <= 1 or all(dtype.is_numeric() for dtype in dtypes)


def with_known_columns(frame: "DataFrame") -> "DataFrame":
    """The table with its columns by our names: batch_size → batch_per_gpu. In a table of runs only listed columns are
    renamed; in one that is of no kind as it is all are: Model → model.
    """
    try:
        kind, is_known = kind_of(frame.columns), True
    except BadInput:
        kind, is_known = "runs", False
    if kind != "runs":
        return frame
    present = set(frame.columns)
    renamed: dict[str, str] = {}
    for column in frame.columns:
        name = listed("column", column) or (column if is_known else keys_of(column)[0])
        if name not in present and name not in renamed.values():
            renamed[column] = name
    return frame.rename(renamed)


def write_table(frame: "DataFrame | LazyFrame", path: str | Path) -> None:
    """Write a table, as it is computed where it is not yet; the file is never half written."""
    file = Path(path)
    rows = frame.lazy()
    writers: dict[str, Callable[[Path], Any]] = {
        ".parquet": rows.sink_parquet,
        ".csv": rows.sink_csv,
        ".jsonl": rows.sink_ndjson,
        ".ndjson": rows.sink_ndjson,
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
