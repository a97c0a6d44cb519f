from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochcast.describe.capture.resolve import find_model
from epochcast.errors import BadInput
from epochcast.hardware.catalogue import find_device
from epochcast.measure.fit.calibrate import CORRECTIONS, calibrate, fit_corrections, fit_factors
from epochcast.measure.fit.step_pieces import KINDS, StepPieces, step_pieces
from epochcast.measure.tables.run_table import read_runs
from epochcast.predict.cost.calibrated import Calibrated
from epochcast.predict.cost.cost_models import find_cost_model
from epochcast.predict.cost.product import Product
from epochcast.predict.forecast.placement import placed
from epochcast.predict.forecast.step import step_forecast

V100 = find_device("V100")
ANALYTIC = find_cost_model("analytic")
ROWS = [
    {"model": model, "device": "V100", "batch_per_gpu": batch, "step_seconds": 1.0}
    for model in ("resnet18", "vgg11", "mobilenet_v2")
    for batch in (4, 32, 128)
]


@cache
def every_piece() -> tuple[StepPieces, ...]:
    return tuple(step_pieces(read_runs(ROWS)[0], ANALYTIC, False)[0])


def pieces(count: int = 9) -> list[StepPieces]:
    return list(every_piece()[:count])


def measured(compute: float, memory: float, launch: float, count: int = 9) -> list[dict[str, Any]]:
    """The rows as a device would measure them whose kernels and launches differ from the model by these factors."""
    factors = np.log([compute, memory, launch])
    return [{**row, "step_seconds": p.seconds(factors)} for row, p in zip(ROWS, pieces(count), strict=False)]


def test_unscaled_pieces_are_the_forecast() -> None:
    run, first = read_runs(ROWS)[0][0], pieces(1)[0]
    step = step_forecast(find_model("resnet18").trace(run.recipe), placed(V100), ANALYTIC)
    assert first.seconds(np.zeros(3)) == pytest.approx(step.seconds.mid)


def test_a_device_slower_throughout_needs_one_scale() -> None:
    found = calibrate(measured(1.3, 1.3, 1.3), V100, ANALYTIC, date="2026-01-01")
    assert found.chosen.name == "one scale"
    assert found.profile.compute_factor == pytest.approx(1.3, rel=0.02)
    assert found.chosen.loo_mape < 0.03 < found.before.mape


def test_slow_memory_is_told_from_slow_arithmetic() -> None:
    found = calibrate(measured(0.8, 1.5, 1.0), V100, ANALYTIC, date="2026-01-01")
    assert found.profile.compute_factor == pytest.approx(0.8, rel=0.1)
    assert found.profile.memory_factor == pytest.approx(1.5, rel=0.1)


def test_nothing_is_changed_where_nothing_is_wrong() -> None:
    found = calibrate(measured(1, 1, 1), V100, ANALYTIC, date="2026-01-01")
    assert found.chosen.name == "none"
    assert (found.profile.compute_factor, found.profile.memory_factor, found.profile.launch_seconds) == (1, 1, None)


def test_the_interval_narrows_when_rows_agree() -> None:
    found = calibrate(measured(1.3, 1.3, 1.3), V100, ANALYTIC, date="2026-01-01")
    low, high = found.profile.step_spread or (0, 0)
    assert low > found.before_spread[0]
    assert high < found.before_spread[1]


def test_one_step_is_one_scale_pulled_toward_the_prior() -> None:
    """θ = r · τ²/(τ² + σ²) = 0.96 r with τ = 0.5 and σ = 0.1, since the step as a whole scales."""
    found = calibrate(measured(1.5, 1.5, 1.5, count=1), V100, ANALYTIC, date="2026-01-01")
    assert found.chosen.name == "one scale"
    assert np.log(found.profile.compute_factor) == pytest.approx(0.25 / 0.26 * np.log(1.5), rel=1e-3)


@given(noise=st.lists(st.floats(-0.6, 0.6), min_size=2, max_size=6))
@settings(max_examples=8, deadline=None)
def test_calibration_never_does_worse_on_the_rows_it_was_given(noise: list[float]) -> None:
    rows = [
        {**row, "step_seconds": p.seconds(np.zeros(3)) * float(np.exp(e))}
        for row, p, e in zip(ROWS, pieces(6), noise, strict=False)
    ]
    found = calibrate(rows, V100, ANALYTIC, date="2026-01-01")
    assert found.chosen.mape <= found.before.mape
    assert found.chosen.loo_mape <= found.before.loo_mape


def test_the_calibrated_model_gives_the_steps_that_were_fitted() -> None:
    rows = measured(0.8, 1.5, 1.0)
    found = calibrate(rows, V100, ANALYTIC, date="2026-01-01")
    run = read_runs(rows)[0][8]
    step = step_forecast(find_model(run.reference).trace(run.recipe), placed(V100), Calibrated(ANALYTIC, found.profile))
    assert step.seconds.mid == pytest.approx(pieces()[8].seconds(np.array(found.chosen.factors)), rel=1e-3)


