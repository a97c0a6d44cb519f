from dataclasses import replace
from typing import Any

import pytest

import epochcast as ec
from epochcast.decide.scaling import Case, Scaling, cases
from epochcast.errors import BadInput, UnknownName
from epochcast.predict.forecast.strategies.strategy_table import find_strategy
from epochcast.units import parse_counts

CONTRACT = {
    *("gpus", "nodes", "regime", "allreduce", "global_batch", "step_seconds", "samples_per_second", "epoch_seconds"),
    *("total_seconds", "dollars", "speedup", "efficiency", "exposed_comm_seconds"),
}
WEAK: dict[str, Any] = {"regime": "weak", "batch": 64}


def scaling(**options: Any) -> Scaling:
    asked: dict[str, Any] = {
        "device": "V100",
        "gpus": (1, 2, 4),
        "batch": 32,
        "samples": 4096,
        "dollars_per_gpu_hour": 1.0,
    }
    return ec.scaling("resnet18", **{**asked, **options})


def test_weak_scaling_keeps_the_batch_of_a_gpu_and_strong_that_of_the_job() -> None:
    weak = cases((1, 2, 4), regime="weak", batch=64)
    strong = cases((1, 2, 4), regime="strong", batch=64)
    assert [case.batch for case in weak] == [64, 64, 64]
    assert [case.batch for case in strong] == [64, 32, 16]
    assert [case.batch for case in cases((2, 4), regime="strong", batch=64)] == [64, 32]
    assert [case.batch for case in cases((1, 2), regime="strong", batch=64, global_batch=512)] == [512, 256]


def test_gpus_that_do_not_fit_in_a_box_take_more_boxes() -> None:
    assert [case.nodes for case in cases((1, 8, 16, 64), **WEAK)] == [1, 1, 2, 8]
    assert [case.nodes for case in cases((4, 8), gpus_per_node=4, **WEAK)] == [1, 2]


def test_mirrored_becomes_multi_worker_on_several_boxes() -> None:
    names = [case.strategy.name for case in cases((1, 8, 16), strategy="mirrored", **WEAK)]
    assert names == ["single", "mirrored", "multi_worker_mirrored"]


def test_a_product_without_dp_is_filled_up() -> None:
    (case,) = cases((16,), strategy="tp2,pp2", **WEAK)
    assert case.strategy.name == "dp4,tp2,pp2"
    with pytest.raises(BadInput, match="splits a model over 4 GPUs, which do not divide 6"):
        cases((6,), strategy="tp2,pp2", **WEAK)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gpus": (1, 3), "regime": "strong", "batch": 64}, "a batch of 64 does not divide over 3 GPUs"),
        ({"gpus": (12,), **WEAK, "gpus_per_node": 8, "nodes": 5}, "12 GPUs do not share out evenly over 5 nodes"),
        ({"gpus": (0, 2), **WEAK}, "numbers of GPUs must be at least 1"),
        ({"gpus": (), **WEAK}, "numbers of GPUs must be at least 1, such as 1,2,4,8; got none"),
        ({"gpus": (3,), "regime": "weak", "batch": None, "global_batch": 64}, "needs a batch that 3 GPUs share out"),
    ],
)
def test_what_cannot_be_shared_out_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        cases(**options)  # type: ignore[arg-type]


def test_unknown_regimes_and_collectives_are_named() -> None:
    with pytest.raises(UnknownName, match="no regime called 'medium'; known: both, strong, weak"):
        cases((1,), regime="medium", batch=1)
    with pytest.raises(UnknownName, match="no all-reduce algorithm called 'rang'; near: ring"):
        cases((1,), allreduce=("rang",), **WEAK)
    with pytest.raises(BadInput, match="written 1,2,4,8 or 1-64; got '1;2'"):
        parse_counts("1;2")


def test_rows_have_the_keys_of_the_contract() -> None:
    answer = scaling(regime="both", allreduce=("nccl", "ring"))
    body: dict[str, Any] = answer.as_dict()
    assert {"rows", "knee_gpus"} <= set(body)
    assert set(body["rows"][0]) >= CONTRACT
    assert len(answer.rows) == 2 * 2 * 3


def test_efficiency_is_one_at_the_start_and_speed_up_is_throughput() -> None:
    for series in scaling(regime="both").series:
        first, last = series.rows[0], series.rows[-1]
        assert first.speedup == first.efficiency == 1
        assert last.speedup == pytest.approx(last.forecast.samples_per_second / first.forecast.samples_per_second)
        assert last.efficiency == pytest.approx(last.speedup / 4)
        assert all(row.efficiency <= 1 + 1e-9 for row in series.rows)


def test_weak_efficiency_is_the_ratio_of_step_times() -> None:
    first, *_, last = scaling().rows
    assert last.efficiency == pytest.approx(first.forecast.step_seconds.mid / last.forecast.step_seconds.mid)


def test_the_knee_is_where_more_gpus_bring_less_than_half_of_their_number() -> None:
    answer = scaling(gpus=(1, 2))
    one, two = answer.rows
    four = replace(two, case=replace(two.case, gpus=4), speedup=2.2)
    bent = Scaling((one, replace(two, speedup=1.9), four))
    assert bent.knee_gpus == 2
    assert bent.series[0].sentence == "weak scaling: beyond 2 GPUs you pay 2× for 1.2×"
    assert Scaling((one, replace(two, speedup=1.9))).knee_gpus is None


def test_what_does_not_fit_is_not_worth_it() -> None:
    found = scaling(gpus=(1, 2, 4), batch=1024, regime="strong")
    assert [row.forecast.fits for row in found.rows] == [False, True, True]
    assert found.series[0].sentence.endswith(f"{100 * found.rows[-1].efficiency:.0f}% efficiency")
    assert scaling(gpus=(1, 2), batch=1024, regime="strong").series[0].sentence == (
        "strong scaling: fits on one of these numbers of GPUs"
    )


def test_ranks_of_a_box_share_its_processors() -> None:
    """Eight loaders' work on 16 processors: one GPU does not wait for data, eight do."""
    rows = scaling(gpus=(1, 8), loader_seconds=2e-3, cpus=16).rows
    alone, many = (row.forecast.as_dict()["step_parts"]["exposed_input"] for row in rows)
    assert many > alone


def test_one_gpu_is_forecast_once_whatever_the_collective() -> None:
    answer = scaling(allreduce=("nccl", "ring"))
    ones = [row.forecast for row in answer.rows if row.case.gpus == 1]
    assert ones[0] is ones[1]


def test_a_case_says_where_it_runs() -> None:
    assert cases((16,), strategy="horovod", **WEAK) == (Case(16, 2, "weak", find_strategy("horovod", 16), None, 64),)
