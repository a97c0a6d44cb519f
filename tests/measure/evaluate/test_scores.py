import numpy as np
import pytest

from epochcast.measure.evaluate.scores import scores


def test_figures_by_hand() -> None:
    """Measured 1, 2, 4; predicted 1.1, 1, 4: errors of 10, 50 and 0 %; the second lies outside."""
    found = scores(np.array([1.0, 2, 4]), np.array([0.9, 0.5, 3]), np.array([1.1, 1, 4]), np.array([1.2, 1.5, 5]))
    assert found.mape == pytest.approx(0.2)
    assert found.median_ape == pytest.approx(0.1)
    assert found.p90_ape == pytest.approx(0.42)  # between 10 and 50 %, 8/10 of the way
    assert found.rmse_seconds == pytest.approx(np.sqrt((0.01 + 1) / 3))
    assert found.coverage == pytest.approx(2 / 3)


def test_over_no_rows_there_are_no_figures() -> None:
    none = np.zeros(0)
    assert scores(none, none, none, none, failed=3).as_dict() == {
        "n": 0, "failed": 3, "mape": None, "median_ape": None, "p90_ape": None, "rmse_seconds": None, "coverage": None,
    }  # fmt: skip
