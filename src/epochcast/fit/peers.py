"""Published ways to predict layer times, re-implemented, to stand beside ours in the studies.

`RawTimeMLP` is Justus et al. (2018), "Predicting the Computational Cost of Deep Learning Models": a fully connected
network from the layer's hyper-parameters and the GPU's data sheet to milliseconds, trained on the squared error of
the raw time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochcast.cost.single_layer import ACTIVATIONS, UPDATE_BYTES, LayerRows
from epochcast.errors import BadInput, MissingExtra
from epochcast.fit.layer_table import LayerTable
from epochcast.hardware.device import Device

Array = NDArray[np.float64]

MILLISECONDS = 1e3
LAYERS = (32, 64, 128, 128)


def raw_features(rows: LayerRows, device: Device) -> Array:
    """Hyper-parameters as they are, names as one-hot columns, three numbers of the data sheet.

    No flops, no bytes, no logarithm.
    """
    sizes = [rows.batch, rows.size, rows.kernel, rows.stride, rows.channels_in, rows.channels_out]
    truths = [rows.is_same, rows.has_bias, rows.trains]
    hot = [rows.activation == name for name in ACTIVATIONS] + [rows.optimizer == name for name in UPDATE_BYTES]
    sheet = [device.memory_bytes_per_second / 1e9, float(device.compute_units), device.clock_hertz / 1e9]
    columns = [np.asarray(c, dtype=np.float64) for c in (*sizes, *truths, *hot)]
    return np.stack([*columns, *(np.full(len(rows), value) for value in sheet)], axis=1)


@dataclass
class RawTimeMLP:
    """Fit once on tables of one kind.

    `seconds` may be negative or absurd outside the range it saw, as the original's.
    """

    epochs: int = 20
    seed: int = 0
    _network: Any = None
    _scaler: Any = None

    def fit(self, tables: Sequence[LayerTable]) -> "RawTimeMLP":
        """Adam on the mean squared error of milliseconds."""
        try:
            from sklearn.neural_network import MLPRegressor
            from sklearn.preprocessing import StandardScaler
        except ImportError:
            raise MissingExtra("fit", "scikit-learn") from None
        inputs, targets = [], []
        for table in tables:
            for device, _, mine in table.setups():
                part = table.at(mine & table.is_measured)
                inputs.append(raw_features(part.rows, device))
                targets.append(part.seconds * MILLISECONDS)
        rows = np.concatenate(inputs)
        self._scaler = StandardScaler().fit(rows)
        self._network = MLPRegressor(
            hidden_layer_sizes=LAYERS,
            learning_rate_init=2e-3,
            batch_size=512,
            max_iter=self.epochs,
            tol=0.0,
            random_state=self.seed,
        )
        self._network.n_iter_no_change = self.epochs + 1  # so that it never stops early and never warns
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it has not converged: the number of epochs is ours
            self._network.fit(self._scaler.transform(rows), np.concatenate(targets))
        return self

    def seconds(self, rows: LayerRows, device: Device) -> Array:
        """Its answer for every row."""
        if self._network is None:
            raise BadInput("the network must be fitted first")
        found: Array = self._network.predict(self._scaler.transform(raw_features(rows, device)))
        return found / MILLISECONDS
