"""Support vector regression and a net of three hidden layers; both on standardised features.

The layers are those that AI Gauge reports (Dube et al. 2019): 250, 200 and 200 nodes. Neither is bound to be monotone.
"""

import numpy as np

from epochcast.observe.history.job_table import Array
from epochcast.observe.history.models.tree_models import sklearn
from epochcast.observe.history.predictors import Layers, RadialKernel
from epochcast.observe.history.standardize import Standardization

LAYERS = (250, 200, 200)
MOST_PASSES = 200


def support_vectors(
    rows: Array, target: Array, *, penalty: float = 10.0, margin: float = 0.01, gamma: float | None = None
) -> RadialKernel:
    """ε-insensitive regression under a radial basis function (Drucker et al. 1997)."""
    scaling = Standardization.of(rows)
    width = 1.0 / max(1, rows.shape[1]) if gamma is None else gamma
    model = sklearn("svm").SVR(C=penalty, epsilon=margin, gamma=width)
    model.fit(scaling.scaled(rows), target)
    return RadialKernel(
        scaling,
        np.asarray(model.support_vectors_, dtype=np.float64),
        np.asarray(model.dual_coef_[0], dtype=np.float64),
        float(model.intercept_[0]),
        width,
    )


def net(rows: Array, target: Array, *, seed: int, penalty: float = 1e-4, layers: tuple[int, ...] = LAYERS) -> Layers:
    """Trained by Adam until the error on a tenth of the rows stops falling."""
    scaling = Standardization.of(rows)
    centre, spread = float(target.mean()), float(target.std()) or 1.0
    model = sklearn("neural_network").MLPRegressor(
        hidden_layer_sizes=layers,
        alpha=penalty,
        random_state=seed,
        max_iter=MOST_PASSES,
        early_stopping=len(target) >= 50,
    )
    model.fit(scaling.scaled(rows), (target - centre) / spread)
    weights = [np.asarray(layer, dtype=np.float64) for layer in model.coefs_]
    biases = [np.asarray(bias, dtype=np.float64) for bias in model.intercepts_]
    weights[-1], biases[-1] = weights[-1] * spread, biases[-1] * spread + centre
    return Layers(scaling, tuple(weights), tuple(biases))
