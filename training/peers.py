"""Published methods to predict the time of layers and of steps, re-implemented, to compare with ours in the studies.

`RawTimeMLP` is Justus et al. (2018), "Predicting the Computational Cost of Deep Learning Models": a fully connected
network from the layer's hyper-parameters and the GPU's data sheet to milliseconds, trained on the squared error of
the raw time. `RawStepMLP` is the same network where only whole steps were timed: from raw totals of the step.

`LinearStep` is a sum with coefficients of at least 0, fitted to whole steps by least squares of the relative error:

    four totals     step = a·flops + b·activations + c·parameters + d
    layer lines     step = Σ β0 + β1·c over the layers of Gianniti et al. (`layer_linear.py`); ops that their
                    table lacks cost nothing

Coefficients hold for the device, precision, mode and layout they were fitted on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.trace import CLASSES, PHASES, Columns
from epochcast.errors import BadInput, MissingExtra
from epochcast.hardware.device import Device
from epochcast.measure.evaluate.layer_table import LayerTable
from epochcast.predict.cost.single_layer import ACTIVATIONS, UPDATE_BYTES, LayerRows
from training.layer_linear import LINE_KINDS, complexities

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
        inputs, targets = [], []
        for table in tables:
            for device, _, mine in table.setups():
                part = table.at(mine & table.is_measured)
                inputs.append(raw_features(part.rows, device))
                targets.append(part.seconds * MILLISECONDS)
        self._scaler, self._network = _fitted(
            np.concatenate(inputs), np.concatenate(targets), 512, self.epochs, self.seed
        )
        return self

    def seconds(self, rows: LayerRows, device: Device) -> Array:
        """Its answer for every row."""
        if self._network is None:
            raise BadInput("the network must be fitted first")
        milliseconds: Array = self._network.predict(self._scaler.transform(raw_features(rows, device)))
        return milliseconds / MILLISECONDS


@dataclass
class RawStepMLP:
    """Raw totals of a step to its milliseconds, on the squared error. May answer below 0, as the layers' network."""

    epochs: int = 80
    seed: int = 0
    _network: Any = None
    _scaler: Any = None

    def fit(self, features: Array, seconds: Array) -> "RawStepMLP":
        """Adam on the mean squared error of milliseconds."""
        self._scaler, self._network = _fitted(features, seconds * MILLISECONDS, 32, self.epochs, self.seed)
        return self

    def seconds(self, features: Array) -> Array:
        """Its answer for every step."""
        if self._network is None:
            raise BadInput("the network must be fitted first")
        milliseconds: Array = self._network.predict(self._scaler.transform(features))
        return milliseconds / MILLISECONDS


def _fitted(rows: Array, milliseconds: Array, batch: int, epochs: int, seed: int) -> tuple[Any, Any]:
    """The scaler and the network, after exactly so many epochs."""
    try:
        from sklearn.neural_network import MLPRegressor
        from sklearn.preprocessing import StandardScaler
    except ImportError:
        raise MissingExtra("fit", "scikit-learn") from None
    import warnings

    scaler = StandardScaler().fit(rows)
    network = MLPRegressor(
        hidden_layer_sizes=LAYERS,
        learning_rate_init=2e-3,
        batch_size=min(batch, len(rows)),
        max_iter=epochs,
        tol=0.0,
        random_state=seed,
    )
    network.n_iter_no_change = epochs + 1  # so that it never stops early and never warns
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged: the number of epochs is ours
        network.fit(scaler.transform(rows), milliseconds)
    return scaler, network


@dataclass
class LinearStep:
    """step = Σ βᵢ·xᵢ, βᵢ ≥ 0, with the least squares of predicted/measured - 1."""

    _coefficients: Array | None = None

    def fit(self, features: Array, seconds: Array) -> "LinearStep":
        """One coefficient per column of `features`."""
        try:
            from scipy.optimize import nnls
        except ImportError:
            raise MissingExtra("fit", "scipy") from None
        relative = features / seconds[:, None]
        scale = np.maximum(np.abs(relative).max(axis=0), np.finfo(np.float64).tiny)
        coefficients, _ = nnls(relative / scale, np.ones(len(seconds)), maxiter=100 * features.shape[1])
        self._coefficients = coefficients / scale
        return self

    def seconds(self, features: Array) -> Array:
        """Its answer for every step."""
        if self._coefficients is None:
            raise BadInput("the coefficients must be fitted first")
        return features @ self._coefficients


def four_totals(columns: Columns) -> Array:
    """Flops and activations of the forward pass, bytes of the update (they count the parameters), and one."""
    forward = columns.phase == PHASES.index(Phase.FORWARD)
    outputs = np.where(forward & columns.is_matrix, columns.written_bytes / columns.element_bytes, 0.0)
    update = columns.phase == PHASES.index(Phase.UPDATE)
    return np.array([columns.flops[forward].sum(), outputs.sum(), columns.bytes[update].sum(), 1.0])


def layer_lines(columns: Columns) -> Array:
    """How many ops each line of `layer_linear` has in the step, and the sum of their complexities."""
    group, complexity = complexities(columns)
    has_line = group >= 0
    lines = 2 * len(LINE_KINDS)
    counts = np.bincount(group[has_line], minlength=lines)
    sums = np.bincount(group[has_line], weights=complexity[has_line], minlength=lines)
    return np.concatenate([counts, sums])


def raw_totals(columns: Columns) -> Array:
    """Flops, bytes, launches and the number of ops of each class: as they are, no logarithm."""
    totals = np.array([columns.flops.sum(), columns.bytes.sum(), columns.launches.sum()])
    return np.concatenate([totals, np.bincount(columns.op_class, minlength=len(CLASSES))])


STEP_PEERS: dict[str, tuple[Callable[[Columns], Array], Callable[[], LinearStep | RawStepMLP]]] = {
    "layer_linear": (layer_lines, LinearStep),
    "four coefficients": (four_totals, LinearStep),
    "MLP on raw time": (raw_totals, RawStepMLP),
}
"""Ways to predict a whole step that must be fitted: the features of a step, and what is fitted on them."""
