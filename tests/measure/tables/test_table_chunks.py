import gc
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from epochcast.errors import BadInput
from epochcast.measure.evaluate import evaluate as evaluation
from epochcast.measure.evaluate.evaluate import Evaluation, evaluate
from epochcast.measure.evaluate.predicted import Predicted
from epochcast.measure.evaluate.scored_rows import ScoredRows, scored
from epochcast.measure.tables import table_chunks
from epochcast.measure.tables.table_chunks import chunks_of
from epochcast.measure.tables.table_files import joined, read_table

RUN = {"model": "mnist_cnn", "device": "V100", "batch_per_gpu": 32, "step_seconds": 0.01, "system": "a", "gpus": 1}


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_pieces_are_the_table(tmp_path: Path, ending: str) -> None:
    frame = pl.DataFrame({"n": range(10), "x": [0.5 * i for i in range(10)], "word": [f"w{i}" for i in range(10)]})
    file = tmp_path / f"t.{ending}"
    getattr(frame, {"csv": "write_csv", "jsonl": "write_ndjson", "parquet": "write_parquet"}[ending])(file)
    pieces = list(chunks_of(file, 4))
    assert [len(piece) for piece in pieces] == [4, 4, 2]
    assert joined(pieces).equals(frame)


def test_a_column_of_several_kinds_is_text(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text('{"a": 1, "b": 1}\n{"a": [1, {}], "b": 2.5}\n{"a": true, "b": null}\n{"a": 1' + "0" * 30 + "}\n")
    frame = read_table(file)
    assert frame["a"].to_list() == ["1", "[1, {}]", "True", "1" + "0" * 30]
    assert frame["b"].to_list() == [1.0, 2.5, None, None]
    file.write_text('{"a": 1.5}\n{"a": 1' + "0" * 400 + "}\n")
    assert read_table(file)["a"].to_list() == ["1.5", "1" + "0" * 400]


def test_nested_columns_and_dates_of_parquet_are_texts(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    pl.DataFrame({"a": [[1], [2]], "b": [{"x": 1}, None], "c": [b"\xff", b""], "d": [1, 2]}).write_parquet(file)
    assert read_table(file).schema == {"a": pl.String, "b": pl.String, "c": pl.String, "d": pl.Int64}


def test_damaged_parquet_is_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "t.parquet"
    pl.DataFrame({"a": list(range(500)), "b": ["word"] * 500}).write_parquet(file)
    whole = file.read_bytes()
    for place in range(4, len(whole), max(1, len(whole) // 60)):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        file.write_bytes(bytes(damaged))
        try:
            read_table(file)
        except BadInput as error:
            assert "\n" not in str(error)
    assert capfd.readouterr().err == ""  # nor does a panic write past Python


def test_bytes_that_are_no_text_cost_their_rows(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(b"model,n\n\xe4\xff,1\nb,\x00\nc,3\n")
    assert read_table(file)["model"].to_list()[1:] == ["b", "c"]


def rows() -> list[dict[str, Any]]:
    many = {**RUN, "gpus": 4, "step_seconds": 0.02}
    return [RUN, {**RUN, "model": "no such model", "system": "b"}, many, {**RUN, "batch_per_gpu": "many"}, many]


@pytest.mark.parametrize("given_single", [False, True])
def test_a_table_in_pieces_gives_the_same_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given_single: bool
) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text("".join(pl.DataFrame([row], strict=False).write_ndjson() for row in rows()))
    whole = evaluate(file, by=["system", "device"], given_single=given_single).as_dict()
    monkeypatch.setattr(evaluation, "chunks_of", lambda path: table_chunks.chunks_of(path, 2))
    in_pieces = evaluate(file, by=["system", "device"], given_single=given_single)
    assert in_pieces.as_dict() == whole
    in_pieces.save(tmp_path / "out.csv")
    assert os.path.getsize(tmp_path / "out.csv")


def test_rows_beyond_the_bound_lie_in_files_and_give_the_same_answer(tmp_path: Path) -> None:
    table = pl.DataFrame(rows()[:3]).with_columns(pl.col("batch_per_gpu").cast(pl.Int64))
    found = evaluate(table, by=["system"])
    (whole,) = found.rows.columns(*found.rows.lazy().collect_schema())
    spilled = ScoredRows(most_kept=1)
    for piece in whole.iter_slices(1):
        spilled.add(piece, {"a note": 1})
    (folder,) = {file.parent for file in spilled._files}
    assert len(spilled) == 3 and len(list(folder.iterdir())) == 3 and spilled.notes == {"a note": 3}
    again = Evaluation(found.kind, spilled, found.by)
    assert again.as_dict() == {**found.as_dict(), "notes": again.as_dict()["notes"]}
    assert again.frame().equals(found.frame())
    for ending in ("csv", "jsonl", "parquet"):
        again.save(tmp_path / f"out.{ending}")
        assert len(read_table(tmp_path / f"out.{ending}")) == 3
    del again, spilled
    gc.collect()
    assert not folder.exists()


def test_a_column_of_several_kinds_in_files_is_text() -> None:
    scored_rows = ScoredRows(most_kept=1)
    one = np.ones(1)
    part = Predicted(one, one, one, one, (), {"device": ["V100"], "family": ["resnet"]}, np.ones(1, bool))
    for value in (1, "two"):
        scored_rows.add(scored(part, pl.DataFrame({"gpus": [value]}), ["gpus"], len(scored_rows)), {})
    assert scored_rows.results().collect()["gpus"].to_list() == ["1", "two"]
    assert set(Evaluation("runs", scored_rows, ("gpus",)).groups()) == {"1", "two"}
