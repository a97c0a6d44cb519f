"""Linear models: least squares, ridge, non-negative least squares.

    min |y − b − Xw|²                 linear
    min |y − b − Zw|² + λ·|w|²        ridge, on standardised features Z
    min |y − Xw|²,  w ≥ 0             NNLS (Lawson & Hanson 1974), a column of ones among X

Weights of what never shortens a job (epochs, samples) are kept at 0 or above.
"""

import numpy as np

from epochcast.errors import BadInput
from epochcast.observe.history.design import Design
from epochcast.observe.history.job_table import Array, Flags
from epochcast.observe.history.predictors import Linear
from epochcast.observe.history.roles import GROWING
from epochcast.observe.history.standardize import Standardization


def least_squares(rows: Array, target: Array, growing: Flags) -> Linear:
    """Ordinary least squares; raises where there are fewer rows than features."""
    if rows.shape[0] <= rows.shape[1] + 1:
        raise BadInput(
            f"least squares needs more rows than features, got {rows.shape[0]:,} rows and {rows.shape[1]:,} features"
            " (one for each category); use ridge, or fewer columns"
        )
    return ridge(rows, target, 0.0, growing)


def ridge(rows: Array, target: Array, penalty: float, growing: Flags) -> Linear:
    """Ridge regression with weights of `growing` features at 0 or above; λ = penalty · rows."""
    scaling = Standardization.of(rows)
    scaled, centre = scaling.scaled(rows), float(target.mean())
    weights = _solved(scaled, target - centre, penalty * len(rows))
    is_wrong = growing & (weights < 0)
    while is_wrong.any():  # one after the other leaves; weights of the others only move towards the bounded optimum
        growing_held = ~is_wrong
        weights = np.zeros(len(weights))
        weights[growing_held] = _solved(scaled[:, growing_held], target - centre, penalty * len(rows))
        now_wrong = is_wrong | (growing & (weights < 0))
        if (now_wrong == is_wrong).all():
            break
        is_wrong = now_wrong
    return unscaled(weights, centre, scaling)


def _solved(rows: Array, target: Array, penalty: float) -> Array:
    if not rows.shape[1]:
        return np.zeros(0)
    if penalty <= 0:
        return np.asarray(np.linalg.lstsq(rows, target, rcond=1e-10)[0])
    gram = rows.T @ rows
    gram[np.diag_indices_from(gram)] += penalty
    return np.asarray(np.linalg.solve(gram, rows.T @ target))


def unscaled(weights: Array, centre: float, scaling: Standardization) -> Linear:
    """Weights of standardised features as weights of the features themselves."""
    unscaled_weights = weights / scaling.scale
    return Linear(unscaled_weights, centre - float(unscaled_weights @ scaling.mean))


def non_negative(rows: Array, target: Array) -> Linear:
    """Weights of 0 or above, the intercept too."""
    from scipy.optimize import nnls

    scale = np.maximum(np.abs(rows).max(axis=0), 1e-300)
    design = np.column_stack([rows / scale, np.ones(len(rows))])
    solution, _ = nnls(design, target, maxiter=30 * design.shape[1])
    return Linear(np.asarray(solution[:-1] / scale), float(solution[-1]))


def growing_of(design: Design) -> Flags:
    """Which features never shorten a job: those with epochs, samples or steps in them (`design` divides by none)."""
    return np.array(
        [term.level is None and not term.is_missing and bool(GROWING & set(term.columns)) for term in design.terms],
        dtype=np.bool_,
    )
