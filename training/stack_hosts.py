"""The host figures of a TensorFlow stack, from measurements.

`run_and_op_seconds` needs single layers only: where kernels are short, a run lasts

    t ≈ run + op · ops(row) + s · kernels(row)

with `ops` counted from what the row runs and `kernels` from the coefficients of its setup. Least absolute deviations,
relative: a few rows in a hundred were disturbed. What a training step adds is read off whole networks
(studies/correction_factor).
"""

import numpy as np
from numpy.typing import NDArray

from epochcast.errors import BadInput, MissingExtra
from epochcast.hardware.device import Device
from epochcast.measure.evaluate.layer_table import LayerTable
from epochcast.predict.cost.layer_terms import HOST_TERMS, TERMS
from epochcast.predict.cost.layers_model import Setup
from epochcast.predict.cost.single_layer import LayerRows

Array = NDArray[np.float64]

# Runs whose kernels would last longer say little about the host.
SHORT_SECONDS = 3e-4
# Subtract, square, mean; fill, divide, multiply twice, negate, sum twice: the loss and its gradient, counted by hand.
LOSS_OPS = 10.0
LEAST_ROWS = 30


def run_ops(rows: LayerRows) -> Array:
    """TensorFlow ops of one benchmark run: product, bias, activation.

    Back, loss, and an update of input, target and weights.
    """
    bias, active, trains = (np.asarray(a, dtype=float) for a in (rows.has_bias, rows.is_activated, rows.trains))
    return np.asarray(1 + bias + active + trains * (2 + bias + active + LOSS_OPS + 3 + bias))


def run_and_op_seconds(table: LayerTable, device: Device, setup: Setup) -> tuple[float, float]:
    """Host seconds per session run and per op."""
    kernels = setup.part_seconds(table.rows, device, tuple(name for name in TERMS if name not in HOST_TERMS))
    short = table.is_measured & (kernels < SHORT_SECONDS)
    if short.sum() < LEAST_ROWS:
        raise BadInput(f"only {short.sum()} runs with kernels under {SHORT_SECONDS} s; {LEAST_ROWS} are needed")
    seconds = table.seconds[short]
    columns = np.column_stack([np.ones(len(seconds)), run_ops(table.rows)[short], kernels[short]])
    run, op, _ = least_absolute_deviations(columns, seconds, 1 / seconds)
    return run, op


def least_absolute_deviations(columns: Array, target: Array, weight: Array) -> list[float]:
    """argmin_{c ≥ 0} Σ w·|target − columns·c|, as a linear program."""
    try:
        from scipy.optimize import linprog
    except ImportError:
        raise MissingExtra("fit", "scipy") from None
    rows, size = columns.shape
    # Scaled so that the solver sees numbers near one.
    scale = np.abs(columns * weight[:, None]).mean(axis=0)
    matrix = np.hstack([columns * weight[:, None] / scale, np.eye(rows), -np.eye(rows)])
    cost = np.concatenate([np.zeros(size), np.ones(2 * rows)])
    optimum = linprog(cost, A_eq=matrix, b_eq=target * weight, bounds=(0, None), method="highs")
    if not optimum.success:
        raise BadInput(f"the host figures could not be fitted: {optimum.message}")
    return [float(c) for c in optimum.x[:size] / scale]
