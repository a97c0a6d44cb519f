from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from epochcast.errors import BadInput, UnknownName
from epochcast.observe.history.job_table import MISSING
from epochcast.observe.history.job_table_reader import as_jobs, read_frame, runs_of_store
from epochcast.observe.history.learning_set import learning_set
from epochcast.observe.store.store_opening import open_store


def test_units_by_suffix_become_base_units_and_usual_names_ours() -> None:
    frame = read_frame([{"gpu_type": "V100", "epoch_min": 2.0, "host_memory_gb": 64, "batch_size": 32}])
    assert frame.to_dicts() == [
        {"device": "V100", "epoch_seconds": 120.0, "host_memory_bytes": 64e9, "batch_per_gpu": 32}
    ]


def test_columns_are_numbers_or_categories_by_their_cells() -> None:
    jobs = as_jobs(pl.DataFrame({"a": ["1", "2", "n/a"], "b": ["x", None, "y"], "c": [True, False, True]}))
    assert np.array_equal(jobs.numbers["a"], [1.0, 2.0, np.nan], equal_nan=True)
    assert jobs.categories["b"].tolist() == ["x", MISSING, "y"]
    assert jobs.categories["c"].tolist() == ["True", "False", "True"]


def test_the_same_table_as_csv_and_parquet_is_the_same(tmp_path: Path, past: list[dict[str, Any]]) -> None:
    frame = pl.DataFrame(past)
    frame.write_csv(tmp_path / "jobs.csv")
    frame.write_parquet(tmp_path / "jobs.parquet")
    assert read_frame(tmp_path / "jobs.csv").equals(read_frame(tmp_path / "jobs.parquet"))


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("batch,batch,step_seconds\n1,2,3\n")
    with pytest.raises(BadInput, match="more than one column called 'batch'"):
        read_frame(tmp_path / "jobs.csv")


def test_two_columns_that_mean_the_same_are_refused() -> None:
    with pytest.raises(BadInput, match="mean 'batch_per_gpu'"):
        read_frame([{"batch": 1, "batch_size": 2}])


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ([0.0, *range(1, 20)], "must be above 0; 1 of 20 rows"),
        ([-1.0, *range(1, 20)], "must be above 0"),
        ([3.0] * 20, "there is nothing to learn"),
        ([1.0, 2.0], "at least 10 rows"),
    ],
)
def test_targets_that_teach_nothing_are_refused(targets: list[float], message: str) -> None:
    frame = read_frame([{"batch": place, "step_seconds": float(value)} for place, value in enumerate(targets)])
    with pytest.raises(BadInput, match=message):
        learning_set(frame, "step_seconds")


def test_fewer_rows_than_columns_are_refused() -> None:
    generator = np.random.default_rng(0)
    frame = pl.DataFrame({f"x{i}": generator.random(12) for i in range(15)} | {"step_seconds": range(1, 13)})
    with pytest.raises(BadInput, match="12 rows are too few for 15 columns"):
        learning_set(frame, "step_seconds")


def test_an_unknown_target_offers_the_columns_of_seconds(past: list[dict[str, Any]]) -> None:
    with pytest.raises(UnknownName, match="known: step_seconds"):
        learning_set(read_frame(past), "epoch_seconds")


def test_outcomes_and_columns_that_say_nothing_are_no_features(past: list[dict[str, Any]]) -> None:
    told = [{**row, "samples_per_second": 1.0 + i, "id": f"run {i}", "site": "here"} for i, row in enumerate(past)]
    known = learning_set(read_frame(told), "step_seconds")
    assert known.features == ("batch_per_gpu", "gpus", "model", "device")
    assert known.jobs.notes == (
        "column id is not used: almost every row has its own",
        "column site is not used: it has one value",
    )


def test_runs_of_the_store_are_a_table(tmp_path: Path) -> None:
    from epochcast.observe.store.store_rows import RunPlace
    from epochcast.predict.forecast.job import Job

    with open_store(str(tmp_path / "store.db")) as store:
        run = store.open_run("one", job=Job("resnet50", batch=64), place=RunPlace("V100", gpus=2))
        store.note(run.id, state="ended", step_seconds=0.25, elapsed_seconds=100.0)
        (row,) = runs_of_store(store).to_dicts()
    wanted = {"model": "resnet50", "batch_per_gpu": 64, "device": "V100", "gpus": 2, "step_seconds": 0.25}
    assert wanted.items() <= row.items() and row["total_seconds"] == 100.0
