import csv

import numpy as np
import pytest

pytest.importorskip("polars")
pytest.importorskip("lightgbm")

from tests.every import every

from studies.justus import run
from training.train_layers import JUSTUS_DEVICES


def rows(split: str, layer: str = "conv2d") -> dict[str, dict[str, str]]:
    with run.RESULT.open(encoding="utf-8") as file:
        return {r["device"]: r for r in csv.DictReader(file) if r["split"] == split and r["layer"] == layer}


@every("device", run.PAPER_RMSE_MS)
def test_the_paper_is_beaten_on_every_gpu(device: str) -> None:
    assert float(rows("random tenth")[device]["rmse_ms"]) < run.CLAIM_RMSE_MS[device] < run.PAPER_RMSE_MS[device]


def test_the_report_is_beaten_on_its_own_rows() -> None:
    assert float(rows("random tenth of the report")["all"]["rmse_ms"]) < run.REPORT_RMSE_MS / 2


@pytest.mark.parametrize("small", ["", ", batch < 33"])
def test_fifty_rows_bring_a_gpu_that_was_left_out_within_a_tenth(small: str) -> None:
    found = rows(f"GPU left out, 50 rows given{small}")
    assert set(found) == set(JUSTUS_DEVICES)
    assert all(float(row["mape"]) <= run.CLAIM_CALIBRATED_MAPE for row in found.values())


def test_intervals_hold_nine_of_ten() -> None:
    shares = [float(row["coverage"]) for row in rows("random tenth").values()]
    assert all(0.85 < share < 0.95 for share in shares)


def test_errors_by_hand() -> None:
    rmse, mape = run.errors(np.array([2e-3, 1e-3]), np.array([1e-3, 1e-3]))
    assert rmse == pytest.approx(np.sqrt(0.5))
    assert mape == pytest.approx(0.5)
