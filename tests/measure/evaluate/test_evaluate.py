from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import epochcast as ec
from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.profile import Profile, save_profile
from epochcast.measure.evaluate.evaluate import Evaluation, evaluate
from epochcast.measure.evaluate.evaluate_ops import CALL_SECONDS
from epochcast.measure.evaluate.given_single import SingleSteps
from epochcast.measure.evaluate.op_table import op_columns
from epochcast.measure.evaluate.predicted import Predicted
from epochcast.measure.evaluate.scored_rows import ScoredRows, scored
from epochcast.measure.tables.run_placement import run_placement
from epochcast.measure.tables.run_table import read_runs
from epochcast.predict.cost.cost_models import find_cost_model
from epochcast.predict.cost.software_setting import SoftwareSetting
from epochcast.predict.cost.wrapped import Scaled

ANALYTIC = find_cost_model("analytic")


def runs(*changes: dict[str, Any]) -> pl.DataFrame:
    row = {"model": "resnet18", "device": "V100", "batch_per_gpu": 32, "step_seconds": 0.05, "gpus": 1, "system": "a"}
    return pl.DataFrame([{**row, **change} for change in changes], infer_schema_length=None)


def test_a_row_is_forecast_as_a_users_question_is() -> None:
    found = evaluate(runs({"optimizer": "adam", "precision": "amp_fp16"}), cost_model=ANALYTIC)
    asked = ec.forecast(
        "resnet18", device="V100", batch=32, optimizer="adam", precision="amp_fp16", cost_model=ANALYTIC
    )
    assert found.predicted.mid_seconds[0] == pytest.approx(asked.step_seconds.mid)
    assert found.predicted.high_seconds[0] == pytest.approx(asked.step_seconds.high)


def test_rows_that_cannot_be_forecast_are_counted_with_their_reason() -> None:
    found = evaluate(runs({}, {"model": "resnet19"}, {"device": "abacus"}), cost_model=ANALYTIC).as_dict()
    assert found["n"] == 1
    assert [(f["row"], f["model"], f["reason"].partition(";")[0]) for f in found["failed"]] == [
        (1, "resnet19", "no model called 'resnet19'"),
        (2, "resnet18", "no device called 'abacus'"),
    ]


def test_json_has_the_keys_of_the_contract() -> None:
    found = evaluate(runs({}), cost_model=ANALYTIC).as_dict()
    figures = {"n", "failed", "mape", "median_ape", "p90_ape", "rmse_seconds", "coverage", "width", "interval_score"}
    assert set(found) == figures | {"refusals", "notes", "groups", "memory"}


def test_refusals_are_grouped_and_assumptions_counted() -> None:
    table = runs({"device": "abacus"}, {"device": "slide rule"}, {"optimizer": "lionw"}, {"optimizer": "lionw"}, {})
    found = evaluate(table, cost_model=ANALYTIC).as_dict()
    assert [(r["reason"], r["rows"]) for r in found["refusals"]] == [("a device that the catalogue does not have", 2)]
    assert found["notes"] == [{"note": "the optimizer lionw is not known and answered as momentum", "rows": 2}]


def test_doubtful_rows_are_left_out_and_counted() -> None:
    table = runs({"quality": "ok"}, {"quality": "suspect: other jobs"}, {"quality": None})
    found = evaluate(table, cost_model=ANALYTIC)
    assert (found.scores.n, found.refusals[0].cure) == (2, "ask for doubtful rows, too")
    assert evaluate(table, cost_model=ANALYTIC, with_doubtful=True).scores.n == 3


def calibration(path: Path, **changes: Any) -> Path:
    facts: dict[str, Any] = {"device": "V100-SXM2-16GB", "stack": "pytorch", "source": "a test", "date": "2026-11-16"}
    save_profile(Profile(**{**facts, "relative_to": ANALYTIC.name, **changes}), path)
    return path


def test_a_calibration_scores_its_device_and_no_other(tmp_path: Path) -> None:
    """Kernels twice as long on the profile's device: its steps take twice as long but for the launches."""
    table = runs({"batch_per_gpu": 256}, {"batch_per_gpu": 256, "device": "A100"})
    path = calibration(tmp_path / "v100.toml", compute_factor=2.0, memory_factor=2.0, step_spread=(0.9, 1.1))
    before = evaluate(table, cost_model=ANALYTIC).predicted
    after = evaluate(table, cost_model=ANALYTIC, profile=path).predicted
    assert after.mid_seconds[0] == pytest.approx(2 * before.mid_seconds[0], rel=0.1)
    assert after.mid_seconds[1] == before.mid_seconds[1]
    assert after.high_seconds[0] / after.mid_seconds[0] < before.high_seconds[0] / before.mid_seconds[0]


