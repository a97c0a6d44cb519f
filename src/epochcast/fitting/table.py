"""Reading and writing tables: Parquet, CSV and JSON lines, by the ending of the file.

No table is ever half written: it is written to a temporary file, which is then moved.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epochcast.atomic import replacing
from epochcast.errors import BadInput, MissingExtra

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
        reason = (str(problem).strip().splitlines() or ["it is empty"])[0]
        raise BadInput(f"{file.name} is not a {file.suffix.lstrip('.')} table: {reason}") from None
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
