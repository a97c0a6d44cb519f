"""A GPU that `LayersModel` has not seen, from a few dozen measured layers, which choose between similar GPUs.

    log t = Σ w_s (log t_s + o_s) + b + z·β

t_s is what sibling s says, o_s brings it to the right scale, w_s is larger the less it then errs, and z are traits of
the row: where siblings disagree, and what its time is made of.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epochcast.errors import BadInput
from epochcast.hardware.device import Device
from epochcast.predict.cost.layer_terms import HOST_TERMS, TERMS, terms
from epochcast.predict.cost.layers_model import LEAST_SIBLING_ROWS, LayersModel, LayerTimes, Setup
from epochcast.predict.cost.single_layer import LayerRows

Array = NDArray[np.float64]

# Ridge strength: flat between 1 and 10 when any of six GPUs is left out (studies/justus).
RIDGE = 3.0
# Rows whose worth the offsets, weights and slopes use up; set so that 90 % of the rows of a left-out GPU lie inside.
FREEDOM = 15.0
LEAST_ROWS = 10


@dataclass(frozen=True)
class LayerCalibration:
    """o, w, β, the means of b and z, and how far the measurements lie above and below the middle."""

    siblings: tuple[Setup, ...]
    offsets: Array
    weights: Array
    slopes: Array
    means: Array
    width: float


def calibrated(model: LayersModel, rows: LayerRows, device: Device, seconds: Array) -> LayerCalibration:
    """Fit to a few measured rows (fifty do).

    Every sibling is brought to the right scale; those that then err least weigh most (inverse square of the
    variance); ridge slopes on the differences between siblings and on a few traits of the row take what is left.
    """
    if len(rows) < LEAST_ROWS:
        raise BadInput(f"calibration needs at least {LEAST_ROWS} measured rows, got {len(rows)}")
    siblings = tuple(s for s in model.of_kind(rows.kind) if s.rows >= LEAST_SIBLING_ROWS)
    logs, truth = model.sibling_logs(rows, device, siblings), np.log(seconds)
    offsets = np.median(truth[:, None] - logs, axis=0)
    scaled = logs + offsets
    weights = 1 / np.maximum(((truth[:, None] - scaled) ** 2).mean(axis=0), 1e-6) ** 2
    weights /= weights.sum()
    traits = _traits(rows, device, siblings, scaled, scaled @ weights)
    rest = truth - scaled @ weights
    means = np.array([rest.mean(), *traits.mean(axis=0)])
    centred = traits - means[1:]
    slopes = np.linalg.solve(centred.T @ centred + RIDGE * np.eye(traits.shape[1]), centred.T @ (rest - means[0]))
    # Fifty rows fit a few slopes: widen what they show of themselves by the freedom they used up.
    freedom = np.sqrt(len(rows) / max(1.0, len(rows) - FREEDOM))
    width = float(np.quantile(np.abs(rest - means[0] - centred @ slopes), 0.9) * freedom)
    return LayerCalibration(siblings, offsets, weights, slopes, means, width)


def calibrated_answer(model: LayersModel, rows: LayerRows, device: Device, calibration: LayerCalibration) -> LayerTimes:
    """low, mid and high of every row of a calibrated GPU."""
    scaled = model.sibling_logs(rows, device, calibration.siblings) + calibration.offsets
    middle = scaled @ calibration.weights
    traits = _traits(rows, device, calibration.siblings, scaled, middle)
    log_mid = middle + calibration.means[0] + (traits - calibration.means[1:]) @ calibration.slopes
    mid, factor = np.exp(log_mid), np.exp(calibration.width)
    return LayerTimes(mid / factor, mid, mid * factor, "layers, calibrated")


def _traits(rows: LayerRows, device: Device, siblings: tuple[Setup, ...], scaled: Array, middle: Array) -> Array:
    """Where siblings disagree; shares of host, arithmetic and traffic; whether it trains; window and channels."""
    typical = np.median([s.coefficients for s in siblings], axis=0)
    spent = terms(rows, device) * typical
    total = spent.sum(axis=1)
    groups = (HOST_TERMS, ("product_compute", "gradient_compute"), ("product_traffic", "gradient_traffic"))
    shares = [spent[:, [TERMS.index(name) for name in group]].sum(axis=1) / total for group in groups]
    logs = [np.log(rows.kernel), np.log(rows.stride), np.log(rows.channels_in) / 3, np.log(rows.channels_out) / 3]
    return np.column_stack([scaled - middle[:, None], *shares, rows.trains.astype(float), *logs])