def test_the_launch_of_a_calibration_counts(tmp_path: Path) -> None:
    table = runs({"batch_per_gpu": 1})
    slow = calibration(tmp_path / "slow.toml", launch_seconds=1e-3)
    before = evaluate(table, cost_model=ANALYTIC).predicted.mid_seconds[0]
    assert evaluate(table, cost_model=ANALYTIC, profile=slow).predicted.mid_seconds[0] > 5 * before


def test_a_profile_of_another_model_or_table_is_refused(tmp_path: Path) -> None:
    path = calibration(tmp_path / "v100.toml", relative_to="learned")
    with pytest.raises(BadInput, match="corrects the cost model 'learned', not 'analytic'"):
        evaluate(runs({}), cost_model=ANALYTIC, profile=path)
    with pytest.raises(BadInput, match="no file"):
        evaluate(runs({}), cost_model=ANALYTIC, profile=tmp_path / "nowhere.toml")
    with pytest.raises(BadInput, match="profile scores runs; this is a table of ops"):
        evaluate(pl.DataFrame([op()]), cost_model=ANALYTIC, profile=calibration(tmp_path / "a.toml"))


def test_columns_by_other_names_are_known() -> None:
    table = pl.DataFrame({"network": ["ResNet-18"], "GPU": ["V100"], "batch_size": [32], "throughput": [640.0]})
    assert evaluate(table, cost_model=ANALYTIC).predicted.measured_seconds[0] == pytest.approx(0.05)


def test_columns_in_other_letters_are_the_same_columns() -> None:
    table = pl.DataFrame({"Model": ["ResNet-18"], "GPU": ["V100"], "Batch Size": [32], "Throughput": [640.0]})
    half = table.with_columns(Precision=pl.lit("amp"))
    whole_seconds, half_seconds = (evaluate(t, cost_model=ANALYTIC).predicted.mid_seconds[0] for t in (table, half))
    assert half_seconds < whole_seconds


def test_groups_of_many_values_are_counted_in_one_pass() -> None:
    """A group for every row: with a scan of the table for each this takes minutes."""
    rows = 30_000
    table = pl.DataFrame({"system": [str(i) for i in range(rows)]})
    seconds = np.ones(rows)
    predicted = Predicted(seconds, seconds, seconds, seconds, (), {}, np.ones(rows, bool))
    scored_rows = ScoredRows()
    scored_rows.add(scored(predicted, table, ("system",), 0), {})
    groups = Evaluation("runs", scored_rows, ("system",)).groups()
    assert len(groups) == rows and groups["7"].n == 1


def test_nothing_forecast_has_no_figures() -> None:
    found = evaluate(runs({"model": "nonet"}), cost_model=ANALYTIC).as_dict()
    assert (found["n"], found["mape"], len(found["failed"])) == (0, None, 1)


def test_groups_go_by_catalogue_names_and_families() -> None:
    table = runs({}, {"device": "Tesla V100-SXM2-16GB", "model": "resnet34"}, {"model": "vgg11"}, {"model": "nonet"})
    groups = evaluate(table, by=["device", "family"], cost_model=ANALYTIC).groups()
    assert {name: (g.n, g.failed) for name, g in groups.items()} == {
        "V100-SXM2-16GB / resnet": (2, 0),
        "V100-SXM2-16GB / vgg": (1, 0),
        "V100-SXM2-16GB / nonet": (0, 1),
    }


def test_any_column_can_be_grouped_by_and_others_are_refused() -> None:
    assert set(evaluate(runs({}, {"system": "b"}), by=["system"], cost_model=ANALYTIC).groups()) == {"a", "b"}
    with pytest.raises(UnknownName, match="no column to group by called 'colour'"):
        evaluate(runs({}), by=["colour"], cost_model=ANALYTIC)


