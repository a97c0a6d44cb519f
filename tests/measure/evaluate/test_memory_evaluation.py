from typing import Any

import polars as pl
import pytest

import epochcast as ec
from epochcast.measure.evaluate.evaluate import evaluate
from epochcast.predict.cost.cost_models import find_cost_model

ANALYTIC = find_cost_model("analytic")
GIB = 2**30


def rows(*changes: dict[str, Any]) -> pl.DataFrame:
    row = {"model": "resnet18", "device": "V100", "batch_per_gpu": 32, "gpus": 1, "source": "lab"}
    return pl.DataFrame([{**row, **change} for change in changes], infer_schema_length=None)


def test_each_number_is_compared_with_the_forecast_of_that_number() -> None:
    options: dict[str, Any] = {"optimizer": "momentum", "update_style": "loop", "framework_version": "1.12"}
    asked = ec.forecast("resnet18", device="V100", batch=32, **options)
    assert asked.allocated_bytes and asked.reserved_bytes and asked.peak_bytes
    table = rows(
        {"peak_memory_bytes": asked.allocated_bytes / 2, "memory_kind": "torch max_memory_allocated"},
        {"peak_memory_bytes": asked.reserved_bytes / 2, "memory_kind": "reserved"},
        {"peak_memory_bytes": asked.peak_bytes.mid / 2, "memory_kind": "nvidia-smi"},
        {"peak_memory_bytes": asked.reserved_bytes / 2},
    ).with_columns(framework_version=pl.lit("1.12"))
    memory = evaluate(table, cost_model=ANALYTIC).memory
    assert memory is not None
    assert list(memory.kinds) == ["allocated", "not stated", "nvidia-smi", "reserved"]
    assert [scores.mape for scores in memory.kinds.values()] == pytest.approx([1.0] * 4, rel=0.01)
    assert memory.scores.n == 4


def test_a_row_with_memory_and_no_time_counts_for_memory_alone() -> None:
    found = evaluate(rows({"peak_memory_gib": 2.0, "step_seconds": None}, {"step_seconds": 0.05}), cost_model=ANALYTIC)
    assert found.memory is not None
    assert (found.scores.n, found.scores.failed, found.memory.scores.n) == (1, 0, 1)
    row = found.frame().row(0, named=True)
    assert row["measured_seconds"] is None and row["measured_bytes"] == 2 * GIB
    assert row["memory_kind"] == "not stated"


def test_a_layout_that_ran_out_of_memory_is_a_wrong_verdict_where_it_is_forecast_to_fit() -> None:
    table = rows(
        {"quality": "failed: OOM"},
        {"quality": "failed", "batch_per_gpu": 4096},
        {"quality": "ok", "peak_memory_gib": 2.0},
        {"quality": "ok", "peak_memory_gib": 12.0, "batch_per_gpu": 4096},
    )
    memory = evaluate(table, cost_model=ANALYTIC).memory
    assert memory is not None
    counts = memory.verdicts
    assert (counts.ran, counts.ran_does_not_fit, counts.ran_out, counts.ran_out_fits) == (2, 1, 2, 1)
    assert counts.wrong_fraction == 0.5
    assert memory.scores.n == 2


def test_memory_is_scored_by_the_groups_that_were_asked_for() -> None:
    table = rows({"peak_memory_gib": 1.0}, {"peak_memory_gib": 1.0}, {"peak_memory_gib": 1.0, "source": "cloud"})
    answer = evaluate(table, by=["source"], cost_model=ANALYTIC).as_dict()
    assert {name: group["n"] for name, group in answer["memory"]["groups"].items()} == {"lab": 2, "cloud": 1}


def test_a_table_without_memory_has_no_scores_of_it() -> None:
    assert evaluate(rows({"step_seconds": 0.05}), cost_model=ANALYTIC).as_dict()["memory"] is None
