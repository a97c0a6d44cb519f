"""Ratios between devices: two rows that differ in the GPU alone, and a pair written one way."""

import polars as pl
import pytest

from studies.device_ratios.run import SAME, StepRatio, page, pair_figures, step_ratios


def row(name: str, step: float, forecast: float, model: str = "resnet50") -> dict[str, object]:
    same = dict.fromkeys(SAME, "x") | {"model": model, "batch_per_gpu": 64.0}
    return same | {"name": name, "step": step, "forecast": forecast}


def test_a_ratio_is_of_rows_that_differ_in_the_gpu_alone() -> None:
    rows = [row("A", 2.0, 3.0), row("B", 1.0, 1.0), row("B", 9.0, 9.0, model="vgg16")]
    (ratio,) = step_ratios(pl.DataFrame(rows))
    assert (ratio.slower, ratio.faster, ratio.measured, ratio.forecast, ratio.error) == ("A", "B", 2.0, 3.0, 1.5)


def test_a_pair_is_written_one_way_whichever_is_slower_in_a_row() -> None:
    """A is twice as slow in two rows, B in one: its ratio counts as a half."""
    two = [StepRatio("A", "B", "s", model, "fp32", 1, 2.0, 2.0) for model in ("m", "n")]
    (pair,) = pair_figures([*two, StepRatio("B", "A", "s", "o", "fp32", 1, 2.0, 1.0)])
    assert (pair.slower, pair.faster, pair.rows, pair.measured, pair.forecast) == ("A", "B", 3, 2.0, 2.0)
    assert pair.mean_error == pytest.approx((0 + 0 + 1) / 3), "1 ÷ ½ - 1"
    assert "| A | B | fp32 | 3 | 2.00 × | 2.00 × | 1.00 | 33% |" in page([*two], [pair])