def test_given_the_single_step_only_the_exchange_is_forecast() -> None:
    """Perfect single-GPU knowledge: measured 0.05 s plus what eight GPUs add to a forecast scaled to it."""
    table = runs({}, {"gpus": 8, "step_seconds": 0.06}, {"gpus": 8, "batch_per_gpu": 16, "step_seconds": 0.03})
    found = evaluate(table, given_single=True, cost_model=ANALYTIC)

    def seconds(gpus: int, factor: float) -> float:
        model = Scaled(ANALYTIC, factor)
        asked = ec.forecast("resnet18", device="V100", batch=32, optimizer="momentum", gpus=gpus, cost_model=model)
        return asked.step_seconds.mid

    factor = 0.05 / seconds(1, 1.0)
    assert found.predicted.mid_seconds[1] == pytest.approx(0.05 + seconds(8, factor) - seconds(1, factor))
    assert found.predicted.low_seconds[1] < found.predicted.mid_seconds[1] < found.predicted.high_seconds[1]
    assert found.scores.n == 1
    assert [f.reason for f in found.failures] == [
        "no single-GPU row of the same system, model, batch per GPU and precision"
    ]


def test_the_single_row_of_the_same_framework_and_data_counts_first() -> None:
    rows = [
        {"framework": "pytorch", "data": "real", "step_seconds": 0.05},
        {"framework": "pytorch", "data": "synthetic", "step_seconds": 0.04},
        {"framework": "paddle", "data": "real", "step_seconds": 0.03},
        {"framework": "pytorch", "data": "real", "gpus": 8},
        {"framework": "paddle", "data": "synthetic", "gpus": 8},
        {"framework": "mxnet", "data": "real", "gpus": 8},
    ]
    found, _ = read_runs(runs(*rows).to_dicts())
    singles = SingleSteps(found).of(found)
    assert {place: single.seconds for place, single in singles.items()} == {3: 0.05, 4: 0.03, 5: 0.04}


def test_a_step_of_other_passes_is_known_by_its_passes() -> None:
    """A global batch kept by accumulating: one GPU took 16 passes, eight take two each. A row of two passes counts
    first.
    """
    many, few = {"grad_accum": 16, "step_seconds": 0.8}, {"grad_accum": 2, "step_seconds": 0.11}
    asked = {"gpus": 8, "grad_accum": 2, "step_seconds": 0.12}
    found = evaluate(runs(many, asked), given_single=True, cost_model=ANALYTIC).predicted.mid_seconds[1]
    alone = evaluate(runs(few, asked), given_single=True, cost_model=ANALYTIC).predicted.mid_seconds[1]
    both = evaluate(runs(few, many, asked), given_single=True, cost_model=ANALYTIC).predicted.mid_seconds[2]
    assert both == alone
    assert 0.1 < found < alone


def test_a_network_that_cannot_be_built_is_scaled_by_its_parameters() -> None:
    """ELECTRA: 124 million gradients, half a gigabyte, by NVLink; half as many take less. Without its step on one GPU
    there is no answer.
    """
    asked = {"model": "electra-base", "gpus": 8, "step_seconds": 0.55}
    single = {"model": "electra-base", "step_seconds": 0.5}
    table = runs(single, asked, {**asked, "parameters": 62e6})
    found = evaluate(table, given_single=True, cost_model=ANALYTIC)
    assert found.scores.n == 2 and not found.failures
    whole, half = found.predicted.mid_seconds[1:]
    assert 0.5 < half < whole < 0.6
    assert "no builder" in evaluate(table, cost_model=ANALYTIC).failures[0].reason
    own = {"model": "ours", "parameters": 124e6}
    known = evaluate(runs({**single, **own}, {**asked, **own}), given_single=True, cost_model=ANALYTIC)
    assert known.predicted.mid_seconds[1] == pytest.approx(whole)
    with_layers = evaluate(runs(single, {**asked, "strategy": "zero3"}), given_single=True, cost_model=ANALYTIC)
    assert "without the network's layers" in with_layers.failures[0].reason


def test_a_table_never_runs_code_unless_told() -> None:
    table = runs({"model": "os:getcwd"})
    assert "would run Python code" in evaluate(table, cost_model=ANALYTIC).failures[0].reason


def test_the_file_of_rows_holds_prediction_and_reason(tmp_path: Path) -> None:
    evaluate(runs({}, {"model": "nonet"}), cost_model=ANALYTIC).save(tmp_path / "rows.csv")
    rows = pl.read_csv(tmp_path / "rows.csv")
    assert rows["row"].to_list() == [0, 1]
    assert rows["predicted_seconds"].is_null().to_list() == [False, True]
    assert rows["reason"].is_null().to_list() == [True, False]