def test_a_device_that_is_bad_at_one_kind_of_kernel_is_told_from_one_that_is_slow() -> None:
    grouped = list(KINDS).index("grouped convolutions")
    factors = np.zeros(3 + len(KINDS))
    factors[3 + grouped] = np.log(3.0)
    # Slow memory does not explain it: DenseNet waits for memory as well, and is as fast as forecast.
    names = ("resnet18", "vgg11", "mobilenet_v2", "densenet121")
    large = [{**ROWS[0], "model": name, "batch_per_gpu": batch} for name in names for batch in (64, 128, 256)]
    own = step_pieces(read_runs(large)[0], ANALYTIC, False)[0]
    rows = [{**row, "step_seconds": p.seconds(factors)} for row, p in zip(large, own, strict=True)]
    found = calibrate(rows, V100, ANALYTIC, date="2026-01-01")
    assert found.chosen.name == "a scale for each kind of kernel"
    whole, of_class = found.profile.compute_factor, found.profile.class_factor
    assert whole * of_class["conv_depthwise"] > 1.8  # pulled toward 1, as every factor is
    assert whole * of_class["conv"] == pytest.approx(1, abs=0.1)


def test_one_odd_row_does_not_decide() -> None:
    """Eight rows say 1.3, the ninth took ten times as long: the mean of the logarithms would be 1.6."""
    rows = measured(1.3, 1.3, 1.3)
    rows[4]["step_seconds"] *= 10
    scale = fit_factors(step_pieces(read_runs(rows)[0], ANALYTIC, False)[0], CORRECTIONS["one scale"])[0]
    assert np.exp(scale) == pytest.approx(1.3, rel=0.05)


def test_a_candidate_moves_only_its_own_factors() -> None:
    assert [c.name for c in fit_corrections(pieces(2))] == list(CORRECTIONS)
    assert fit_factors(pieces(), CORRECTIONS["two scales"])[2] == 0
    assert len(set(fit_factors(pieces(), CORRECTIONS["one scale"])[:3])) == 1
    assert not fit_factors(pieces(), CORRECTIONS["two scales and launch"])[3:].any()


def test_one_product_moves_arithmetic_alone() -> None:
    """4096³ in 12 ms on a V100: 137.4 Gflop / 12 ms = 11.45 of 15.7 Tflop/s."""
    found = calibrate([], V100, ANALYTIC, date="2026-01-01", gemm=Product(0.012, 4096, 4096, 4096))
    assert found.profile.gemm_fraction["fp32"] == pytest.approx(2 * 4096**3 / 0.012 / V100.peak("fp32"))
    assert found.profile.memory_factor == 1
    assert found.profile.compute_factor > 1
    assert found.chosen.mape < found.before.mape


def test_milliseconds_are_noticed() -> None:
    with pytest.raises(
        BadInput, match=r"a product of 4096x4096x4096 in 12 s is 11\.5 GFLOPS, less than 1% of the peak"
    ):
        calibrate([], V100, ANALYTIC, date="2026-01-01", gemm=Product(12.0, 4096, 4096, 4096))


def test_a_product_above_the_peak_is_refused() -> None:
    with pytest.raises(BadInput, match=r"is 68\.7 TFLOPS, above the peak of V100-SXM2-16GB in fp32, 15\.7 TFLOPS"):
        calibrate([], V100, ANALYTIC, date="2026-01-01", gemm=Product(0.002, 4096, 4096, 4096))


def test_runs_of_another_precision_than_asked_are_refused() -> None:
    with pytest.raises(BadInput, match="no run of V100-SXM2-16GB is in bf16: the table has fp32"):
        calibrate(ROWS, V100, ANALYTIC, date="2026-01-01", precision="bf16")


def test_a_profile_knows_in_which_precisions_it_was_measured() -> None:
    rows = [*measured(0.8, 1.5, 1.0), *({**row, "precision": "amp_fp16"} for row in measured(0.4, 1.0, 1.0))]
    both = calibrate(rows, V100, ANALYTIC, date="2026-01-01")
    assert both.profile.precisions == ("fp32", "amp_fp16")
    assert both.notes == ("runs in amp_fp16, fp32 are fitted together; `precision` keeps one of them",)
    one = calibrate(rows, V100, ANALYTIC, date="2026-01-01", precision="amp")
    in_half = both.profile.rows - len(measured(0.8, 1.5, 1.0))
    assert (one.profile.precisions, one.notes, one.profile.rows) == (("amp_fp16",), (), in_half)


def test_rows_of_another_device_do_not_help() -> None:
    with pytest.raises(BadInput, match="no row of A100-SXM4-40GB can be used: the table has V100-SXM2-16GB"):
        calibrate(ROWS, find_device("A100"), ANALYTIC, date="2026-01-01")


def test_more_rows_than_needed_are_thinned() -> None:
    found = calibrate(measured(1.3, 1.3, 1.3) * 8, V100, ANALYTIC, date="2026-01-01")
    assert found.profile.rows == 50
    assert found.notes == ("50 of 72 rows are used, evenly spread over the table",)


def test_a_step_faster_than_the_peak_costs_its_row() -> None:
    row = {"model": "resnet50", "device": "V100", "batch_per_gpu": 64, "step_seconds": 1e-4}
    with pytest.raises(BadInput, match=r"row 1: resnet50 cannot take 0.0001 s a step: at the peak of V100"):
        calibrate([row], V100, ANALYTIC, date="2026-01-01")
    found = calibrate([row, *measured(1.3, 1.3, 1.3)], V100, ANALYTIC, date="2026-01-01")
    assert [failure.row_index for failure in found.failures] == [0]  # it costs its row, not the table
