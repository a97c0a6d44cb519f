import polars as pl
import pytest

from epochcast.measure.evaluate.evaluate import evaluate
from epochcast.measure.evaluate.report_table import as_run

ROW = {
    "model": "mnist_cnn_3conv",
    "device": "P100-PCIe",
    "strategy": "single",
    "gpu_count": 1,
    "optimizer": "adam",
    "batch_size_per_replica": 32,
    "steps_per_epoch": 1875,
    "epoch": None,
    "epochs_in_time": 10,
    "seconds": 51.85,
    "note": "total of 10 epochs incl. first-epoch start-up",
}


def test_the_start_up_is_taken_off_where_the_first_epoch_was_timed() -> None:
    assert as_run(ROW)["step_seconds"] == pytest.approx((51.85 - 1.85) / 18750)
    assert as_run({**ROW, "epoch": 3, "epochs_in_time": 1, "seconds": 5.0})["step_seconds"] == pytest.approx(5 / 1875)


def test_an_epoch_of_cifar10_has_fifty_thousand_images() -> None:
    row = {**ROW, "gpu_count": 2, "epoch": 2, "epochs_in_time": 1, "seconds": 3.0, "note": "sample count uncertain"}
    assert as_run(row)["step_seconds"] == pytest.approx(3.0 / 782)  # ⌈50,000/64⌉


def test_a_table_of_the_report_is_recognised_and_forecast_from_single_layers() -> None:
    mirrored = {**ROW, "strategy": "mirrored", "gpu_count": 2, "steps_per_epoch": 938, "seconds": 60.0}
    answer = evaluate(pl.DataFrame([ROW, mirrored]))
    assert answer.kind == "report" and not answer.failures
    alone, together = answer.predicted.mid_seconds
    assert together - alone == pytest.approx(1.7e-3, rel=0.02)  # 97 KB of gradients: the latency is all of it
