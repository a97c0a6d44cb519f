from math import log

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
    assert found.width == pytest.approx(5 / 3)  # of 4/3, 3 and 5/3 the median


def test_the_interval_score_by_hand() -> None:
    """Widths of 4/3, 3 and 5/3; the second value is above its interval by 2 / 1.5, which counts 2 / 10 % times."""
    found = scores(np.array([1.0, 2, 4]), np.array([0.9, 0.5, 3]), np.array([1.1, 1, 4]), np.array([1.2, 1.5, 5]))
    assert found.interval_score == pytest.approx((log(4 / 3) + log(3) + log(5 / 3) + 20 * log(2 / 1.5)) / 3)


def test_a_value_below_its_interval_costs_as_much_as_one_above() -> None:
    one = np.ones(1)
    below, above = scores(one, 2 * one, 2 * one, 4 * one), scores(8 * one, 2 * one, 2 * one, 4 * one)
    assert below.interval_score == pytest.approx(above.interval_score) == pytest.approx(21 * log(2))


def test_over_no_rows_there_are_no_figures() -> None:
    none = np.zeros(0)
    assert scores(none, none, none, none, failed=3).as_dict() == {
        "n": 0, "failed": 3, "mape": None, "median_ape": None, "p90_ape": None, "rmse_seconds": None, "coverage": None,
        "width": None, "interval_score": None,
    }  # fmt: skip
