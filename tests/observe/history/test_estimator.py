import numpy as np
import pytest
from sklearn.base import clone

from epochcast.errors import BadInput
from epochcast.observe.history.estimator import HistoryRegressor

ROWS = [{"network": n, "gpus": g, "batch": 8 * b} for n in "ab" for g in (1, 2, 4) for b in (1, 2, 4)]
SECONDS = np.array([(1 + (row["network"] == "b")) * int(row["batch"]) / int(row["gpus"]) for row in ROWS])


def test_it_is_used_as_an_estimator_of_scikit_learn() -> None:
    made = clone(HistoryRegressor("ridge", seed=3))
    assert made.get_params()["seed"] == 3
    assert made.fit(ROWS, SECONDS).score(ROWS, SECONDS) > -0.3
    found = made.predict_interval(ROWS[:4])
    assert (found.low <= found.mid).all() and (found.mid <= found.high).all()


def test_it_must_be_fitted_before_it_predicts() -> None:
    with pytest.raises(BadInput, match="fit it before"):
        HistoryRegressor().predict(ROWS)
    with pytest.raises(BadInput, match="as many are needed"):
        HistoryRegressor().fit(ROWS, SECONDS[:3])