def test_progress_ends_at_all_rows() -> None:
    seen: list[tuple[int, int]] = []
    evaluate(runs({}, {"model": "vgg11"}), cost_model=ANALYTIC, progress=lambda *now: seen.append(now))
    assert seen == [(0, 2), (1, 2), (2, 2)]


def test_several_processes_answer_as_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    table = runs({}, {"model": "vgg11"}, {"model": "nonet"}, {"gpus": 4})
    alone = evaluate(table, cost_model=ANALYTIC)
    monkeypatch.setattr("epochcast.measure.evaluate.evaluate_runs.LEAST_NETWORKS", 1)
    together = evaluate(table, cost_model=ANALYTIC, workers=2)
    assert np.array_equal(together.predicted.mid_seconds, alone.predicted.mid_seconds, equal_nan=True)
    assert together.failures == alone.failures


def op(**cells: Any) -> dict[str, Any]:
    blank = dict.fromkeys(("batch", "m", "n", "k", "hidden"), 1)
    return {
        "device": "V100", "family": "matmul", "op": "bmm", "phase": "forward", "dtype": "float32",
        "seconds": 1e-3, **blank, **cells,
    }  # fmt: skip


def test_an_op_timed_alone_lasts_as_long_as_its_kernel_or_its_call() -> None:
    table = pl.DataFrame([op(m=4096, n=4096, k=4096), op(m=2, n=2, k=2)])
    found = evaluate(table, cost_model=ANALYTIC)
    kernels = ANALYTIC.costs(op_columns(table), find_device("V100"), SoftwareSetting()).mid
    assert kernels[1] < CALL_SECONDS["matmul"]
    assert found.predicted.mid_seconds == pytest.approx([kernels[0], CALL_SECONDS["matmul"]], rel=1e-2)


def test_ops_without_a_rule_fail_alone() -> None:
    table = pl.DataFrame([op(m=64, n=64, k=64), op(family="fft"), op(device="abacus"), op(seconds=0.0)])
    found = evaluate(table, by=["family"], cost_model=ANALYTIC)
    assert found.scores.n == 1
    assert sorted((f.row_index, f.reason[:20]) for f in found.failures) == [
        (1, "no rule for op famil"),
        (2, "no device called 'ab"),
        (3, "seconds must be abov"),
    ]


def test_given_single_is_about_runs() -> None:
    with pytest.raises(BadInput, match="this is a table of ops"):
        evaluate(pl.DataFrame([op()]), given_single=True)
    alone = {"model": "resnet18", "device": "V100", "batch_per_gpu": 8, "step_seconds": 0.1, "gpus": 1}
    with pytest.raises(BadInput, match="needs runs on several GPUs; no row of this table is one"):
        evaluate(pl.DataFrame([alone]), given_single=True, cost_model=ANALYTIC)


@pytest.mark.needs_data
def test_measured_single_gpu_runs_are_met_within_reason(data: Path) -> None:
    """ResNets and VGGs on Maxwell and Pascal with cuDNN: the analytic model alone."""
    table = pl.read_parquet(data / "runs.parquet").filter(
        (pl.col("source") == "jcjohnson") & pl.col("framework_version").str.ends_with("=1")
    )
    found = evaluate(table, cost_model=ANALYTIC)
    assert found.failures == ()
    assert found.scores.median_ape is not None and found.scores.median_ape < 0.5


@pytest.mark.needs_data
def test_every_measured_multi_gpu_run_can_be_placed(data: Path) -> None:
    table = pl.read_parquet(data / "runs.parquet").filter(pl.col("gpus") > 1)
    asked, _ = read_runs(table.to_dicts())
    assert len([run_placement(run) for run in asked]) == len(asked) > 7000


@pytest.mark.needs_data
def test_measured_ops_are_forecast_without_exception(data: Path) -> None:
    table = pl.read_parquet(data / "ops.parquet").sample(2000, seed=1)
    found = evaluate(table, by=["family"], cost_model=ANALYTIC)
    assert found.failures == ()
    assert np.all(found.predicted.low_seconds <= found.predicted.high_seconds)


def test_a_model_split_over_ranks_is_not_costed_as_the_whole() -> None:
    both = runs({"gpus": 4, "strategy": "dp4"}, {"gpus": 4, "strategy": "tp4"}).with_columns(model=pl.lit("gpt2"))
    whole, part = evaluate(both, cost_model=ANALYTIC).predicted.mid_seconds
    assert part < 0.7 * whole
