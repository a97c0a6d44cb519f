from pathlib import Path

import polars as pl
import pytest

from epochcast.errors import BadInput
from epochcast.measure.tables.table_files import kind_of, read_table, write_table


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_what_is_written_is_read_back(tmp_path: Path, ending: str) -> None:
    frame = pl.DataFrame({"model": ["a", "b"], "step_seconds": [0.5, None]})
    write_table(frame, tmp_path / f"t.{ending}")
    assert read_table(tmp_path / f"t.{ending}").equals(frame)
    assert [p.name for p in tmp_path.iterdir()] == [f"t.{ending}"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("absent.csv", None, "no file '"),
        ("runs.xlsx", "x", "runs.xlsx has an unknown ending; known endings: .parquet, .csv, .jsonl, .ndjson"),
        ("runs.parquet", "not parquet", "runs.parquet is not a parquet table: "),
        ("runs.csv", "", "runs.csv is not a csv table: "),
        ("runs.jsonl", "{", "runs.jsonl is not a jsonl table: "),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, name: str, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(BadInput) as caught:
        read_table(tmp_path / name)
    assert str(caught.value).startswith(message)


def test_a_table_is_known_by_its_columns() -> None:
    assert kind_of(["model", "device", "batch_per_gpu", "samples_per_second"]) == "runs"
    assert kind_of(["device", "family", "op", "phase", "dtype", "seconds", "m"]) == "ops"
    assert kind_of(["device", "batch_size", "backward_and_update", "optimizer", "seconds_median"]) == "layers"


def test_missing_columns_are_named() -> None:
    with pytest.raises(BadInput) as caught:
        kind_of(["model", "device", "seconds_per_step"])
    assert str(caught.value) == (
        "a table of runs needs the columns batch_per_gpu, step_seconds or samples_per_second or peak_memory_bytes "
        "or peak_memory_gib, which are not there"
    )


def test_lines_that_cannot_be_read_are_empty_rows(tmp_path: Path) -> None:
    lines = tmp_path / "t.jsonl"
    lines.write_text('{"a": 1, "b": "x"}\n{"a": NaN}\nnonsense\n{"a": "many"}\n')
    assert len(read_table(lines)) == 4
    commas = tmp_path / "t.csv"
    commas.write_text("a,b\n1,2\n3,4,5\n6,7\n")
    assert [row["a"] for row in read_table(commas).to_dicts()] == [1, None, 6]


def test_a_file_of_which_nothing_can_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("this is\nno table\n")
    with pytest.raises(BadInput, match="is not a jsonl table"):
        read_table(path)
