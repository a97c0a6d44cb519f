"""A model of past jobs in the manner of scikit-learn: `fit(X, y)`, `predict(X)`, `score(X, y)`, `get_params`.

>>> from epochcast.observe.history.estimator import HistoryRegressor
>>> rows = [{"network": n, "gpus": g, "batch": 8 * b} for n in "ab" for g in (1, 2, 4) for b in (1, 2, 4)]
>>> seconds = [(1 + (row["network"] == "b")) * row["batch"] / row["gpus"] for row in rows]
>>> HistoryRegressor("ridge").fit(rows, seconds).predict(rows[:2]).shape
(2,)

"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from epochcast.errors import BadInput, UnknownOption
from epochcast.observe.history.history_verbs import HistorySettings, fit, predict
from epochcast.observe.history.job_table import Array
from epochcast.observe.history.job_table_reader import read_frame
from epochcast.observe.history.model_file import HistoryModel, Predictions

_NAMES = ("model", "target_name", "seed", "workers")


class HistoryRegressor:
    """A table (polars, pandas, or rows as dictionaries) and the target of each row."""

    def __init__(
        self, model: str = "grey_box", target_name: str = "step_seconds", seed: int = 0, workers: int = 1
    ) -> None:
        self.model, self.target_name, self.seed, self.workers = model, target_name, seed, workers

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments it was made with."""
        return {name: getattr(self, name) for name in _NAMES}

    def set_params(self, **params: Any) -> "HistoryRegressor":
        """Change arguments."""
        for name, value in params.items():
            if name not in _NAMES:
                raise UnknownOption(name, _NAMES)
            setattr(self, name, value)
        return self

    def fit(self, X: Any, y: Sequence[float] | Array) -> "HistoryRegressor":
        """Learn from rows and their targets."""
        from epochcast.measure.tables.table_chunks import polars

        frame = read_frame(X)
        target = polars().Series(self.target_name, np.asarray(y, dtype=np.float64))
        if len(target) != len(frame):
            raise BadInput(f"{len(frame)} rows and {len(target)} targets: as many are needed of both")
        settings = HistorySettings(seed=self.seed, workers=self.workers)
        self.model_: HistoryModel = fit(
            frame.with_columns(target), self.target_name, model=self.model, settings=settings
        )
        return self

    def predict(self, X: Any) -> Array:
        """The middle of every row's interval."""
        return self.predict_interval(X).mid

    def predict_interval(self, X: Any) -> Predictions:
        """low, mid and high of every row."""
        if not hasattr(self, "model_"):
            raise BadInput("fit it before it predicts")
        return predict(self.model_, read_frame(X)).predictions

    def score(self, X: Any, y: Sequence[float] | Array) -> float:
        """−mean |y − φ(x)|/y: the larger the better, as scikit-learn wants it."""
        target = np.asarray(y, dtype=np.float64)
        return -float(np.mean(np.abs(self.predict(X) - target) / target))
